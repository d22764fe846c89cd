"""The local AWS over HTTP: the Kinesis model in AWS's JSON 1.1 protocol, and DynamoDB by a handler beside it.

It listens on 127.0.0.1 only and looks at no signature. Its Date header is the model's clock, not the machine's.
Needs aiohttp and asyncio.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from email.utils import formatdate
from itertools import count

import msgspec
from aiohttp import web

from actors.clock import Clock
from kcl_py.local import requests as ask
from kcl_py.local.dynamodb import Handler, HttpRequest
from kcl_py.local.errors import ModelError
from kcl_py.local.model import Kinesis

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
        clock: the service's clock, for the Date header.
    """

    def __init__(self, kinesis: Kinesis, dynamodb: Handler, *, clock: Clock) -> None:
        self._kinesis, self._dynamodb, self._clock = kinesis, dynamodb, clock
        self._request_ids = count(1)

    def app(self) -> web.Application:
        """Return the application to serve."""
        app = web.Application(client_max_size=BODY_BYTES)
        app.router.add_route("*", "/{path:.*}", self._handle)
        return app

    async def _handle(self, request: web.Request) -> web.Response:
        if request.method == "GET" and request.path == "/health":
            return self._reply(200, b'{"status":"ok"}', {"Content-Type": "application/json"})
        if request.method != "POST" or request.path != "/":
            return self._refuse(404, f"cannot serve {request.method} {request.path}: expected POST / or GET /health")
        service, _, operation = request.headers.get("X-Amz-Target", "").partition(".")
        if service == KINESIS:
            return self._answer(operation, request.content_type, await request.read())
        if service == DYNAMODB:
            return await self._forward(request)
        return self._refuse(400, f"cannot serve X-Amz-Target {service!r}: expected {KINESIS} or {DYNAMODB}")

    def _answer(self, operation: str, content_type: str, body: bytes) -> web.Response:
        if content_type != JSON:
            return self._refuse(
                400, f"cannot read {content_type!r}: expected {JSON}; switch CBOR off (AWS_CBOR_DISABLE=1)"
            )
        try:
            answer = self._kinesis.answer(ask.decode(operation, body))
        except ModelError as refusal:
            return self._reply(refusal.status, _encode({"__type": refusal.code, "message": refusal.message}))
        return self._reply(200, _encode(answer) if answer else b"")

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
        common = {
            "Content-Type": JSON,
            "x-amzn-RequestId": f"00000000-0000-0000-0000-{next(self._request_ids):012x}",
        }
        dated = {"Date": formatdate(self._clock.time(), usegmt=True)}
        return web.Response(status=status, body=body, headers=common | dict(headers or {}) | dated)


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
