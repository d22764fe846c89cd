"""Whole workers of one application on virtual time, over one stream and one lease table in memory.

Each worker is the real ``Stream`` with its own clock, chance and wire. A test starts them, puts records, reshards,
and crashes, cancels, pauses or stops workers; ``diary`` has what their processors saw.
"""

import asyncio
import random
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import replace
from itertools import count
from typing import Any

from actors import Node
from kcl_py import Config, RecordProcessor, Stream
from kcl_py.clients import Clients
from kcl_py.leases.items import item_from_row, row_from_item
from kcl_py.leases.memory import MemoryLeaseStore
from kcl_py.leases.row import LeaseRow
from kcl_py.local.client import KinesisClient
from kcl_py.local.model import EndShape, Kinesis
from kcl_py.sources.kinesis.polling import KinesisSource
from kcl_py.tree.stream import Outcome
from kcl_py.tree.worker import Ids
from tests.kcl_py.tree.diary import Diary, Work, check_disjoint, check_order, check_parents_first
from tests.kcl_py.tree.wire import Wire, WiredSource, WiredStore
from tests.simclock import SimClock
from tests.simloop import WORKER, sim_loop

FAILOVER_S = 3.0
"""The shortest that can be configured: heartbeats each second, ticks each 0.3 s, a tenure of 2 s."""
STREAM = "flights"
PATIENCE_S = 120.0
"""Virtual seconds after which something that does not come is given up."""


class Member:
    """One worker of the fleet."""

    def __init__(
        self, fleet: "Fleet", name: str, config: Config, work: Work | None, processor: type[RecordProcessor] | None
    ) -> None:
        self.name, self._fleet, self._config = name, fleet, config
        self.clock = SimClock(fleet.loop)
        self.random = random.Random(f"{fleet.seed} {name}")
        self.wire = Wire(self.random)
        self._processor = processor or fleet.diary.processor(name, work)
        self.stream: Stream | None = None
        self.outcome: Outcome | None = None
        self.error: Exception | None = None
        context = copy_context()
        context.run(WORKER.set, name)
        self.task = fleet.loop.create_task(self._live(), name=name, context=context)

    async def _live(self) -> None:
        clients = Clients(WiredSource(a_source(self._fleet), self.wire), WiredStore(self._fleet.store, self.wire))
        stream = Stream(
            self._config, processor=self._processor, clients=clients, clock=self.clock, ids=Ids(self.random)
        )
        try:
            async with stream:
                self.stream = stream
                self.outcome = await stream.wait()
        except Exception as error:  # for the test to look at
            self.error = error

    @property
    def owner(self) -> str:
        """As in ``leaseOwner``."""
        assert self.stream is not None
        return self.stream._worker.owner

    def crash(self) -> None:
        """Stop it for ever, wherever it is: nothing of it runs again."""
        self._fleet.loop.crash(self.name)
        self._fleet.diary.died(self.name)

    def cancel(self) -> None:
        """Cancel the task that holds the worker open, as ``Ctrl-C`` does."""
        self.task.cancel()

    def kill(self) -> None:
        """Cancel every task of its tree, as a failure at the root does."""
        if self.stream is None:
            self.task.cancel()
        else:
            self.stream._root._cell.kill("the test says so")

    def pause(self, *, for_s: float, with_clock: bool = False) -> None:
        """Run nothing of it for a while: a stopped process, or with its clock a frozen machine."""
        loop = self._fleet.loop
        loop.pause(self.name)

        def go_on() -> None:
            if with_clock:
                self.clock.offset_s -= for_s
            loop.resume(self.name)

        loop.call_later(for_s, go_on)

    async def stop(self, grace_s: float = 20.0) -> Outcome:
        """Stop it in order and return how it ended."""
        assert self.stream is not None
        self.stream.stop(grace_s)
        await self.ended()
        assert self.error is None, self.error
        assert self.outcome is not None
        return self.outcome

    async def ended(self) -> None:
        """Wait until it has left nothing running."""
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.wait([self.task])

    def kill_actor(self, path: str) -> None:
        """Cancel one actor of its tree, such as ``coordinator`` or ``shards/<shard id>/lease``."""
        assert self.stream is not None
        cell = self.stream._root._cell
        for name in path.split("/"):
            [cell] = [below for below in cell._below() if below.name == name]
        cell.kill("the test says so")

    def node(self, path: str) -> Node:
        """Return what the tree shows of one actor."""
        assert self.stream is not None
        node = self.stream.tree()
        for name in path.split("/"):
            [node] = [child for child in node.children if child.name == name]
        return node

    @property
    def shards(self) -> list[str]:
        """The shards that run in its tree."""
        return sorted(child.name for child in self.node("shards").children)


