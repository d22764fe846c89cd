"""How a Pipeline hands records over: in which batches, when it may, and what becomes of failures."""

import asyncio
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from structlog.testing import LogCapture

from kcl_py.leases.row import Halt, LeaseRow
from kcl_py.processor import Checkpointer
from kcl_py.records import RecordBatch, SequenceNumber
from kcl_py.sources.source import Position, PositionKind, ShardInfo
from kcl_py.tree.messages import Complete, Confirm, Confirmed, Drained, DropAhead, Halted, PipelineStarted, Progress
from tests.kcl_py.tree.pipelines import Failing, Played, a_pipeline, handed_over
from tests.kcl_py.tree.stage import SHARD, ScriptedSource, some_records, some_reply, until
from tests.simloop import simulated


async def forever(batch: RecordBatch, checkpointer: Checkpointer) -> None:
    await asyncio.Event().wait()


@simulated
async def test_pipeline_reads_and_calls_nothing_before_it_is_started() -> None:
    """A Pipeline is born stopped: no GetRecords and no hook before the lease is held."""
    source = ScriptedSource(some_records(1))
    async with a_pipeline(source=source) as played:
        await asyncio.sleep(30)
        assert not source.opened
        assert not played.hooks()
        played.begin()
        await handed_over(played, batches=1)
        assert played.hooks() == ["initialize"]
        assert played.lease.of(PipelineStarted)


@simulated
async def test_pipeline_begins_after_the_stored_checkpoint() -> None:
    """S3-30: the first read of an ownership is after the checkpoint of its row."""
    source = ScriptedSource()
    async with a_pipeline(source=source) as played:
        played.begin(LeaseRow(SHARD, checkpoint="41"))
        await until(lambda: source.opened)
        assert source.opened == [Position(PositionKind.AFTER, 41)]


@simulated
async def test_pipeline_begins_at_the_stored_instant_when_there_is_no_checkpoint_yet() -> None:
    """A shard begun at ``latest`` is read from the instant in its row until its first checkpoint."""
    source = ScriptedSource()
    row = LeaseRow(SHARD, checkpoint="LATEST")
    async with a_pipeline(source=source) as played:
        played.begin(replace(row, native=replace(row.native, start_ms=1234)))
        await until(lambda: source.opened)
        assert source.opened == [Position(PositionKind.AT_TIMESTAMP, 1234)]


@simulated
@pytest.mark.parametrize(
    ("checkpoint", "said"),
    [
        ("LATEST", "LATEST 1970-01-01T00:00:01.234Z"),
        ("AT_TIMESTAMP", "AT_TIMESTAMP 1970-01-01T00:00:01.234Z"),
        ("TRIM_HORIZON", "TRIM_HORIZON"),
        ("41", "41"),
    ],
)
async def test_pipeline_says_from_which_instant_it_reads(log: LogCapture, checkpoint: str, said: str) -> None:
    """Who asked for a time sees that it is that one."""
    async with a_pipeline() as played:
        row = LeaseRow(SHARD, checkpoint=checkpoint)
        played.begin(replace(row, native=replace(row.native, start_ms=1234)))
        await played.lease.hears(PipelineStarted)
        await until(lambda: any(entry["event"] == "kcl_py.shard.started" for entry in log.entries))
    [started] = [entry for entry in log.entries if entry["event"] == "kcl_py.shard.started"]
    assert started["position"] == said


@simulated
async def test_pipeline_cuts_batches_by_records() -> None:
    """``delivery.batch.max_records`` bounds a batch; no record is lost between two."""
    async with a_pipeline(some_records(10), delivery={"batch": {"max_records": 4}}) as played:
        played.begin()
        await handed_over(played, batches=3)
        assert played.numbers() == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10]]


@simulated
async def test_pipeline_cuts_batches_by_bytes_but_hands_over_a_larger_record_alone() -> None:
    """``delivery.batch.max_bytes`` bounds a batch of more than one record."""
    records = [*some_records(3, size_bytes=40), *some_records(1, first=4, size_bytes=300), *some_records(1, first=5)]
    async with a_pipeline(records, delivery={"batch": {"max_bytes": 100}}) as played:
        played.begin()
        await handed_over(played, batches=4)
        assert played.numbers() == [[1, 2], [3], [4], [5]]


