"""What a record says of itself once its shard goes on in a new ownership of the same worker, as somebody asked."""

from typing import Any

import pytest

from kcl_py import Record, RecordBatch, RecordProcessor, Reject
from kcl_py.outcomes import BatchOutcome
from kcl_py.processor import Checkpointer
from kcl_py.records import MAYBE
from kcl_py.testing import FakeStream, ManualClock

pytestmark = pytest.mark.asyncio


def told(heard: list[tuple[bytes, Any]]) -> type[RecordProcessor]:
    """A processor that keeps what records say; the first ``bad`` of each list rejects its batch."""

    class Keeping(RecordProcessor):
        async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> BatchOutcome:
            again = any(data == b"bad" for data, _ in heard)
            heard.extend((record.data, record.redelivery) for record in batch)
            rejected: dict[Record, Any] = {r: Reject("no") for r in batch if r.data == b"bad" and not again}
            return rejected or None

    return Keeping


async def test_after_a_resume_only_what_was_handed_over_may_have_come_before() -> None:
    """Not what had been read ahead of the record that halted it, nor what comes later, to a later owner either."""
    clock, heard = ManualClock(), list[tuple[bytes, Any]]()
    stream = FakeStream(clock=clock)
    stream.put("a", "bad", "c")
    async with stream.worker(told(heard), delivery={"batch": {"max_records": 1}}) as worker:
        await clock.advance(5)
        assert heard == [(b"a", None), (b"bad", None)]
        await worker.resume()
        await clock.advance(10)
        stream.put("d")
        await clock.advance(5)
    assert heard[2:] == [(b"bad", MAYBE), (b"c", None), (b"d", None)]
    heard.clear()
    stream.put("e")
    async with stream.worker(told(heard)):
        await clock.advance(5)
    assert heard == [(b"e", None)]


async def test_after_a_seek_only_what_was_handed_over_may_have_come_before() -> None:
    """To whomever: also what an owner before this one had."""
    clock, heard = ManualClock(), list[tuple[bytes, Any]]()
    stream = FakeStream(clock=clock)
    stream.put("a", "b")
    async with stream.worker(told(heard)):
        await clock.advance(5)
    async with stream.worker(told(heard)) as worker:
        await clock.advance(5)
        await worker.seek("trim_horizon")
        await clock.advance(5)
        stream.put("c")
        await clock.advance(5)
    assert heard == [(b"a", None), (b"b", None), (b"a", MAYBE), (b"b", MAYBE), (b"c", None)]
