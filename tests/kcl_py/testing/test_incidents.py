"""What a processor goes through when its worker is stopped, loses a lease, fails or dies in the middle."""

import asyncio
from typing import ClassVar, TypeVar

import pytest

from kcl_py import Checkpointer, LeaseLostError, RecordBatch, RecordProcessor
from kcl_py.testing import FakeStream, ScriptedError, record, run_processor

pytestmark = pytest.mark.asyncio
SHARD = "shardId-000000000000"
EACH_RECORD = {"checkpoint": {"records": 1}}
"""Checkpoints after every finished batch, not with the heartbeats alone."""


S = TypeVar("S", bound="Stores")


class Stores(RecordProcessor):
    """Puts each record where a crash does not reach."""

    database: ClassVar[list[bytes]]

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        self.database.extend(each.data for each in batch)


class Hoards(Stores):
    """Keeps records in memory until it has three: the mistake that a test should show."""

    def __init__(self) -> None:
        self.kept: list[bytes] = []

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        self.kept += [each.data for each in batch]
        if len(self.kept) >= 3:
            self.flush()

    async def shutdown_requested(self, checkpointer: Checkpointer) -> None:
        self.flush()

    def flush(self) -> None:
        self.database.extend(self.kept)
        self.kept = []


def fresh(processor: type[S]) -> type[S]:
    """Return the class with a database of its own."""
    return type(processor.__name__, (processor,), {"database": []})


async def test_stop_finishes_the_batch_in_hand_and_leaves_the_rest() -> None:
    """Asked at the second of three batches, the worker hands over no more, and nothing comes again."""
    processor = fresh(Stores)

    run = await run_processor(processor, ["a", "b", "c"], batch_size=1, stop_at="b")
    assert run.hooks == ["initialize", "process_records", "process_records", "shutdown_requested"]
    assert run.acknowledged == run.delivered == [b"a", b"b"]
    assert run.outcome is not None
    assert run.outcome.is_clean
    again = await run_processor(processor, stream=run.stream)
    assert again.delivered == [b"c"]
    assert processor.database == [b"a", b"b", b"c"]


async def test_stop_cuts_off_a_hook_that_outlasts_the_grace() -> None:
    """On the manual clock; what it had in hand comes again."""
    stream = FakeStream()

    class TooSlow(RecordProcessor):
        async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
            await stream.clock.sleep(60)

    run = await run_processor(TooSlow, ["a"], stream=stream, stop_at="a", options={"grace_s": 20})
    assert run.hooks == ["initialize", "process_records", "lease_lost"]
    assert isinstance(run.calls[1].error, asyncio.CancelledError)
    assert run.unacknowledged == [b"a"]
    assert run.outcome is not None
    assert run.outcome.unfinished == 1
    assert 1020 <= stream.clock.monotonic() < 1030


async def test_lost_lease_is_told_and_nothing_more_is_stored() -> None:
    """The batch in hand was processed in good faith, and comes again to whoever takes the shard next."""
    processor = fresh(Stores)

    run = await run_processor(processor, ["a", "b", "c"], batch_size=1, lose_lease_at="b", options=EACH_RECORD)
    assert run.hooks[-1] == "lease_lost"
    assert run.hooks.count("lease_lost") == 1
    assert "shutdown_requested" not in run.hooks
    assert run.acknowledged == [b"a"]
    again = await run_processor(processor, stream=run.stream)
    assert again.delivered == again.acknowledged[1:] == [b"b", b"c"]


async def test_checkpoint_after_the_lease_is_lost_raises() -> None:
    """In the hook itself, where the processor can do something about it."""
    seen: list[Exception] = []

    class Asks(RecordProcessor):
        async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
            try:
                await checkpointer.checkpoint(batch)
            except LeaseLostError as error:
                seen.append(error)
                raise

    run = await run_processor(Asks, ["a", "b"], batch_size=1, lose_lease_at="b", checkpoint="manual")
    assert [type(error) for error in seen] == [LeaseLostError]
    assert run.hooks == ["initialize", "process_records", "process_records", "lease_lost"]
    assert run.acknowledged == [b"a"]