@simulated
async def test_pipeline_hands_over_one_batch_at_a_time() -> None:
    """The next batch waits until the one in hand has returned, however much has been read."""
    async with a_pipeline(*(some_records(2, first=1 + 2 * n) for n in range(5))) as played:
        played.stage.diary.work_s = 3.0
        played.begin()
        await handed_over(played, batches=5)
        assert all(after.begun_at >= before.ended_at for before, after in pairwise(played.handovers))


@simulated
async def test_pipeline_drops_records_at_or_before_the_last_received_one() -> None:
    """An iterator that points backwards repeats nothing within an ownership."""
    replies = [some_records(3), some_records(3), some_records(4, first=2), some_records(1, first=6)]
    async with a_pipeline(*replies) as played:
        played.begin()
        await handed_over(played, batches=3)
        await asyncio.sleep(5)
        assert played.numbers() == [[1, 2, 3], [4, 5], [6]]


@simulated
async def test_pipeline_goes_on_reading_when_replies_hold_only_repeated_records() -> None:
    """What is dropped gives its room back, so repetitions without end do not stop the shard."""
    replies = [some_records(10, size_bytes=10)] * 30
    window = {"prefetch_records": 20, "prefetch_bytes": 200}
    async with a_pipeline(*replies, some_records(1, first=11), fetch=window) as played:
        played.begin()
        await handed_over(played, batches=2)
        assert played.numbers()[-1] == [11]


@simulated
async def test_pipeline_tells_the_end_of_the_finished_records_after_each_batch() -> None:
    """S3-35: progress is the last record of what has returned, never of what was only handed over."""
    async with a_pipeline(some_records(2), some_records(2, first=3)) as played:
        played.stage.diary.work_s = 1.0
        played.begin()
        await until(lambda: played.lease.of(Progress) and played.lease.of(Progress)[-1].records == 4)
        for told in played.lease.of(Progress):
            returned = [handover for handover in played.handovers if handover.records[-1].position == told.prefix]
            assert told.prefix is None or returned[0].is_done
        assert played.lease.of(Progress)[-1].prefix == SequenceNumber(4)


@simulated
async def test_pipeline_repeats_a_failed_batch_with_backoff_and_says_why(log: LogCapture) -> None:
    """A batch that raised comes again whole, with attempt and reason, and nothing after it comes first."""
    backoff = {"retries": 3, "backoff_s": 1.0, "backoff_max_s": 3.0}
    async with a_pipeline(some_records(2), some_records(2, first=3), work=Failing(3), delivery=backoff) as played:
        played.begin()
        await handed_over(played, batches=5)
        assert played.numbers() == [[1, 2]] * 4 + [[3, 4]]
        told = [
            handover.redelivery and (handover.redelivery.attempt, handover.redelivery.reason)
            for handover in played.handovers
        ]
        again = "ValueError: no such user"
        assert told == [None, (2, again), (3, again), (4, again), None]
        pauses = [after.begun_at - before.ended_at for before, after in pairwise(played.handovers[:4])]
        assert all(0 <= pause <= longest + 0.1 for pause, longest in zip(pauses, (1.0, 2.0, 3.0), strict=True))
        failed = [entry for entry in log.entries if entry["event"] == "kcl_py.batch.failed"][:3]
        assert [entry["attempt"] for entry in failed] == [1, 2, 3]
        assert [entry["retry_in_s"] for entry in failed] == pytest.approx(pauses, abs=0.01)


