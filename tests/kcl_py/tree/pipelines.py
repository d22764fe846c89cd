"""A Pipeline with its real Producer over a scripted source, and a probe for its Lease."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from actors import Ref
from kcl_py.dead_letters import DeadLetters
from kcl_py.leases.fence import Fence
from kcl_py.leases.row import LeaseRow
from kcl_py.processor import Checkpointer, RecordProcessor
from kcl_py.records import RecordBatch
from kcl_py.sources.source import Source
from kcl_py.tree.messages import Start
from kcl_py.tree.pipeline import Pipeline
from tests.kcl_py.tree.diary import Handover, Work
from tests.kcl_py.tree.stage import SHARD, Neighbour, ScriptedSource, Stage, a_stage, until

EPOCH = 1


@dataclass
class Played:
    """One Pipeline under test."""

    stage: Stage
    ref: Ref
    lease: Neighbour
    fence: Fence

    def begin(self, row: LeaseRow | None = None) -> None:
        """Start it, as its Lease does after the take."""
        self.ref.tell(Start(self.lease.ref, row or LeaseRow(SHARD), self.fence, EPOCH))

    @property
    def handovers(self) -> list[Handover]:
        return self.stage.diary.handovers

    def numbers(self) -> list[list[int]]:
        """Return the sequence numbers of each batch that was handed over."""
        return [[int(record.sequence_number) for record in handover.records] for handover in self.handovers]

    def hooks(self) -> list[str]:
        """Return the hooks that were called, but for ``process_records``."""
        return [call.hook for call in self.stage.diary.hooks]


@asynccontextmanager
async def a_pipeline(
    *replies: Any,
    source: Source | None = None,
    work: Work | None = None,
    processor: type[RecordProcessor] | None = None,
    dead_letters: DeadLetters | None = None,
    **options: Any,
) -> AsyncIterator[Played]:
    """Run a Pipeline, born stopped."""
    source = source or ScriptedSource(*replies)
    async with a_stage(source=source, work=work, processor=processor, dead_letters=dead_letters, **options) as stage:
        lease = await stage.neighbour("lease")
        ref = await stage.play("pipeline", lambda: Pipeline(stage.worker, SHARD))
        yield Played(stage, ref, lease, stage.fence())


async def handed_over(played: Played, *, batches: int) -> None:
    """Wait until so many batches have been handed over."""
    await until(lambda: len(played.handovers) >= batches, what=f"{batches} batches")


@dataclass
class Failing:
    """Work that raises on its first calls, and then works."""

    failures: int
    error: BaseException = field(default_factory=lambda: ValueError("no such user"))

    async def __call__(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        if self.failures > 0:
            self.failures -= 1
            raise self.error
