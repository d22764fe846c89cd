"""An HTTP server that answers what a test tells it, a clock that never waits, and scripted clients."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from kcl_py.config import Service
from kcl_py.sessions import Sessions
from kcl_py.sources.kinesis.polling import KinesisSource
from tests.clocks import PromptClock

DATE = "Tue, 14 Nov 2023 22:13:20 GMT"
DATE_S = 1_700_000_000.0
NUMBER = "49590338271490256608559692538361571095921575989136588898"
"""A sequence number of 56 digits."""


@dataclass(frozen=True)
class Call:
    """One request as it arrived."""

    operation: str
    arguments: Any
    authorization: str


Body = dict[str, Any] | str
Answer = tuple[int, Body]
Script = Callable[[Call], Answer] | Answer | None
"""None never answers."""


class StubService:
    """Answers each operation by its script; remembers the calls."""

    def __init__(self) -> None:
        self.url = ""
        self.calls: list[Call] = []
        self.scripts: dict[str, Script] = {}

    async def start(self) -> None:
        app = web.Application()
        app.router.add_post("/", self._answer)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        target, body = request.headers.get("X-Amz-Target"), await request.text()
        call = Call(
            operation=target.rpartition(".")[2] if target else (await request.post())["Action"],  # type: ignore[arg-type]  # text, not a file
            arguments=json.loads(body) if target else body,
            authorization=request.headers.get("Authorization", ""),
        )
        self.calls.append(call)
        script = self.scripts[call.operation]
        if script is None:
            await asyncio.Event().wait()
        status, answer = script(call) if callable(script) else script or (500, "")
        text = answer if isinstance(answer, str) else json.dumps(answer)
        return web.Response(
            status=status, text=text, headers={"Date": DATE, "Content-Type": "application/x-amz-json-1.1"}
        )

    def refuse(self, operation: str, code: str, message: str = "no", status: int = 400) -> None:
        """Let every call of ``operation`` fail so."""
        self.scripts[operation] = (status, {"__type": code, "message": message})


@asynccontextmanager
async def a_source(stub: StubService, *, stream: str = "orders", **options: Any) -> AsyncIterator[KinesisSource]:
    """Yield a source through a real client."""
    async with Sessions().client("kinesis", Service(region="eu-west-1", endpoint=stub.url)) as client:
        yield KinesisSource(client, stream, clock=PromptClock(), **options)


def a_wire_record(**overrides: Any) -> dict[str, Any]:
    """Return a record as it travels."""
    return {"SequenceNumber": NUMBER, "Data": "aGVsbG8=", "PartitionKey": "key"} | overrides


def a_reply(*records: dict[str, Any], **more: Any) -> Answer:
    """Return a GetRecords reply."""
    return 200, {"Records": list(records), "MillisBehindLatest": 0, "NextShardIterator": "next"} | more
