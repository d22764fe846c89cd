"""A Kinesis stream and its lease table in memory: what a worker talks to, and what a test does to it.

A worker on it is the real one, down to the lease store. What the test itself does takes effect at once and never fails.
"""

import random
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any

import anyio

from actors.testing import ManualClock
from kcl_py.clients import Clients
from kcl_py.config import Config
from kcl_py.dead_letters import DeadLetter
from kcl_py.local.faults.fault import Fault
from kcl_py.local.faults.faults import Faults
from kcl_py.processor import RecordProcessor
from kcl_py.records import Record
from kcl_py.sources.kinesis.writer import batches
from kcl_py.testing.entry import Entry, as_entry
from kcl_py.testing.held import holding
from kcl_py.testing.service import Service
from kcl_py.tree.stream import Stream
from kcl_py.tree.worker import Ids


class _Worker(Stream):
    """A worker that stops by itself on a clock that only the test moves: others may have to be waited for then."""

    _clock: ManualClock

    async def __aexit__(self, *raised: Any) -> None:
        with anyio.CancelScope(shield=True):
            async with self._clock.passing():
                self._leave()
                await self._until_stopped()
        await super().__aexit__(*raised)

    def _host(self, processor: type[RecordProcessor], config: Config) -> type[RecordProcessor]:
        return holding(super()._host(processor, config), self._clock)


