"""A Lease on a row in memory, with probes for its Pipeline and its Coordinator; a test plays them and the others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from actors import Ref
from kcl_py.delivery.lag import Lag
from kcl_py.leases import rules
from kcl_py.leases.items import item_from_row
from kcl_py.leases.row import LeaseRow, Native
from kcl_py.leases.view import How
from kcl_py.records import SequenceNumber
from kcl_py.sources.source import Source
from kcl_py.tree.asking import Answer, Checkpoint, CheckpointOutcome
from kcl_py.tree.lease import Lease
from kcl_py.tree.messages import (
    Acquired,
    Awaiting,
    Drain,
    Drained,
    OpenShard,
    Progress,
    Start,
)
from tests.kcl_py.tree.fleet import FAILOVER_S
from tests.kcl_py.tree.stage import INFO, OTHER, SHARD, Neighbour, Stage, a_stage, until

FREE = LeaseRow(SHARD, native=Native(stream=INFO.identity))
THEIRS = LeaseRow(SHARD, counter=5, owner=OTHER, native=Native(token="theirs", owner=OTHER, stream=INFO.identity))
"""A row that another worker holds."""
TENURE_S = FAILOVER_S - 1.0
"""From the send of a write until the holder's own deadline."""
HEARTBEAT_S = FAILOVER_S / 3


@dataclass
class PlayedLease:
    """One Lease under test."""

    stage: Stage
    ref: Ref
    pipeline: Neighbour
    coordinator: Neighbour

    @property
    def row(self) -> LeaseRow:
        return self.stage.row()

    @property
    def now(self) -> float:
        return self.stage.clock.monotonic()

    async def held(self) -> Start:
        """Wait for the take; return what the Pipeline is started with."""
        await self.coordinator.hears(Acquired)
        return await self.pipeline.hears(Start)

    def progress(self, prefix: int) -> None:
        """Tell what the Pipeline has finished."""
        at = SequenceNumber(prefix)
        self.ref.tell(Progress(at, at, Lag(0, self.stage.clock.monotonic()), prefix))

    async def drains(self, prefix: int | None = None, *, delivered: int | None = None, unfinished: int = 0) -> Drain:
        """Wait for the order to drain, and say that it is done."""
        drain = await self.pipeline.hears(Drain)
        at, to = (None if number is None else SequenceNumber(number) for number in (prefix, delivered or prefix))
        self.ref.tell(Drained(at, to, unfinished))
        return drain

    def checkpoint(self, position: int, *, token: str | None = None) -> Answer:
        """Ask for an explicit checkpoint."""
        answer = Answer()
        self.ref.tell(Checkpoint(token or str(self.row.native.token), SequenceNumber(position), answer))
        return answer

    async def change(self, **fields: Any) -> None:
        """Change the row behind everybody's back, as another client or operator does."""
        self.stage.store.items[SHARD] = item_from_row(replace(self.row, **fields))

    async def ask_for_it(self, receiver: str = OTHER) -> None:
        """Have another worker ask for the shard."""
        await self.stage.store.write(rules.start_handoff(self.row, owner=receiver))

    def writes(self, operation: str) -> int:
        """Count how often a write was sent."""
        return len(self.stage.wire.of(operation))


@asynccontextmanager
async def a_lease(
    row: LeaseRow = FREE,
    *,
    how: How = How.FREE,
    fault: str | None = None,
    seen_at: float | None = None,
    source: Source | None = None,
    **options: Any,
) -> AsyncIterator[PlayedLease]:
    """Run a Lease that was opened for ``row`` as it stands in the table."""
    async with a_stage(rows=[row], source=source, **options) as stage:
        pipeline, coordinator = await stage.neighbour("pipeline"), await stage.neighbour("coordinator")
        opening = OpenShard(row, how, coordinator.ref, seen_at, fault)
        ref = await stage.play("lease", lambda: Lease(stage.worker, opening, pipeline.ref))
        yield PlayedLease(stage, ref, pipeline, coordinator)


@asynccontextmanager
async def a_receiver(**options: Any) -> AsyncIterator[PlayedLease]:
    """Run a Lease that has asked another worker for its shard and waits."""
    async with a_lease(THEIRS, how=How.HANDOFF, **options) as played:
        await played.coordinator.hears(Awaiting)
        yield played


async def outcome(answer: Answer, *, within_s: float = 60.0) -> CheckpointOutcome:
    """Wait for the answer to an explicit checkpoint."""
    await until(answer.arrived.is_set, within_s=within_s)
    assert answer.outcome is not None
    return answer.outcome


async def beats(played: PlayedLease, *, every_s: float, for_s: float) -> None:
    """Play a holder elsewhere that renews the row."""
    ends_at = played.now + for_s
    while played.now < ends_at:
        await played.change(counter=played.row.counter + 1)
        await asyncio.sleep(every_s)
