"""The way from one worker to its stream and its lease store: takes time, and fails as a test says.

An effect takes place on the far side, outside the worker: a crash of the worker neither stops nor undoes it, and its
reply then finds nobody. What never answers ends for the caller at the request's deadline.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextvars import Context
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import partial
from typing import TypeVar

from kcl_py.errors import MissingError, RejectedError, RequestError, ThrottledError
from kcl_py.leases.capacity import Capacity
from kcl_py.leases.row import LeaseRow, WorkerRow
from kcl_py.leases.store import Effects, LeaseStore, Scan, Write
from kcl_py.sources.source import Fetched, Listing, Position, Source, StreamInfo

T = TypeVar("T")

LATENCY_S = (0.001, 0.004)
"""One way."""
DEADLINE_S = 0.5
"""Total time of one request: F/6 for the shortest failover time."""
SOURCE_OPERATIONS = frozenset({"describe", "list", "open", "fetch"})


class Fault(Enum):
    """What happens to one request."""

    LOST_REQUEST = auto()
    """It never arrives."""
    LOST_REPLY = auto()
    """It takes effect, and nobody hears of it."""
    LATE = auto()
    """It takes effect after the caller has given up."""
    BROKEN = auto()
    """It fails at once with an error that does not tell its outcome; there was none."""
    THROTTLED = auto()
    REJECTED = auto()
    MISSING = auto()


@dataclass(frozen=True)
class Call:
    """A request that was sent."""

    operation: str
    key: str
    at: float


@dataclass
class _Rule:
    operation: str
    fault: Fault
    left: int
    key: str | None


class Wire:
    """What one worker's requests go through."""

    def __init__(self, generator: random.Random, *, latency_s: tuple[float, float] = LATENCY_S) -> None:
        self._random, self._latency_s = generator, latency_s
        self._rules: list[_Rule] = []
        self.calls: list[Call] = []
        self.is_cut = self.is_store_cut = False
        """Whether nothing gets through, or nothing to the lease store."""
        self.aged_out: frozenset[str] = frozenset()
        """Shards that the source no longer lists, as if their last record had left the stream."""
        self.stale_scan: Scan | None = None
        """What a scan shows that is not consistent, if not the table as it is."""

    def fail(self, operation: str, fault: Fault, *, times: int = 1, key: str | None = None) -> None:
        """Let the next requests of that kind fail, or of those the ones about ``key``."""
        self._rules.append(_Rule(operation, fault, times, key))

    def recover(self) -> None:
        """Let nothing fail any more."""
        self._rules.clear()

    def of(self, *operations: str, key: str | None = None) -> list[Call]:
        """Return the requests of these kinds, oldest first."""
        return [call for call in self.calls if call.operation in operations and key in (None, call.key)]

    async def carry(self, operation: str, key: str, call: Callable[[], Awaitable[T]]) -> T:
        """Send a request and wait for its reply."""
        loop = asyncio.get_running_loop()
        self.calls.append(Call(operation, key, loop.time()))
        fault = self._fault(operation, key)
        if (refusal := _refusal(fault, operation, key)) is not None:
            await asyncio.sleep(self._delay_s())
            raise refusal
        reply: asyncio.Future[T] | None = loop.create_future() if fault is None else None
        if fault is not Fault.LOST_REQUEST:
            delay_s = 2 * DEADLINE_S if fault is Fault.LATE else self._delay_s()
            loop.call_later(delay_s, self._arrive, call, reply, context=Context())
        if reply is not None:
            return await reply
        await asyncio.sleep(DEADLINE_S)
        raise RequestError(operation, key, "TimeoutError", "no answer in time")

    def _fault(self, operation: str, key: str) -> Fault | None:
        if self.is_cut or (self.is_store_cut and operation not in SOURCE_OPERATIONS):
            return Fault.LOST_REQUEST
        for rule in self._rules:
            if rule.operation == operation and rule.key in (None, key) and rule.left:
                rule.left -= 1
                return rule.fault
        return None

    def _delay_s(self) -> float:
        return self._random.uniform(*self._latency_s)

    def _arrive(self, call: Callable[[], Awaitable[T]], reply: "asyncio.Future[T] | None") -> None:
        loop = asyncio.get_running_loop()

        async def serve() -> None:
            try:
                result = await call()
            except Exception as error:  # goes back to the caller
                answer = partial(_fail, reply, error)
            else:
                answer = partial(_answer, reply, result)
            loop.call_later(self._delay_s(), answer)

        loop.create_task(serve())  # noqa: RUF006  # the loop keeps it


