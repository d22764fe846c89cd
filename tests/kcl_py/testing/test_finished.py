"""What counts as finished in a run is what counts for a worker."""

import asyncio
from typing import Any, ClassVar

import pytest

from kcl_py import Batched, Batcher, Checkpointer, ProcessorError, Record, RecordBatch, RecordProcessor, Reject, ToBatch
from kcl_py.testing import FakeStream, run_processor

pytestmark = pytest.mark.asyncio


class ByNumber(RecordProcessor):
    """Names what has failed by its number, which is no record."""

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> Any:
        return {record.sequence_number: Reject("bad") for record in batch if record.data == b"bad"}


class Nothing(RecordProcessor):
    """Returns what only batches may."""

    async def process(self, record: Record) -> Any:
        return {}


class ByNumberInBatches(RecordProcessor):
    """Does in a batcher what the first does."""

    batchers: ClassVar[dict[str, Batcher]] = {"b": Batcher(max_records=3)}

    async def process(self, record: Record) -> ToBatch:
        return ToBatch("b")

    async def handle_batch(self, batch: Batched) -> Any:
        return {record.sequence_number: Reject("bad") for record, _ in batch}


@pytest.mark.parametrize(
    ("processor", "found"),
    [
        (ByNumber, "process_records returned: expected a mapping of records of the batch, found str as a key"),
        (Nothing, "process returned: expected None, Retry, Reject or ToBatch, found dict"),
        (ByNumberInBatches, "handle_batch returned: expected a mapping of records of the batch, found str as a key"),
    ],
)
async def test_answer_that_a_worker_refuses_halts_a_run_too(processor: type[RecordProcessor], found: str) -> None:
    """It would halt in production, so the test of it may not pass."""
    run = await run_processor(processor, ["a", "bad", "c"], retries=1)
    assert isinstance(run.error, ProcessorError)
    assert found in str(run.error)
    assert run.halted
    assert (run.finished, run.acknowledged) == ([], [])


async def test_attempt_that_swallows_the_end_of_its_time_has_failed_and_is_made_again() -> None:
    """Whatever it was cut short in is done the second time."""
    stream, attempts = FakeStream(), list[object]()

    class Swallows(RecordProcessor):
        async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
            attempts.append(batch.redelivery)
            if len(attempts) == 1:
                try:
                    await stream.clock.sleep(100)
                except asyncio.CancelledError:
                    return

    options = {"delivery": {"attempt_timeout_s": 5}}
    stream.put("a")
    run = await run_processor(Swallows, stream=stream, options=options)
    assert len(attempts) == 2
    assert (run.finished, run.acknowledged, run.error) == ([b"a"], [b"a"], None)
