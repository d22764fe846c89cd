"""The processors of a simulated fleet: as slow and as faulty as the plan says, and they note all that they see."""

import asyncio
import random
from itertools import count

from kcl_py import RecordProcessor
from kcl_py.errors import CheckpointFailedError, LeaseLostError
from kcl_py.processor import Checkpointer, OwnedShard
from kcl_py.records import RecordBatch
from tests.sim.history import History
from tests.sim.plan import Work

WORK_S = 0.03
"""The longest that a batch takes a processor in good health."""
SLOW_S = 4.0


class Storm:
    """What the processors of a fleet have in common."""

    def __init__(self) -> None:
        self.is_on = True
        """Whether things go wrong at present."""
        self.finished: set[int] = set()
        """Numbers of the records that some processor has finished."""


def processor(life: str, work: Work, storm: Storm, history: History, draw: random.Random) -> type[RecordProcessor]:
    """Make the processor class of one worker's life."""
    numbers = count()

    def happens(chance: float) -> bool:
        return storm.is_on and chance > 0 and draw.random() < chance

    class Noting(RecordProcessor):
        shard: OwnedShard
        number = -1

        async def initialize(self, shard: OwnedShard) -> None:
            self.shard, self.number = shard, next(numbers)
            self._note("initialize")
            await self._work()

        async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
            is_done, number, records = False, history.counts["batch"], [int(record.data) for record in batch.records]
            history.note(
                "batch",
                w=life,
                id=number,
                processor=self.number,
                shard=batch.shard_id,
                epoch=self.shard.epoch,
                records=records,
                again=batch.redelivery is not None,
            )
            try:
                await self._work()
                is_done = True
                storm.finished.update(records)
                history.note("done", w=life, id=number)
                if happens(work.saves):
                    await self._save(checkpointer, batch)
            finally:
                history.note("returned", w=life, id=number, done=is_done)

        async def lease_lost(self) -> None:
            self._note("lease_lost")
            await self._work()

        async def shard_ended(self, checkpointer: Checkpointer) -> None:
            self._note("shard_ended")
            await self._work()

        async def shutdown_requested(self, checkpointer: Checkpointer) -> None:
            self._note("shutdown_requested")
            await self._work()
            await checkpointer.checkpoint()

        async def _work(self) -> None:
            await asyncio.sleep(draw.uniform(0, SLOW_S if happens(work.slow) else WORK_S))
            if happens(work.fails):
                raise ValueError("the plan says so")

        async def _save(self, checkpointer: Checkpointer, batch: RecordBatch) -> None:
            at = draw.choice((None, batch, batch.records[-1], batch.records[0]))
            try:
                await checkpointer.checkpoint(at)
            except (LeaseLostError, CheckpointFailedError):
                if draw.random() < 0.5:
                    raise
            else:
                if at is not None:
                    last = at.records[-1] if isinstance(at, RecordBatch) else at
                    history.note("saved", w=life, shard=batch.shard_id, n=int(last.data))

        def _note(self, hook: str) -> None:
            history.note(
                "hook", w=life, processor=self.number, shard=self.shard.shard_id, epoch=self.shard.epoch, hook=hook
            )

    return Noting
