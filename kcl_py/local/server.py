"""The local AWS over HTTP: the Kinesis model in AWS's JSON 1.1 protocol or CBOR; handlers for the other services.

It listens on 127.0.0.1 only and looks at no signature. Its Date header is the model's clock, not the machine's.
Needs aiohttp and asyncio.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from email.utils import formatdate
from itertools import count
from random import Random

import msgspec
from aiohttp import web

from actors.clock import Clock
from kcl_py.local import eventstream
from kcl_py.local.callers import server_log
from kcl_py.local.errors import ModelError
from kcl_py.local.faults import connection
from kcl_py.local.faults.faults import Faults
from kcl_py.local.faults.wire import Answer, Ask, Ending, Outcome, Reply, Wire
from kcl_py.local.http import Handler, HttpReply, HttpRequest
from kcl_py.local.model import Kinesis
from kcl_py.local.replies import refused_json
from kcl_py.local.requests import decode
from kcl_py.local.s3 import is_s3
from kcl_py.local.s3_operations import operation_of
from kcl_py.local.sqs import is_sqs
from kcl_py.local.subscription import POLL_S, Subscription
from kcl_py.local.tongues import CBOR, as_cbor, as_json

HOST = "127.0.0.1"
KINESIS = "Kinesis_20131202"
DYNAMODB = "DynamoDB_20120810"
JSON = "application/x-amz-json-1.1"
BODY_BYTES = 64 * 1024 * 1024
"""The largest request body: an object or a part of one in S3; PutRecords' 10 MiB in base64 are well below."""
_GRACE_S = 1.0
_SERVICES = {KINESIS: "kinesis", DYNAMODB: "dynamodb"}

_encode = msgspec.json.Encoder().encode