class FakeStream:
    """A stream for tests.

    Args:
        shards: how many it begins with.
        faults: what goes wrong with the requests of its workers; ``faults.add`` adds more.
        clock: the time of the services and of the workers; by default one of its own.
        seed: decides what is left to chance: jitter, lease tokens, faults with a probability.
        name: the stream's name.

    Raises:
        ModelError: AWS would refuse that name or number of shards.
        TypeError: the clock is none that a test moves.
    """

    def __init__(
        self,
        *,
        shards: int = 1,
        faults: Iterable[Fault] = (),
        clock: ManualClock | None = None,
        seed: int = 0,
        name: str = "test-stream",
    ) -> None:
        if not isinstance(clock, ManualClock | None):
            raise TypeError(f"cannot make a FakeStream: expected a ManualClock, found {type(clock).__name__}")
        self.name, self.clock, self._seed = name, clock or ManualClock(), seed
        self.service = Service(self.clock, faults=faults, generator=random.Random(seed))
        """The Kinesis and the DynamoDB behind it."""
        self._call("CreateStream", ShardCount=shards)
        self._keys, self._workers = count(), count()

    # --- what a test does to it --------------------------------------------------------------------------------

    def put(self, *records: str | bytes | Entry) -> list[Record]:
        """Put records, in order, and return them as they are on the stream.

        Args:
            records: payloads, or what ``record`` describes.

        Raises:
            ModelError: AWS would refuse them, such as one that is too large.
            TypeError: one of them is neither text nor bytes nor made with ``record``.
        """
        entries = [as_entry(given, lambda: f"key-{next(self._keys)}") for given in records]
        placed: list[Record] = []
        for start, end in batches([(entry.key, entry.data) for entry in entries]):
            answer = self._call("PutRecords", Records=[entry.wire() for entry in entries[start:end]])
            placed += [
                Record(result["SequenceNumber"], entry.data, entry.key, self.clock.time())
                for entry, result in zip(entries[start:end], answer["Records"], strict=True)
            ]
        return placed

    def split(self, shard_id: str) -> list[str]:
        """Close a shard and open two in its place; return their ids.

        Raises:
            ModelError: there is no such open shard.
        """
        keys = self._described().get(shard_id, {}).get("HashKeyRange", {"StartingHashKey": 0, "EndingHashKey": 0})
        middle = (int(keys["StartingHashKey"]) + int(keys["EndingHashKey"]) + 1) // 2
        return self._reshard("SplitShard", ShardToSplit=shard_id, NewStartingHashKey=str(middle))

    def merge(self, shard_id: str, neighbour: str) -> str:
        """Close two neighbours and open one in their place; return its id.

        Raises:
            ModelError: they are no two open shards beside each other, the lower one first.
        """
        [merged] = self._reshard("MergeShards", ShardToMerge=shard_id, AdjacentShardToMerge=neighbour)
        return merged

    def end(self) -> list[str]:
        """Close all open shards, so that a worker comes to their ends; return the ids of those that follow."""
        return [child for shard_id in self.open_shards for child in self.split(shard_id)]

    def take_lease(self, shard_id: str) -> None:
        """Have another worker take the lease of a shard, in the table of ``config()``; it never renews it.

        Raises:
            ValueError: no worker has made that lease yet.
        """
        self.service.leases(self.config()).take(shard_id)

    @property
    def faults(self) -> Faults:
        """The rules by which requests fail: ``add``, ``clear``, and how often what has ``happened``."""
        return self.service.faults

    # --- what a test sees ----------------------------------------------------------------------------------------

    @property
    def shards(self) -> list[str]:
        """The ids of all shards, parents before their children."""
        return list(self._described())

    @property
    def open_shards(self) -> list[str]:
        """The ids of the shards that take records."""
        return [key for key, shard in self._described().items() if _is_open(shard)]

    def parents(self, shard_id: str) -> list[str]:
        """Return the ids of the shards that a shard was split or merged from; none, one or two.

        Raises:
            KeyError: there is no such shard.
        """
        shard = self._described()[shard_id]
        return [shard[name] for name in ("ParentShardId", "AdjacentParentShardId") if name in shard]

    def records(self, shard_id: str) -> list[Record]:
        """Return all records of a shard, in order.

        Raises:
            ModelError: there is no such shard.
        """
        iterator = self._call("GetShardIterator", ShardId=shard_id, ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
        records: list[Record] = []
        while iterator is not None:
            answer = self.service.kinesis.call("GetRecords", {"ShardIterator": iterator})
            records += answer["Records"]
            iterator = answer.get("NextShardIterator") if answer["Records"] else None
        return records

    @property
    def checkpoints(self) -> dict[str, str]:
        """What the lease table says of each shard: a sequence number in digits, TRIM_HORIZON or SHARD_END.

        It is that of ``config()``: of workers with another ``app`` or ``leases.table``, see ``Run.checkpoints``.
        """
        return {key: row.checkpoint for key, row in self.service.leases(self.config()).rows().items()}

    @property
    def dead_letters(self) -> list[DeadLetter]:
        """The dead letters of its workers, in order; ``delivery.dead_letter`` must be set, to whatever place."""
        return list(self.service.dead_letters)

    # --- what a worker is given ----------------------------------------------------------------------------------

    def config(self, **options: Any) -> Config:
        """Return the configuration of a worker on this stream.

        Args:
            options: over the defaults; sections are mappings, as in the YAML file.

        Raises:
            ConfigError: an option is wrong.
        """
        return Config(**{"app": "test-app", "stream": self.name, "processor": "tests:Processor"} | options)

    def clients(self, config: Config | None = None) -> Clients:
        """Return what ``Stream(clients=…)`` takes; faults apply to what goes through it.

        Args:
            config: of the worker; None for ``config()``.
        """
        return self.service.clients(config or self.config(), self.name, self.service.line())

    def kinesis_client(self) -> Any:
        """Return a client of this Kinesis with the face of aioboto3's, for other code that is tested, as a producer's.

        Faults apply to what goes through it.
        """
        return self.service.kinesis_client(self.service.line())

    def worker(self, processor: type[RecordProcessor], **options: Any) -> Stream:
        """Return a worker on this stream, to be opened with ``async with``; its time is that of ``clock``.

        When the block is left, time passes by itself until the worker has stopped.

        Args:
            processor: its class.
            options: as for ``config``.

        Raises:
            ConfigError: an option is wrong.
        """
        config = self.config(**options)
        return _Worker(config, processor=processor, clients=self.clients(config), clock=self.clock, ids=self.ids())

    def ids(self) -> Ids:
        """Return tokens and chance for one more worker, by the seed."""
        return Ids(random.Random(f"{self._seed} {next(self._workers)}"))

    def _described(self) -> dict[str, Any]:
        answer = self._call("ListShards")
        shards = answer["Shards"]
        while token := answer.get("NextToken"):
            answer = self.service.kinesis.call("ListShards", {"NextToken": token})
            shards += answer["Shards"]
        return {shard["ShardId"]: shard for shard in shards}

    def _reshard(self, operation: str, **params: Any) -> list[str]:
        before = self.shards
        self._call(operation, **params)
        return [shard_id for shard_id in self.shards if shard_id not in before]

    def _call(self, operation: str, **params: Any) -> Any:
        return self.service.kinesis.call(operation, {"StreamName": self.name, **params})


def _is_open(shard: Mapping[str, Any]) -> bool:
    return "EndingSequenceNumber" not in shard["SequenceNumberRange"]
