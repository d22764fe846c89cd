"""Runs of processors that give records to batchers."""

from typing import ClassVar

import pytest

from kcl_py import Batched, Batcher, Record, RecordProcessor, ToBatch
from kcl_py.outcomes import BatchOutcome, RecordOutcome
from kcl_py.testing import record, run_processor

pytestmark = pytest.mark.asyncio
KEYED = [record(text, key=text[0]) for text in ("a1", "b1", "a2", "b2", "a3")]


class Archive(RecordProcessor):
    """Keeps records three at a time, and some of them only when they come again."""

    batchers: ClassVar = {"s3": Batcher(max_records=3, max_age_s=30)}

    def __init__(self) -> None:
        self.kept: list[bytes] = []

    async def process(self, record: Record) -> RecordOutcome:
        return ToBatch("s3", value=record.data)

    async def handle_batch(self, batch: Batched) -> BatchOutcome:
        failed = {record: ValueError("no") for record, value in batch if value == b"b1" and record.redelivery is None}
        self.kept += [value for record, value in batch if record not in failed]
        return failed


async def test_records_are_finished_when_their_batch_is() -> None:
    """The run goes on until then; a record counts as handed over once, to ``process``."""
    run = await run_processor(Archive, KEYED)
    assert sorted(run.finished) == sorted(run.processors[0].kept) == [b"a1", b"a2", b"a3", b"b1", b"b2"]
    assert (run.redelivered, len(run.acknowledged)) == ([], 5)
    calls = [call for call in run.calls if call.hook == "handle_batch"]
    assert [call.batched.trigger for call in calls if call.batched] == ["size", "size", "age"]


async def test_records_in_a_batcher_come_again_after_a_crash() -> None:
    """They are not finished, so no checkpoint covers them."""
    run = await run_processor(Archive, KEYED[:2], crash_at="b1")
    assert (run.finished, run.acknowledged) == ([], [])