class Server:
    """Answers what AWS's SDKs send.

    Args:
        kinesis: the model.
        dynamodb: whatever answers DynamoDB's requests.
        s3, sqs: whatever answers theirs; without it they are refused.
        clock: the service's clock, for the Date header and the pauses.
        latency: returns how long an operation takes, in seconds; none takes any time without it.
        faults: what goes wrong; nothing without them.
    """

    def __init__(
        self,
        kinesis: Kinesis,
        dynamodb: Handler,
        *,
        clock: Clock,
        s3: Handler | None = None,
        sqs: Handler | None = None,
        latency: Callable[[str], float] | None = None,
        faults: Faults | None = None,
    ) -> None:
        self._kinesis, self._dynamodb, self._s3, self._sqs = kinesis, dynamodb, s3, sqs
        self._clock, self._latency = clock, latency
        self._wire = Wire(faults or Faults(random=Random(0)), clock=clock)
        self._request_ids = count(1)
        self._is_stopping = False

    def app(self) -> web.Application:
        """Return the application to serve."""
        app = web.Application(client_max_size=BODY_BYTES)
        app.router.add_route("*", "/{path:.*}", self._handle)
        app.on_shutdown.append(self._stop)
        return app

    async def _stop(self, app: web.Application) -> None:
        """Let subscriptions end at their next look."""
        self._is_stopping = True

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        if request.method == "GET" and request.path == "/health":
            return self._reply(200, {"Content-Type": "application/json"}, b'{"status":"ok"}')
        target, _, operation = request.headers.get("X-Amz-Target", "").partition(".")
        path, _, query = request.raw_path.partition("?")
        if self._s3 is not None and not target and is_s3(path, query, request.headers):
            operation = operation_of(request.method, path, query, {name.lower() for name in request.headers})
            return await self._serve("s3", operation, request, _answer_of(self._s3, request))
        if self._sqs is not None and is_sqs(target, request.headers):
            return await self._serve("sqs", operation, request, _answer_of(self._sqs, request))
        if request.method != "POST" or path != "/":
            return self._refuse(404, f"cannot serve {request.method} {path}: expected POST / or GET /health")
        if target not in _SERVICES:
            return self._refuse(400, f"cannot serve X-Amz-Target {target!r}: expected {KINESIS} or {DYNAMODB}")
        if target == KINESIS and request.content_type not in (JSON, CBOR):
            return self._refuse(400, f"cannot read {request.content_type!r}: expected {JSON} or {CBOR}")
        answer = self._kinesis_answer(operation) if target == KINESIS else _answer_of(self._dynamodb, request)
        return await self._serve(_SERVICES[target], operation, request, answer)

    async def _serve(self, service: str, operation: str, request: web.Request, answer: Answer) -> web.StreamResponse:
        body, is_cbor = await request.read(), service == "kinesis" and request.content_type == CBOR
        try:
            ask = Ask(service, operation, as_json(body) if is_cbor else body)
        except ModelError as refusal:
            return self._reply(*as_cbor(refused_json(refusal)))
        if self._latency is not None:
            await self._clock.sleep(self._latency(operation))
        outcome = await self._wire.outcome(ask, answer)
        if is_cbor and isinstance(outcome.reply, tuple):
            outcome = replace(outcome, reply=as_cbor(outcome.reply))
        return await self._end(request, outcome)

    def _kinesis_answer(self, operation: str) -> Answer:
        async def answer(body: bytes) -> Reply:
            try:
                found = self._kinesis.answer(decode(operation, body))
            except ModelError as refusal:
                return refused_json(refusal)
            events = found.get("EventStream")
            return events if isinstance(events, Subscription) else (200, {}, _encode(found) if found else b"")

        return answer

    async def _end(self, request: web.Request, outcome: Outcome) -> web.StreamResponse:
        """Let the caller see what became of the request."""
        match outcome:
            case Outcome(ending, Subscription() as events):
                return await self._push(events, request, is_cut=ending is Ending.CUT)
            case Outcome(Ending.WHOLE, (status, headers, body)):
                return self._reply(status, headers, body)
            case Outcome(Ending.CUT, (status, headers, body)):
                return await connection.cut(request, status, self._headers(headers), body)
            case Outcome(Ending.RESET):
                return connection.reset(request)
            case Outcome(Ending.NEVER):
                while request.transport is not None and not self._is_stopping:
                    await self._clock.sleep(POLL_S)
        return connection.close(request)

    async def _push(
        self, subscription: Subscription, request: web.Request, *, is_cut: bool = False
    ) -> web.StreamResponse:
        """Send events until the subscription ends, the caller leaves or the server stops; only one if cut."""
        response = web.StreamResponse(headers=self._headers({"Content-Type": eventstream.CONTENT_TYPE}))
        try:
            await response.prepare(request)
            await response.write(eventstream.event("initial-response", b"{}"))
            while not self._is_stopping and not subscription.is_over:
                message = _next_message(subscription, self._clock.time())
                if message is None:
                    await self._clock.sleep(POLL_S)
                else:
                    await response.write(message)
                    if is_cut:
                        connection.close(request)
                        return response
            await response.write_eof()
        except ConnectionError:
            pass  # whoever subscribed has left, which is their right; there is nobody to tell
        return response

    def _refuse(self, status: int, message: str) -> web.Response:
        return self._reply(*_unknown(status, message))

    def _reply(self, status: int, headers: Mapping[str, str], body: bytes) -> web.Response:
        return web.Response(status=status, body=body, headers=self._headers(headers))

    def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return headers with what every reply has; a name in either case is the same name."""
        common = {"Content-Type": JSON, "x-amzn-RequestId": f"00000000-0000-0000-0000-{next(self._request_ids):012x}"}
        given = {name.lower() for name in headers}
        missing = {name: value for name, value in common.items() if name.lower() not in given}
        return missing | dict(headers) | {"Date": formatdate(self._clock.time(), usegmt=True)}


def _answer_of(handler: Handler, request: web.Request) -> Answer:
    path, _, query = request.raw_path.partition("?")

    async def answer(body: bytes) -> Reply:
        return await handler(HttpRequest(request.method, path, query, request.headers, body))

    return answer


def _unknown(status: int, message: str) -> HttpReply:
    return refused_json(ModelError("UnknownOperationException", message, status))


def _next_message(subscription: Subscription, now_s: float) -> bytes | None:
    try:
        event = subscription.event(now_s)
    except ModelError as refusal:
        return eventstream.exception(refusal.code, _encode({"message": refusal.message}))
    return None if event is None else eventstream.event("SubscribeToShardEvent", _encode(event))


@asynccontextmanager
async def serve(server: Server, *, port: int = 0) -> AsyncIterator[str]:
    """Serve until the block ends; yields the URL. Port 0 is any free one. Raises OSError if the port is taken."""
    runner = web.AppRunner(
        server.app(), access_log=None, logger=server_log(), shutdown_timeout=_GRACE_S, auto_decompress=False
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, port).start()
        yield f"http://{HOST}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
