"""A processor with batchers that does as it is told, and notes what it sees."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kcl_py import Batched, Batcher, Record, RecordProcessor, ToBatch
from kcl_py.outcomes import BatchOutcome, RecordOutcome, Retry
from tests.kcl_py.tree.lanes import Desk

Answer = BatchOutcome | Exception | Callable[[Batched], BatchOutcome]


@dataclass
class Counter(Desk):
    """What the processors of one worker give to their batchers, and what comes of it."""

    batchers: Mapping[str, Batcher] = field(default_factory=lambda: {"s3": Batcher(max_age_s=1.0)})
    give: Callable[[Record], RecordOutcome] = lambda record: ToBatch("s3", value=record.data)
    batch_s: Callable[[Batched], float] = lambda batch: 0.01
    """How long a batch takes."""
    batch_answers: list[Answer] = field(default_factory=list)
    """What the calls of ``handle_batch`` end with, one after the other; then they are done."""
    batches: list[Batched] = field(default_factory=list)
    at: list[tuple[float, float]] = field(default_factory=list)
    """When each of them was called, and when it ended."""
    most_batches: int = 0
    running: int = 0

    def counter(self) -> type[RecordProcessor]:
        """Make the processor's class."""
        counter = self

        class Batching(self.processor()):  # type: ignore[misc]
            batchers = counter.batchers

            async def process(self, record: Record) -> RecordOutcome:
                outcome = await counter.work(record)
                return counter.give(record) if outcome is None else outcome

            async def handle_batch(self, batch: Batched) -> BatchOutcome:
                return await counter.handle(batch)

        return Batching

    async def handle(self, batch: Batched) -> BatchOutcome:
        """Do the work of one call."""
        loop = asyncio.get_running_loop()
        begun_at, place = loop.time(), len(self.batches)
        self.batches.append(batch)
        self.at.append((begun_at, float("inf")))
        self.running += 1
        self.most_batches = max(self.most_batches, self.running)
        try:
            await asyncio.sleep(self.batch_s(batch))
        finally:
            self.running -= 1
            self.at[place] = begun_at, loop.time()
        answer = self.batch_answers.pop(0) if self.batch_answers else None
        if callable(answer):
            return answer(batch)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def told(self) -> list[tuple[list[int], str]]:
        """The numbers and the trigger of each batch, in order."""
        return [([int(record.sequence_number) for record, _ in batch], batch.trigger) for batch in self.batches]


def again(*numbers: int) -> Callable[[Batched], BatchOutcome]:
    """Have these records of a batch come again."""
    return lambda batch: {record: Retry() for record, _ in batch if int(record.sequence_number) in numbers}
