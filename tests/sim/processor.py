"""The processors of a simulated fleet: as slow and as faulty as the plan says, and they note all that they see."""

import asyncio
import random
from itertools import count

from kcl_py import RecordProcessor
from kcl_py.errors import CheckpointFailedError, LeaseLostError
from kcl_py.processor import Checkpointer, OwnedShard
from kcl_py.records import Record, RecordBatch
from tests.sim.history import History
from tests.sim.plan import Work
from tests.sim.services import number_of

WORK_S = 0.03
"""The longest that a batch takes a processor in good health."""
SLOW_S = 4.0
LONG_S, LONG_CHANCE = 60.0, 0.1
"""Of what is slow, some takes longer than handoffs, stops and leases may; it ends when the faults do."""


class Storm:
    """What the processors of a fleet have in common."""

    def __init__(self, finished: set[int]) -> None:
        self.is_on = True
        """Whether things go wrong at present."""
        self.finished = finished
        """Numbers of the records that some processor has finished; shared with who has them read again."""


def processor(
    life: str, work: Work, storm: Storm, history: History, draw: random.Random, *, must_save: bool
) -> type[RecordProcessor]:
    """Make the processor class of one worker's life; ``must_save`` when nothing is stored that it does not ask for."""
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
            is_done, number, records = False, history.counts["batch"], [number_of(record) for record in batch.records]
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
                if len(records) > 1 and happens(work.saves):
                    await self._save_part(checkpointer, batch, number)
                await self._work()
                storm.finished.update(records)
                history.note("done", w=life, id=number)
                if happens(work.saves):
                    await self._save(checkpointer, batch)
                is_done = True
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
            if must_save or draw.random() < 0.5:
                await checkpointer.checkpoint()

        async def _work(self) -> None:
            left_s = draw.uniform(0, WORK_S)
            if happens(work.slow):
                left_s = draw.uniform(0, LONG_S if happens(LONG_CHANCE) else SLOW_S)
            while left_s > SLOW_S and storm.is_on:
                left_s -= SLOW_S
                await asyncio.sleep(SLOW_S)
            await asyncio.sleep(min(left_s, SLOW_S))
            if happens(work.fails):
                raise ValueError("the plan says so")

        async def _save(self, checkpointer: Checkpointer, batch: RecordBatch) -> None:
            at = draw.choice((None, batch, batch.records[-1], batch.records[0]))
            last = at.records[-1] if isinstance(at, RecordBatch) else at
            await self._checkpoint(checkpointer, batch, at, last)

        async def _save_part(self, checkpointer: Checkpointer, batch: RecordBatch, number: int) -> None:
            """Finish some of the records, and say so, before the others."""
            count = draw.randrange(1, len(batch.records))
            storm.finished.update(number_of(record) for record in batch.records[:count])
            history.note("part", w=life, id=number, count=count)
            await self._checkpoint(checkpointer, batch, batch.records[count - 1], batch.records[count - 1])

        async def _checkpoint(
            self, checkpointer: Checkpointer, batch: RecordBatch, at: Record | RecordBatch | None, last: Record | None
        ) -> None:
            try:
                await checkpointer.checkpoint(at)
            except (LeaseLostError, CheckpointFailedError):
                if draw.random() < 0.5:
                    raise
            else:
                if last is not None:
                    history.note("saved", w=life, shard=batch.shard_id, epoch=self.shard.epoch, n=number_of(last))

        def _note(self, hook: str) -> None:
            history.note(
                "hook", w=life, processor=self.number, shard=self.shard.shard_id, epoch=self.shard.epoch, hook=hook
            )

    return Noting
