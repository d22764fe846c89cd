"""One actor of the tree by itself, on virtual time: its neighbours are probes that only listen.

The lease store is the real one in memory behind a wire; the source is scripted, or that of the local Kinesis.
"""

import asyncio
import random
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from actors import Actor, Child, Question, Ref, Restart, Supervisor, running
from actors.testing import EventLog
from kcl_py.config import Config
from kcl_py.dead_letters import DeadLetters
from kcl_py.delivery import budget
from kcl_py.delivery.budget import Budget
from kcl_py.delivery.rate import Rate
from kcl_py.delivery.slots import Slots
from kcl_py.events import Events
from kcl_py.leases.fence import Fence, Pulse
from kcl_py.leases.gate import Gate
from kcl_py.leases.items import row_from_item
from kcl_py.leases.memory import MemoryLeaseStore
from kcl_py.leases.row import LeaseRow
from kcl_py.leases.tenure import Tenure
from kcl_py.processor import RecordProcessor
from kcl_py.records import Record
from kcl_py.sources.source import Fetched, Listing, Position, ShardInfo, Source, StreamInfo
from kcl_py.tree.worker import Ids, Worker
from tests.kcl_py.tree.diary import Diary, Work
from tests.kcl_py.tree.fleet import FAILOVER_S, STREAM, make_config
from tests.kcl_py.tree.wire import Wire, WiredStore
from tests.simclock import EPOCH_S, SimClock
from tests.simloop import sim_loop

M = TypeVar("M")

SHARD = "shardId-000000000000"
ME, OTHER = "me/00000001", "other/00000002"
INFO = StreamInfo(STREAM, f"arn:aws:kinesis:us-east-1:000000000000:stream/{STREAM}", int(EPOCH_S), "ACTIVE", EPOCH_S)
PATIENCE_S = 60.0
PULSE_S = 0.25


def some_records(count: int, *, first: int = 1, size_bytes: int = 1) -> list[Record]:
    """Make records with consecutive sequence numbers from ``first`` on."""
    return [
        Record(sequence_number=str(number), data=b"x" * size_bytes, partition_key="k")
        for number in range(first, first + count)
    ]


class ScriptedSource:
    """A source whose every answer is written down beforehand; afterwards the shard is quiet.

    A reply with ``next_iterator=None`` ends the shard. An exception is raised.
    """

    def __init__(self, *replies: Fetched | Exception | list[Record]) -> None:
        self.replies = deque(replies)
        self.on_open: Exception | None = None
        self.on_list: Exception | None = None
        self.opened: list[Position] = []
        self.fetched: list[tuple[float, str]] = []
        """When, and with which iterator."""
        self.latency_s = 0.001
        self.shards: tuple[ShardInfo, ...] = (ShardInfo(SHARD),)

    async def describe(self) -> StreamInfo:
        await asyncio.sleep(self.latency_s)
        return INFO

    async def list_shards(self, at: Position | None = None) -> Listing:
        await asyncio.sleep(self.latency_s)
        if self.on_list is not None:
            raise self.on_list
        return Listing(self.shards, EPOCH_S)

    async def open(self, shard_id: str, position: Position) -> str:
        await asyncio.sleep(self.latency_s)
        self.opened.append(position)
        if self.on_open is not None:
            raise self.on_open
        return f"opened-{len(self.opened)}"

    async def fetch(self, shard_id: str, iterator: str, *, limit: int) -> Fetched:
        self.fetched.append((asyncio.get_running_loop().time(), iterator))
        await asyncio.sleep(self.latency_s)
        reply = self.replies.popleft() if self.replies else []
        if isinstance(reply, Exception):
            raise reply
        return reply if isinstance(reply, Fetched) else some_reply(reply, after=iterator)

    async def aclose(self) -> None:
        """Nothing is open."""


def some_reply(records: list[Record], *, after: str = "", lag_ms: int = 0, is_end: bool = False) -> Fetched:
    """Make a reply; its next iterator is a new one each time."""
    size_bytes = sum(len(record.data) for record in records)
    return Fetched(records, None if is_end else f"{after}+", (), lag_ms, size_bytes)


class Probe(Actor):
    """Hears everything and does nothing."""

    def __init__(self) -> None:
        self.heard: list[object] = []

    async def on_message(self, message: object) -> None:
        self.heard.append(message)


@dataclass(frozen=True, slots=True)
class _StartChild(Question[Ref]):
    child: Child


class _Cast(Supervisor):
    async def on_message(self, message: object) -> Ref:
        assert isinstance(message, _StartChild)
        return await self.start_child(message.child)