@simulated
async def test_pipeline_halts_and_holds_its_place_when_retries_are_used_up(log: LogCapture) -> None:
    """A batch that keeps failing is passed over neither by later ones nor by the checkpoint, and says so."""
    source = ScriptedSource(some_records(2), some_records(2, first=3), some_records(2, first=5))
    work = Failing(99, RuntimeError("broken " * 100))

    async def first_works(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        if batch.first.value > 2:
            await work(batch, checkpointer)

    async with a_pipeline(source=source, work=first_works, delivery={"retries": 2, "backoff_s": 0.1}) as played:
        played.begin()
        halted = await played.lease.hears(Halted)
        assert halted.halt.position == "3"
        assert halted.halt.error.startswith("RuntimeError: broken broken")
        assert len(halted.halt.error) <= 200, "the row stays small"
        reads = len(source.fetched)
        await asyncio.sleep(60)
        assert played.numbers() == [[1, 2], [3, 4], [3, 4], [3, 4]]
        assert len(source.fetched) <= reads + 1, "a halted shard is not read any further"
        assert played.lease.of(Progress)[-1].prefix == SequenceNumber(2)
        [entry] = [entry for entry in log.entries if entry["event"] == "kcl_py.shard.halted"]
        assert (entry["position"], entry["attempts"], entry["log_level"]) == ("3", 3, "error")
        assert "restart" in entry["how_to_resume"]
        assert "docs/leases.md" in entry["how_to_resume"]


@simulated
async def test_pipeline_gives_its_memory_back_when_it_halts() -> None:
    """A shard that stands still holds nothing of the budget that the worker's other shards read with."""
    delivery: dict[str, Any] = {"retries": 1, "backoff_s": 2.0, "batch": {"max_records": 4}}
    async with a_pipeline(some_records(10), work=Failing(99), fetch={"budget_bytes": 1}, delivery=delivery) as played:
        played.begin()
        await played.lease.hears(Halted)
        await played.stage.finds_memory_free()


@simulated
async def test_pipeline_is_read_no_further_than_max_ahead_bytes_beyond_what_is_finished() -> None:
    """``delivery.max_ahead.bytes``: reading waits for the unbroken run of finished records, and goes on with it."""
    source = ScriptedSource(*(some_records(2, first=1 + 2 * n, size_bytes=50) for n in range(10)))
    async with a_pipeline(source=source, delivery={"max_ahead": {"bytes": 250}, "batch": {"max_records": 1}}) as played:
        played.stage.diary.work_s = 10.0
        played.begin()
        await asyncio.sleep(5)
        assert len(source.fetched) == 3, "one reply may go over, none begins without room"
        await asyncio.sleep(10)
        assert len(source.fetched) == 3, "250 bytes are not finished yet"
        await asyncio.sleep(10)
        assert len(source.fetched) == 4


@simulated
async def test_pipeline_drops_what_was_read_ahead_of_a_batch_that_the_fence_holds_back() -> None:
    """It can make room for other shards then too, and nothing is lost by that, or handed over twice."""
    source = ScriptedSource(some_records(2), some_records(2, first=3), some_records(2, first=5))
    async with a_pipeline(source=source) as played:
        played.stage.diary.work_s = 5.0
        played.begin()
        await asyncio.sleep(2.0)
        played.stage.stand_still()
        await asyncio.sleep(1.0)
        played.stage.keep_pulse()
        await played.lease.hears(Confirm)
        source.replies.append(some_reply(some_records(3, first=5), is_end=True))
        played.ref.tell(DropAhead())
        await asyncio.sleep(10.0)
        assert len(played.handovers) == 1
        played.fence.confirmed_at = played.stage.clock.monotonic()
        played.ref.tell(Confirmed())
        await played.lease.hears(Complete)
        assert source.opened[1:] == [Position(PositionKind.AFTER, 4)]
        assert played.numbers() == [[1, 2], [3, 4], [5, 6, 7]]


@simulated
async def test_pipeline_reads_on_at_once_when_it_is_called_in_with_no_batch_in_hand() -> None:
    """The call may come too late: what it was for has been finished by then."""
    source = ScriptedSource(some_records(2))
    async with a_pipeline(source=source) as played:
        played.begin()
        await asyncio.sleep(2.0)
        played.ref.tell(DropAhead())
        source.replies.append(some_reply(some_records(3, first=3), is_end=True))
        await played.lease.hears(Complete)
        assert source.opened[1:] == [Position(PositionKind.AFTER, 2)]
        assert played.numbers() == [[1, 2], [3, 4, 5]]


@pytest.mark.parametrize("after_s", [0.0, 3.0, 12.0], ids=["initializing", "ending", "ended"])
@simulated
async def test_pipeline_drops_nothing_when_nothing_is_read_ahead(after_s: float) -> None:
    """A call for memory that comes too early or too late changes nothing."""
    source = ScriptedSource(some_reply(some_records(2), is_end=True))
    async with a_pipeline(source=source) as played:

        async def shard_ended(self: object, checkpointer: object) -> None:
            await asyncio.sleep(10)

        played.stage.worker.processor.shard_ended = shard_ended  # type: ignore[method-assign]
        played.begin()
        await asyncio.sleep(after_s)
        played.ref.tell(DropAhead())
        await asyncio.sleep(20)
        assert played.lease.of(Complete) == [Complete(SequenceNumber(2), ())]
        assert len(source.opened) == 1


@simulated
async def test_pipeline_halts_when_initialize_keeps_raising() -> None:
    """``initialize`` has the same retries; no record is handed to a processor that is not prepared."""
    calls: list[float] = []
    async with a_pipeline(some_records(1), delivery={"retries": 2, "backoff_s": 0.1}) as played:

        async def initialize(self: object, shard: object) -> None:
            calls.append(played.stage.clock.monotonic())
            raise OSError("no disk")

        played.stage.worker.processor.initialize = initialize  # type: ignore[method-assign]
        played.begin()
        halted = await played.lease.hears(Halted)
        assert halted.halt == Halt("OSError: no disk", "TRIM_HORIZON")
        assert len(calls) == 3
        assert not played.handovers
        assert not played.lease.of(PipelineStarted)


@simulated
async def test_pipeline_repeats_only_what_the_processor_has_not_checkpointed_itself() -> None:
    """A batch that failed half-way comes again from there, and one that failed after its end does not."""
    ends: list[int] = []

    async def fail_after(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        ends.append(len(batch))
        at = batch.records[1] if len(ends) == 1 else batch.records[-1]
        played.stage.diary.done.add(at.data)
        asked = asyncio.ensure_future(checkpointer.checkpoint(at))
        await asyncio.sleep(0.1)
        asked.cancel()
        if len(ends) <= 2:
            raise ValueError("no such user")

    played: Played
    async with a_pipeline(some_records(5), some_records(1, first=6), work=fail_after) as played:
        played.begin()
        await handed_over(played, batches=3)
        assert played.numbers() == [[1, 2, 3, 4, 5], [3, 4, 5], [6]]
        await until(lambda: played.lease.of(Progress)[-1].prefix == SequenceNumber(6))


@simulated
async def test_pipeline_completes_an_empty_closed_shard() -> None:
    """S3-37: the end of a shard without records is its end all the same."""
    children = (ShardInfo("shardId-000000000001", (SHARD,)),)
    async with a_pipeline(replace(some_reply([], is_end=True), children=children)) as played:
        played.begin()
        assert await played.lease.hears(Complete) == Complete(None, children)
        assert played.hooks() == ["initialize", "shard_ended"]


@simulated
async def test_pipeline_delivers_the_last_records_before_the_end_that_comes_with_them() -> None:
    """B-01: ``shard_ended`` and completion follow the return of the last batch, not its arrival."""
    async with a_pipeline(some_reply(some_records(3), is_end=True), delivery={"batch": {"max_records": 2}}) as played:
        played.stage.diary.work_s = 5.0
        played.begin()
        await played.lease.hears(Complete)
        assert played.numbers() == [[1, 2], [3]]
        [ended] = played.stage.diary.called("shard_ended")
        assert ended.at >= played.handovers[-1].ended_at >= 10.0


@simulated
async def test_pipeline_calls_shard_ended_once_per_attempt_and_halts_when_it_keeps_raising() -> None:
    """A shard whose end the processor cannot take is not completed."""
    calls: list[int] = []
    end = some_reply(some_records(1), is_end=True)
    async with a_pipeline(end, delivery={"retries": 1, "backoff_s": 0.1}) as played:

        async def shard_ended(self: object, checkpointer: object) -> None:
            calls.append(1)
            raise OSError("no disk")

        played.stage.worker.processor.shard_ended = shard_ended  # type: ignore[method-assign]
        played.begin()
        await played.lease.hears(Halted)
        assert len(calls) == 2
        assert not played.lease.of(Complete)
        assert not played.lease.of(Drained)


@simulated
async def test_exit_from_a_hook_is_a_failure_like_any_other(log: LogCapture) -> None:
    """``sys.exit`` in user code must not take the worker down with all its leases; it is tried again, and named."""
    source = ScriptedSource(some_records(1))
    exiting = Failing(1, SystemExit(7))
    async with a_pipeline(source=source, work=exiting) as played:
        played.begin()
        await handed_over(played, batches=2)
        [failed] = [entry for entry in log.entries if entry["event"] == "kcl_py.batch.failed"]
        assert failed["error"].startswith("ProcessorError: cannot exit from ")
        assert "SystemExit(7)" in failed["error"]