def _answer(reply: "asyncio.Future[T] | None", result: T) -> None:
    if reply is not None and not reply.done():
        reply.set_result(result)


def _fail(reply: "asyncio.Future[T] | None", error: Exception) -> None:
    if reply is not None and not reply.done():
        reply.set_exception(error)


def _refusal(fault: Fault | None, operation: str, key: str) -> RequestError | None:
    match fault:
        case Fault.BROKEN:
            return RequestError(operation, key, "ConnectionClosedError", "the connection was closed")
        case Fault.THROTTLED:
            return ThrottledError(operation, key, "ThrottlingException", "rate exceeded")
        case Fault.REJECTED:
            return RejectedError(operation, key, "ValidationException", "no such thing")
        case Fault.MISSING:
            return MissingError(operation, key, "ResourceNotFoundException", "it is not there")
    return None


class WiredStore:
    """A lease store at the other end of a wire; operations of writes are the writes' own names."""

    def __init__(self, store: LeaseStore, wire: Wire) -> None:
        self._store, self._wire = store, wire

    @property
    def has_workers(self) -> bool:
        return self._store.has_workers

    @property
    def capacity(self) -> tuple[Capacity | None, Capacity | None]:
        return self._store.capacity

    async def ensure(self) -> float | None:
        return await self._wire.carry("ensure", "", self._store.ensure)

    async def scan(self, *, consistent: bool = False) -> Scan:
        scan = await self._wire.carry("scan", "", self._store.scan)
        return self._wire.stale_scan if self._wire.stale_scan is not None and not consistent else scan

    async def read(self, key: str) -> LeaseRow | None:
        return await self._wire.carry("read", key, lambda: self._store.read(key))

    async def create(self, row: LeaseRow, *, parent: Write | None = None) -> bool:
        operation = "create" if parent is None else "create child"
        return await self._wire.carry(operation, row.key, lambda: self._store.create(row, parent=parent))

    async def write(self, write: Write) -> LeaseRow:
        return await self._wire.carry(write.operation, write.key, lambda: self._store.write(write))

    async def transact(self, effects: Effects, *, request_token: str, write: Write | None = None) -> None:
        operation, key = ("effects", "") if write is None else (write.operation, write.key)
        await self._wire.carry(
            operation, key, lambda: self._store.transact(effects, request_token=request_token, write=write)
        )

    async def delete(self, write: Write) -> None:
        await self._wire.carry("delete", write.key, lambda: self._store.delete(write))

    async def workers(self) -> tuple[WorkerRow, ...]:
        return await self._wire.carry("workers", "", self._store.workers)

    async def put_worker(self, row: WorkerRow) -> None:
        await self._wire.carry("put worker", row.worker, lambda: self._store.put_worker(row))

    async def delete_worker(self, worker: str) -> None:
        await self._wire.carry("delete worker", worker, lambda: self._store.delete_worker(worker))

    async def aclose(self) -> None:
        await self._store.aclose()


class WiredSource:
    """A source at the other end of a wire."""

    def __init__(self, source: Source, wire: Wire) -> None:
        self._source, self._wire = source, wire

    async def describe(self) -> StreamInfo:
        return await self._wire.carry("describe", "", self._source.describe)

    async def list_shards(self, at: Position | None = None) -> Listing:
        listing = await self._wire.carry("list", "", lambda: self._source.list_shards(at))
        kept = tuple(shard for shard in listing.shards if shard.shard_id not in self._wire.aged_out)
        return replace(listing, shards=kept)

    async def open(self, shard_id: str, position: Position) -> str:
        return await self._wire.carry("open", shard_id, lambda: self._source.open(shard_id, position))

    async def fetch(self, shard_id: str, iterator: str, *, limit: int) -> Fetched:
        return await self._wire.carry("fetch", shard_id, lambda: self._source.fetch(shard_id, iterator, limit=limit))

    async def aclose(self) -> None:
        await self._source.aclose()