async def test_scripted_failure_has_a_processed_batch_come_again() -> None:
    """Once: what the processor did for it has been done twice then."""
    processor = fresh(Stores)

    run = await run_processor(processor, ["a", "b", "c"], batch_size=2, fail_at="b")
    assert run.delivered == processor.database == [b"a", b"b", b"a", b"b", b"c"]
    assert run.redelivered == [b"a", b"b"]
    assert isinstance(run.calls[1].error, ScriptedError)
    assert run.batches[1].redelivery is not None
    assert run.batches[1].redelivery.reason.startswith("ScriptedError: cannot finish a batch of")
    assert run.acknowledged == [b"a", b"b", b"c"]
    assert run.error is None


async def test_scripted_failure_without_retries_halts_the_shard() -> None:
    """As any other failure does."""
    run = await run_processor(fresh(Stores), ["a"], fail_at="a", retries=0)
    assert isinstance(run.error, ScriptedError)
    assert list(run.halted) == [SHARD]


async def test_crash_stores_nothing_more_and_calls_no_hook() -> None:
    """What comes again is what no checkpoint covered, beginning with the record after it."""
    processor = fresh(Stores)

    run = await run_processor(processor, ["a", "b", "c"], batch_size=1, crash_at="b", options=EACH_RECORD)
    assert run.hooks == ["initialize", "process_records", "process_records"]
    assert (run.finished, run.acknowledged, run.unacknowledged) == ([b"a"], [b"a"], [b"b", b"c"])
    assert run.outcome is None
    assert run.error is None
    assert processor.database == [b"a", b"b"]
    again = await run_processor(processor, stream=run.stream)
    assert again.delivered == [b"b", b"c"]
    assert again.acknowledged == [b"a", b"b", b"c"]


async def test_crash_before_the_first_checkpoint_repeats_all() -> None:
    """Checkpoints go with heartbeats, and none was due."""
    run = await run_processor(fresh(Stores), ["a", "b", "c"], batch_size=1, crash_at="b")
    assert (run.delivered, run.acknowledged) == ([b"a", b"b"], [])
    assert run.checkpoints == {SHARD: "TRIM_HORIZON"}
    again = await run_processor(fresh(Stores), stream=run.stream)
    assert again.delivered == [b"a", b"b", b"c"]


@pytest.mark.parametrize("at", ["a", "b", "c", "d", "e"])
async def test_crash_shows_a_processor_that_lets_go_of_what_it_has_not_stored(at: str) -> None:
    """All that is acknowledged is in the database, wherever the worker dies; one that hoards breaks this."""
    good_one, bad_one = fresh(Stores), fresh(Hoards)
    good = await run_processor(good_one, list("abcde"), batch_size=1, crash_at=at, options=EACH_RECORD)
    assert set(good.acknowledged) <= set(good_one.database)
    bad = await run_processor(bad_one, list("abcde"), batch_size=1, crash_at=at, options=EACH_RECORD)
    assert (set(bad.acknowledged) <= set(bad_one.database)) == (at not in "be")
    await run_processor(good_one, stream=good.stream)
    await run_processor(bad_one, stream=bad.stream)
    assert set(good_one.database) == {b"a", b"b", b"c", b"d", b"e"}
    assert (set(bad_one.database) == set(good_one.database)) == (at not in "be")


async def test_crash_ends_all_shards_of_the_worker() -> None:
    """What their hooks are at is cancelled, and stored by nobody."""
    stream = FakeStream(shards=2)
    has_begun = asyncio.Event()

    class Waits(RecordProcessor):
        async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
            if batch.shard_id == SHARD:
                has_begun.set()
                await asyncio.Event().wait()
            await has_begun.wait()

    records = [record("stuck", hash_key=0), record("fatal", hash_key=2**128 - 1)]
    run = await run_processor(Waits, records, stream=stream, crash_at="fatal")
    assert run.acknowledged == []
    assert isinstance(run.of(SHARD).calls[-1].error, asyncio.CancelledError)
    assert set(run.checkpoints.values()) == {"TRIM_HORIZON"}


async def test_incidents_can_be_combined() -> None:
    """A failure, and a crash while the batch comes again."""
    run = await run_processor(fresh(Stores), ["a", "b"], batch_size=1, fail_at="a", crash_at="b", options=EACH_RECORD)
    assert run.delivered == [b"a", b"a", b"b"]
    assert run.acknowledged == [b"a"]
