"""The local AWS over HTTP: the Kinesis model in AWS's JSON 1.1 protocol, and DynamoDB by a handler beside it.

It listens on 127.0.0.1 only and looks at no signature. Its Date header is the model's clock, not the machine's.
Needs aiohttp and asyncio.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from email.utils import formatdate
from itertools import count

import msgspec
from aiohttp import web

from actors.clock import Clock
from kcl_py.local import eventstream
from kcl_py.local import requests as ask
from kcl_py.local.dynamodb import Handler, HttpRequest
from kcl_py.local.errors import ModelError
from kcl_py.local.model import Kinesis
from kcl_py.local.subscription import POLL_S, Subscription

HOST = "127.0.0.1"
KINESIS = "Kinesis_20131202"
DYNAMODB = "DynamoDB_20120810"
JSON = "application/x-amz-json-1.1"
BODY_BYTES = 32 * 1024 * 1024
"""The largest request body: PutRecords' 10 MiB in base64, and room."""
_GRACE_S = 1.0

_encode = msgspec.json.Encoder().encode


class Server:
    """Answers what AWS's SDKs send.

    Args:
        kinesis: the model.
        dynamodb: whatever answers DynamoDB's requests.
        clock: the service's clock, for the Date header and the pauses.
        latency: returns how long an operation of Kinesis takes, in seconds; none takes any time without it.
    """

    def __init__(
        self, kinesis: Kinesis, dynamodb: Handler, *, clock: Clock, latency: Callable[[str], float] | None = None
    ) -> None:
        self._kinesis, self._dynamodb, self._clock, self._latency = kinesis, dynamodb, clock, latency
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
            return self._reply(200, b'{"status":"ok"}', {"Content-Type": "application/json"})
        if request.method != "POST" or request.path != "/":
            return self._refuse(404, f"cannot serve {request.method} {request.path}: expected POST / or GET /health")
        service, _, operation = request.headers.get("X-Amz-Target", "").partition(".")
        if service == KINESIS:
            return await self._answer(operation, request)
        if service == DYNAMODB:
            return await self._forward(request)
        return self._refuse(400, f"cannot serve X-Amz-Target {service!r}: expected {KINESIS} or {DYNAMODB}")

    async def _answer(self, operation: str, request: web.Request) -> web.StreamResponse:
        if request.content_type != JSON:
            return self._refuse(
                400, f"cannot read {request.content_type!r}: expected {JSON}; switch CBOR off (AWS_CBOR_DISABLE=1)"
            )
        body = await request.read()
        if self._latency is not None:
            await self._clock.sleep(self._latency(operation))
        try:
            answer = self._kinesis.answer(ask.decode(operation, body))
        except ModelError as refusal:
            return self._reply(refusal.status, _encode({"__type": refusal.code, "message": refusal.message}))
        events = answer.get("EventStream")
        if isinstance(events, Subscription):
            return await self._push(events, request)
        return self._reply(200, _encode(answer) if answer else b"")

    async def _push(self, subscription: Subscription, request: web.Request) -> web.StreamResponse:
        """Send events until the subscription ends, the caller leaves or the server stops."""
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
            await response.write_eof()
        except ConnectionError:
            pass  # whoever subscribed has left, which is their right; there is nobody to tell
        return response

    async def _forward(self, request: web.Request) -> web.Response:
        sent = HttpRequest(request.method, request.path, request.headers, await request.read())
        try:
            status, headers, body = await self._dynamodb(sent)
        except ImportError as error:
            return self._refuse(500, f"cannot serve DynamoDB: {error}; pip install 'kcl-py[local]'")
        return self._reply(status, body, headers)

    def _refuse(self, status: int, message: str) -> web.Response:
        return self._reply(status, _encode({"__type": "UnknownOperationException", "message": message}))

    def _reply(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> web.Response:
        return web.Response(status=status, body=body, headers=self._headers(headers or {}))

    def _headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        common = {
            "Content-Type": JSON,
            "x-amzn-RequestId": f"00000000-0000-0000-0000-{next(self._request_ids):012x}",
        }
        return common | dict(headers) | {"Date": formatdate(self._clock.time(), usegmt=True)}


def _next_message(subscription: Subscription, now_s: float) -> bytes | None:
    try:
        event = subscription.event(now_s)
    except ModelError as refusal:
        return eventstream.exception(refusal.code, _encode({"message": refusal.message}))
    return None if event is None else eventstream.event("SubscribeToShardEvent", _encode(event))


@asynccontextmanager
async def serve(server: Server, *, port: int = 0) -> AsyncIterator[str]:
    """Serve until the block ends; yields the URL. Port 0 is any free one. Raises OSError if the port is taken."""
    runner = web.AppRunner(server.app(), access_log=None, shutdown_timeout=_GRACE_S)
    await runner.setup()
    try:
        await web.TCPSite(runner, HOST, port).start()
        yield f"http://{HOST}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()
