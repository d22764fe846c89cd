"""Runs of processors that take records one by one."""

from typing import ClassVar

import pytest

from kcl_py import Record, RecordProcessor, Reject, Retry
from kcl_py.outcomes import RecordOutcome
from kcl_py.testing import FakeStream, ScriptedError, record, run_processor

pytestmark = pytest.mark.asyncio
KEYED = [record(text, key=text[0]) for text in ("a1", "b1", "a2", "b2")]


class Keeps(RecordProcessor):
    """Keeps what it is given, once it has been asked as often as it wants."""

    answers: ClassVar[dict[bytes, RecordOutcome]] = {}

    def __init__(self) -> None:
        self.kept: list[bytes] = []

    async def process(self, record: Record) -> RecordOutcome:
        if record.data in self.answers and record.redelivery is None:
            return self.answers[record.data]
        self.kept.append(record.data)
        return None


class KeepsMost(Keeps):
    """Wants one again and one never."""

    answers: ClassVar[dict[bytes, RecordOutcome]] = {b"a1": Retry(after_s=60), b"b1": Reject("no")}


async def test_each_record_is_a_call_and_counts_as_finished_when_it_is() -> None:
    """In the order of its key."""
    run = await run_processor(Keeps, KEYED)
    assert run.hooks == ["initialize", *["process"] * 4, "shutdown_requested"]
    assert (
        sorted(run.delivered) == sorted(run.finished) == sorted(run.processors[0].kept) == [b"a1", b"a2", b"b1", b"b2"]
    )
    assert len(run.acknowledged) == 4
    assert run.batches == []
    run.assert_key_order(run.processors[0].kept)


@pytest.mark.parametrize("checkpoint", ["auto", "manual"])
async def test_run_goes_on_until_what_is_put_off_is_finished_and_what_is_rejected_given_up(checkpoint: str) -> None:
    """Also where no checkpoint tells of it."""
    run = await run_processor(
        KeepsMost, KEYED, options={"delivery": {"on_failure": "skip"}, "checkpoint": {"mode": checkpoint}}
    )
    assert sorted(run.processors[0].kept) == sorted(run.finished) == [b"a1", b"a2", b"b2"]
    assert run.redelivered == [b"a1"]
    assert [call.record.data for call in run.calls if call.hook == "handle_failed" and call.record] == [b"b1"]
    assert len(run.acknowledged) == (4 if checkpoint == "auto" else 0)


async def test_run_ends_where_a_record_halts_its_shard() -> None:
    """With what it ended with."""
    run = await run_processor(KeepsMost, KEYED)
    assert list(run.halted) == ["shardId-000000000000"]
    assert b"b1" in run.unacknowledged


async def test_incidents_happen_at_a_record() -> None:
    """Failure, crash, stop and loss, as at a batch."""
    failed = await run_processor(Keeps, KEYED, fail_at="a1")
    assert failed.redelivered == [b"a1"]
    assert isinstance(failed.calls[1].error, ScriptedError)
    crashed = await run_processor(Keeps, KEYED, crash_at="a2")
    assert crashed.outcome is None
    assert b"a2" in crashed.unacknowledged
    again = await run_processor(Keeps, stream=crashed.stream)
    assert set(crashed.unacknowledged) == set(again.delivered)
    lost = await run_processor(Keeps, KEYED, lose_lease_at="b1")
    assert lost.hooks[-1] == "lease_lost"
    stopped = await run_processor(Keeps, KEYED, stream=FakeStream(), stop_at="a1")
    assert set(stopped.acknowledged) <= set(stopped.finished)
    assert b"a1" in stopped.finished
