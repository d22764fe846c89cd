"""One worker with many shards of large records, on virtual time: who reads how much, and what is in memory meanwhile.

Payloads only claim their size, and count how much of it is alive. A shard's records are numbered from 1.
"""

import asyncio
import gc
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

from actors import Ref
from kcl_py import Checkpointer, RecordBatch, RecordProcessor
from kcl_py.leases.row import LeaseRow
from kcl_py.processor import OwnedShard
from kcl_py.records import Record, Redelivery
from kcl_py.sources.source import Fetched, Position, PositionKind, ShardInfo
from kcl_py.tree.messages import Start
from kcl_py.tree.pipeline import Pipeline
from tests.kcl_py.tree.stage import Neighbour, ScriptedSource, Stage, a_stage

MIB = 1024 * 1024
REPLY_BYTES = 10 * MIB
"""What Kinesis answers with at most."""


class Memory:
    """How much of one source's payloads is in memory: those of other tests may go at any time."""

    most_bytes = 0
    _bytes = 0

    @property
    def alive_bytes(self) -> int:
        """What somebody holds."""
        gc.collect()
        return self._bytes

    def grow(self, by_bytes: int) -> None:
        self._bytes += by_bytes
        self.most_bytes = max(self.most_bytes, self._bytes)


class Payload(bytes):
    """Bytes that weigh what they say they do."""

    claimed_bytes = 0
    memory: Memory

    @classmethod
    def of(cls, size_bytes: int, memory: Memory) -> "Payload":
        payload = cls()
        payload.claimed_bytes, payload.memory = size_bytes, memory
        memory.grow(size_bytes)
        return payload

    def __len__(self) -> int:
        return self.claimed_bytes

    def __del__(self) -> None:
        self.memory.grow(-self.claimed_bytes)


class Shelves(ScriptedSource):
    """A source of closed shards, each given as the sizes of its records."""

    def __init__(self, sizes: Mapping[str, Sequence[int]]) -> None:
        super().__init__()
        self.sizes, self.memory = sizes, Memory()
        self.shards = tuple(map(ShardInfo, sizes))
        self.latency_s = 0.02
        self.first_fetch_at: dict[str, float] = {}

    async def open(self, shard_id: str, position: Position) -> str:
        await super().open(shard_id, position)
        return str(position.value if position.kind is PositionKind.AFTER else 0)

    async def fetch(self, shard_id: str, iterator: str, *, limit: int) -> Fetched:
        self.first_fetch_at.setdefault(shard_id, asyncio.get_running_loop().time())
        await asyncio.sleep(self.latency_s)
        start, sizes = int(iterator), self.sizes[shard_id]
        end, size_bytes = start, 0
        while end < min(len(sizes), start + limit) and (size_bytes + sizes[end] <= REPLY_BYTES or end == start):
            size_bytes += sizes[end]
            end += 1
        records = [
            Record(sequence_number=str(index + 1), data=Payload.of(sizes[index], self.memory), partition_key="k")
            for index in range(start, end)
        ]
        is_end = end == len(sizes)
        return Fetched(records, None if is_end else str(end), (), 0 if is_end else 1000, size_bytes)


@dataclass
class Trouble:
    """What is wrong with the processor of a shard, from the record with that number on."""

    at: int = 1
    is_hanging: bool = False
    """Whether it never returns; else it raises."""
    is_over: bool = False


@dataclass
class Reading:
    """What the processors of one worker have done."""

    stage: Stage
    source: Shelves
    work_s: float
    troubles: Mapping[str, Trouble]
    finished: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Sequence numbers by shard, as batches return."""
    tries: dict[str, list[tuple[int, Redelivery | None]]] = field(default_factory=lambda: defaultdict(list))
    """The first sequence number of each batch that was handed over, by shard."""
    leases: dict[str, Neighbour] = field(default_factory=dict)
    pipelines: dict[str, Ref] = field(default_factory=dict)

    def processor(self) -> type[RecordProcessor]:
        reading = self

        class Reader(RecordProcessor):
            shard: OwnedShard

            async def initialize(self, shard: OwnedShard) -> None:
                self.shard = shard

            async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
                await reading.read(batch)

        return Reader

    async def read(self, batch: RecordBatch) -> None:
        shard_id, trouble = batch.shard_id, self.troubles.get(batch.shard_id)
        self.tries[shard_id].append((batch.first.value, batch.redelivery))
        if trouble is not None and not trouble.is_over and batch.last.value >= trouble.at:
            if trouble.is_hanging:
                await asyncio.Event().wait()
            raise ValueError("no such user")
        await asyncio.sleep(self.work_s)
        self.finished[shard_id] += [int(record.sequence_number) for record in batch.records]

    def kill(self, path: str) -> None:
        """Cancel a Pipeline, or its ``producer`` below it."""
        shard_id, _, part = path.partition("/")
        cell = self.pipelines[shard_id]._cell
        [cell] = [below for below in cell._below() if below.name == part] if part else [cell]
        cell.kill("the test says so")

    def has_finished(self, shard_id: str) -> bool:
        return len(self.finished[shard_id]) == len(self.source.sizes[shard_id])

    def check_order(self) -> None:
        """Every shard's records were finished in order, none of them twice and none passed over."""
        for shard_id, numbers in self.finished.items():
            assert numbers == list(range(1, len(numbers) + 1)), shard_id
        for shard_id, tries in self.tries.items():
            for (before, _), (first, redelivery) in pairwise(tries):
                assert (first > before) == (redelivery is None), f"{shard_id} says {redelivery} of record {first}"


@asynccontextmanager
async def a_reading(
    sizes: Mapping[str, Sequence[int]],
    *,
    work_s: float = 0.05,
    troubles: Mapping[str, Trouble] | None = None,
    **options: Any,
) -> AsyncIterator[Reading]:
    """Run a Pipeline for each shard, in the order given, all of one worker."""
    source = Shelves(sizes)
    async with a_stage(source=source, **options) as stage:
        reading = Reading(stage, source, work_s, troubles or {})
        worker = replace(stage.worker, processor=reading.processor())
        for shard_id in sizes:
            reading.leases[shard_id] = await stage.neighbour(f"lease of {shard_id}")
            pipeline = reading.pipelines[shard_id] = await stage.play(shard_id, partial(Pipeline, worker, shard_id))
            pipeline.tell(Start(reading.leases[shard_id].ref, LeaseRow(shard_id), stage.fence(), 1))
        yield reading