class Fleet:
    """A stream, a lease table and the workers on them.

    Args:
        shards: of the stream.
        seed: decides order, latencies, tokens and jitter.
        end_shape: how the stream tells that a shard has ended.
        store: the lease table; one of its own unless given.
        config: options of every worker, as in the YAML file.
    """

    def __init__(
        self,
        *,
        shards: int = 4,
        seed: int = 0,
        end_shape: EndShape = EndShape.WITH_LAST,
        store: Any = None,
        **config: Any,
    ) -> None:
        self.loop, self.seed, self._config = sim_loop(), seed, config
        self.clock = SimClock(self.loop)
        self.model = Kinesis(self.clock, end_shape=end_shape)
        self.model.add_stream(STREAM, shards)
        self.store: Any = store or MemoryLeaseStore()
        self.diary = Diary(self.clock)
        self.members: dict[str, Member] = {}
        self._numbers = count()
        self.put_data: set[bytes] = set()

    # --- workers -----------------------------------------------------------------------------------------------

    def start(
        self, name: str, *, work: Work | None = None, processor: type[RecordProcessor] | None = None, **config: Any
    ) -> Member:
        """Start a worker, with a processor that writes the diary if with no other; ``config`` goes over the fleet's."""
        member = self.members[name] = Member(self, name, self.configured(name, **config), work, processor)
        return member

    def configured(self, name: str, **config: Any) -> Config:
        leases = {"store": "memory", "failover_s": FAILOVER_S, "worker_id": name} | self._config.get("leases", {})
        return make_config(**{**self._config, **config, "leases": leases | config.get("leases", {})})

    async def until(
        self, condition: Callable[[], object], *, within_s: float = PATIENCE_S, each_s: float = 0.02
    ) -> None:
        """Let time pass until ``condition`` holds."""
        ends_at = self.loop.time() + within_s
        while not condition():
            assert self.loop.time() < ends_at, f"this did not come within {within_s:g} s"
            await asyncio.sleep(each_s)

    async def delivered(self, *, within_s: float = PATIENCE_S) -> None:
        """Wait until every record that was put has been processed."""
        await self.until(lambda: self.put_data <= self.diary.done, within_s=within_s)

    async def stopped(self) -> None:
        """Stop the workers that still run, all at once."""
        running = [member for member in self.members.values() if member.stream and not member.task.done()]
        running = [member for member in running if not self.loop.is_dead(member.name)]
        await asyncio.gather(*(member.stop() for member in running))

    # --- the stream --------------------------------------------------------------------------------------------

    def put(self, records: int, *, key: str | None = None, size_bytes: int = 0) -> list[bytes]:
        """Put records with numbers for payloads, under as many keys unless one is given; return the payloads."""
        numbers = [next(self._numbers) for _ in range(records)]
        payloads = [str(number).encode().ljust(size_bytes, b".") for number in numbers]
        for start in range(0, records, 500):
            entries = [
                {"PartitionKey": key or f"key-{number}", "Data": data}
                for number, data in zip(numbers[start : start + 500], payloads[start : start + 500], strict=True)
            ]
            self.model.call("PutRecords", {"StreamName": STREAM, "Records": entries})
        self.put_data.update(payloads)
        return payloads

    def split(self, shard_id: str) -> None:
        """Split a shard in the middle; it takes a moment."""
        keys = self._described()[shard_id]["HashKeyRange"]
        middle = (int(keys["StartingHashKey"]) + int(keys["EndingHashKey"])) // 2
        self.model.call(
            "SplitShard", {"StreamName": STREAM, "ShardToSplit": shard_id, "NewStartingHashKey": str(middle)}
        )

    def merge(self, lower: str, upper: str) -> None:
        """Merge two neighbours; it takes a moment."""
        self.model.call("MergeShards", {"StreamName": STREAM, "ShardToMerge": lower, "AdjacentShardToMerge": upper})

    def shards(self) -> list[str]:
        return list(self._described())

    def truth(self, shard_id: str) -> list[bytes]:
        """Return the payloads of a shard in their order."""
        asked = {"StreamName": STREAM, "ShardId": shard_id, "ShardIteratorType": "TRIM_HORIZON"}
        iterator = self.model.call("GetShardIterator", asked)["ShardIterator"]
        payloads: list[bytes] = []
        while iterator is not None:
            reply = self.model.call("GetRecords", {"ShardIterator": iterator})
            payloads += [record.data for record in reply["Records"]]
            iterator = reply.get("NextShardIterator") if reply["Records"] else None
        return payloads

    def parents(self) -> dict[str, list[str]]:
        return {
            key: [shard[name] for name in ("ParentShardId", "AdjacentParentShardId") if name in shard]
            for key, shard in self._described().items()
        }

    def _described(self) -> dict[str, Any]:
        return {shard["ShardId"]: shard for shard in self.model.call("ListShards", {"StreamName": STREAM})["Shards"]}

    # --- the lease table ---------------------------------------------------------------------------------------

    def row(self, shard_id: str) -> LeaseRow:
        return self.rows()[shard_id]

    def rows(self) -> dict[str, LeaseRow]:
        """Return the lease table as it is."""
        return {key: row_from_item(item) for key, item in sorted(self.store.items.items())}

    def name_as_owner(self, shard_id: str, member: Member) -> None:
        """Let a row come to name a worker, as by a request of its own that is applied late."""
        row = self.row(shard_id)
        self.store.items[shard_id] = item_from_row(replace(row, owner=member.owner, counter=row.counter + 1))

    def held_by(self, member: Member) -> set[str]:
        """Return the shards whose rows name a worker as their holder."""
        if member.stream is None:
            return set()
        return {key for key, row in self.rows().items() if row.holder == member.owner}

    # --- the laws ----------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Check what must be true of every run, once all its records should have been delivered."""
        handovers = self.diary.handovers
        assert self.put_data <= self.diary.done, f"lost: {sorted(self.put_data - self.diary.done)}"
        for shard_id in self.shards():
            check_order(self.diary.of(shard_id), self.truth(shard_id))
            check_disjoint(self.diary.of(shard_id))
        check_parents_first(handovers, self.parents())

    def check_once(self) -> None:
        """Check the same, and that no record was handed over twice."""
        self.check()
        assert sum(len(handover.records) for handover in self.diary.handovers) == len(self.put_data)


async def running(fleet: Fleet, *, workers: int = 1, shards: int = 2) -> None:
    """Start workers on busy shards and wait until all has been delivered once."""
    fleet.put(20 * shards)
    for number in range(workers):
        fleet.start("ABCDEFGH"[number])
    await fleet.delivered()


def a_source(fleet: Fleet) -> KinesisSource:
    """Read the fleet's stream, without a wire between."""
    return KinesisSource(KinesisClient(fleet.model, fleet.clock), STREAM, clock=fleet.clock)


def make_config(**options: Any) -> Config:
    """Return a configuration of the test's application."""
    return Config(**{"app": "test-app", "stream": STREAM, "processor": "tests:Recorder"} | options)