class Neighbour:
    """A probe and what it has heard."""

    def __init__(self, ref: Ref, heard: list[object]) -> None:
        self.ref, self.heard = ref, heard

    def of(self, kind: type[M]) -> list[M]:
        return [message for message in self.heard if isinstance(message, kind)]

    async def hears(self, kind: type[M], *, times: int = 1, within_s: float = PATIENCE_S) -> M:
        """Wait until it has heard that many messages of a kind, and return the last of them."""
        await until(lambda: len(self.of(kind)) >= times, within_s=within_s, what=f"{times} {kind.__name__}")
        return self.of(kind)[times - 1]


class Stage:
    """What one worker's actors share, and a place to run them."""

    def __init__(
        self, root: Ref, worker: Worker, store: MemoryLeaseStore, wire: Wire, diary: Diary, events: EventLog
    ) -> None:
        self._root, self.worker, self.store, self.wire, self.diary = root, worker, store, wire, diary
        self.clock, self.events = worker.clock, events
        self._pulse: asyncio.TimerHandle | None = None

    async def play(self, name: str, make: Callable[[], Actor]) -> Ref:
        """Start an actor; it is never restarted."""
        return await self._root.ask(_StartChild(Child(name, make, restart=Restart.TEMPORARY)), timeout_s=PATIENCE_S)

    async def neighbour(self, name: str) -> Neighbour:
        probe = Probe()
        return Neighbour(await self.play(name, lambda: probe), probe.heard)

    def keep_pulse(self) -> None:
        """Show that the event loop runs, as the Coordinator does."""
        self.worker.pulse.beat(self.clock.monotonic())
        self._pulse = asyncio.get_running_loop().call_later(PULSE_S, self.keep_pulse)

    def stand_still(self) -> None:
        """Show it no longer: what looks next sees a gap."""
        if self._pulse is not None:
            self._pulse.cancel()

    def fence(self, *, for_s: float = 1000.0) -> Fence:
        """Make the fence of an ownership that has just been confirmed."""
        fence, now = Fence(self.worker.pulse), self.clock.monotonic()
        fence.tenure = Tenure(ME, "token", 1, now + for_s)
        fence.confirmed_at = now
        return fence

    async def finds_memory_free(self) -> None:
        """Fail unless a shard may read at once; with ``fetch.budget_bytes`` of 1 that is when nothing is held."""
        account = self.worker.budget.account(lambda: None)
        async with asyncio.timeout(budget.PATIENCE_S / 2):  # before anybody is called in
            await account.turn()
        account.close()

    def row(self, key: str = SHARD) -> LeaseRow:
        return row_from_item(self.store.items[key])


@asynccontextmanager
async def a_stage(
    *,
    source: Source | None = None,
    rows: Iterable[LeaseRow] = (),
    work: Work | None = None,
    processor: type[RecordProcessor] | None = None,
    dead_letters: DeadLetters | None = None,
    **options: Any,
) -> AsyncIterator[Stage]:
    """Set up a worker without a tree; ``options`` are those of the configuration."""
    loop, generator = sim_loop(), random.Random(1)
    clock, wire = SimClock(loop), Wire(generator)
    diary, store = Diary(clock), MemoryLeaseStore(rows)
    config = make_config(
        **options | {"leases": {"store": "memory", "failover_s": FAILOVER_S} | options.get("leases", {})}
    )
    processor = processor or diary.processor("me", work)
    worker = _worker(config, clock, generator, source or ScriptedSource(), WiredStore(store, wire), processor)
    worker = replace(worker, dead_letters=dead_letters)
    events = EventLog()
    async with running(_Cast, name="stage", clock=clock, observer=events) as root:
        stage = Stage(root.ref, worker, store, wire, diary, events)
        stage.keep_pulse()
        yield stage
        stage.stand_still()


def _worker(
    config: Config,
    clock: SimClock,
    generator: random.Random,
    source: Source,
    store: WiredStore,
    processor: type[RecordProcessor],
) -> Worker:
    return Worker(
        config=config,
        owner=ME,
        stream=INFO,
        processor=processor,
        source=source,
        store=store,
        clock=clock,
        ids=Ids(generator),
        log=Events(),
        gate=Gate(16),
        budget=Budget(config.fetch.budget_bytes, clock),
        slots=Slots(config.delivery.concurrency),
        pulse=Pulse(config.leases.margin_s / 2, clock.monotonic()),
        started_at=clock.monotonic(),
        rate=Rate(config.delivery.rate.records, config.delivery.rate.bytes),
    )


async def until(
    condition: Callable[[], object], *, within_s: float = PATIENCE_S, what: str = "this", each_s: float = 0.005
) -> None:
    """Let virtual time pass until ``condition`` holds."""
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + within_s
    while not condition():
        assert loop.time() < ends_at, f"{what} did not come within {within_s:g} s"
        await asyncio.sleep(each_s)
