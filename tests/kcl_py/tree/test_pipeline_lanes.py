"""``process``: records one by one, in lanes of a key, and what becomes of each."""

import asyncio
from typing import ClassVar

import pytest
from structlog.testing import LogCapture

from kcl_py import (
    Batched,
    Batcher,
    Checkpointer,
    Record,
    RecordBatch,
    RecordProcessor,
    Redelivery,
    Reject,
    Retry,
    ToBatch,
)
from kcl_py.delivery.earlier import Earlier
from kcl_py.leases.row import Halt, Later, LeaseRow, Native
from kcl_py.tree.messages import (
    Abandon,
    Complete,
    Confirm,
    Confirmed,
    Drain,
    Drained,
    DropAhead,
    Halted,
    Progress,
    Start,
    Why,
)
from kcl_py.tree.steering import Pause, Rested
from tests.kcl_py.tree.lanes import Desk, at, keyed
from tests.kcl_py.tree.pipelines import EPOCH, Played, a_pipeline
from tests.kcl_py.tree.stage import SHARD, ScriptedSource, some_reply, until
from tests.simloop import simulated

LATER = float("inf")


def prefix(played: Played) -> int:
    """How far the shard is finished, as the Lease has heard it."""
    heard = played.lease.of(Progress)
    return heard[-1].prefix.value if heard and heard[-1].prefix else 0


@simulated
async def test_records_of_a_key_are_serial_and_keys_are_side_by_side() -> None:
    """BW-12: one slow key holds up nothing but itself."""
    desk = Desk(work_s={"1": 5.0})
    async with a_pipeline(keyed("abab"), processor=desk.processor()) as played:
        played.begin()
        await until(lambda: len(desk.done) == 2)
        assert desk.done == ["2", "4"]
        assert prefix(played) == 0
        await until(lambda: prefix(played) == 4)
        assert desk.spans["3"][0][0] >= desk.spans["1"][0][1]


@simulated
async def test_shard_order_is_serial_whatever_the_keys_are() -> None:
    """``ordering: shard``."""
    desk = Desk()
    async with a_pipeline(keyed("abc"), processor=desk.processor(), delivery={"ordering": "shard"}) as played:
        played.begin()
        await until(lambda: prefix(played) == 3)
        assert (desk.numbers(), desk.most_in_hand) == ([1, 2, 3], 1)


@simulated
async def test_without_order_records_of_a_key_are_side_by_side() -> None:
    """``ordering: none``."""
    desk = Desk()
    async with a_pipeline(keyed("aaa"), processor=desk.processor(), delivery={"ordering": "none"}) as played:
        played.begin()
        await until(lambda: prefix(played) == 3)
        assert desk.most_in_hand == 3


@simulated
async def test_no_more_records_are_in_work_than_the_worker_may_have() -> None:
    """``delivery.concurrency``: a slot is taken by whoever comes next, until all is done."""
    desk, keys = Desk(), [str(number) for number in range(50)]
    async with a_pipeline(keyed(keys), processor=desk.processor(), delivery={"concurrency": 7}) as played:
        played.begin()
        await until(lambda: prefix(played) == 50)
        assert desk.most_in_hand == 7
        assert sorted(desk.numbers()) == list(range(1, 51))


@simulated
async def test_failed_record_comes_again_and_its_key_waits(log: LogCapture) -> None:
    """S2-14: it says the attempt, when it first failed and why; nothing else of its key comes before it is done."""
    desk = Desk(answers={"1": [ValueError("no such user"), Retry(reason="busy")]})
    async with a_pipeline(keyed("aab"), processor=desk.processor(), delivery={"backoff_s": 1.0}) as played:
        played.begin()
        await until(lambda: prefix(played) == 3)
        assert [number for number in desk.numbers() if number != 3] == [1, 1, 1, 2]
        first, second, third = (record.redelivery for record in desk.seen if record.sequence_number == "1")
        assert first is None
        assert isinstance(second, Redelivery)
        assert isinstance(third, Redelivery)
        assert (second.attempt, second.reason) == (2, "ValueError: no such user")
        assert (third.attempt, third.reason) == (3, "busy")
        assert second.first_failed_s == third.first_failed_s > 0
        failed = [entry for entry in log.entries if entry["event"] == "kcl_py.batch.failed"]
        assert [(entry["attempt"], entry["error"], entry["hook"], entry["records"]) for entry in failed] == [
            (1, "ValueError: no such user", "process", 1),
            (2, "busy", "process", 1),
        ]


@simulated
async def test_nack_waits_as_long_as_it_says() -> None:
    """S2-10, S2-11: not a moment less, and only for its own key."""
    desk = Desk(answers={"1": [Retry(after_s=30.0)]})
    async with a_pipeline(keyed("aab"), processor=desk.processor()) as played:
        played.begin()
        await until(lambda: prefix(played) == 3, within_s=60.0)
        (_, failed_at), (again_at, _) = desk.spans["1"]
        assert again_at - failed_at == pytest.approx(30.0, abs=0.1)
        assert desk.spans["3"][0][1] < failed_at + 1.0


@simulated
async def test_nack_comes_again_though_its_timer_has_rung_too_early() -> None:
    """Event loops round, and a machine that was frozen has another time than they: it is set again."""
    desk = Desk(answers={"1": [Retry(after_s=10.0)]})
    async with a_pipeline(keyed("a"), processor=desk.processor()) as played:
        played.begin()
        await until(lambda: len(desk.seen) == 1)
        await asyncio.sleep(5.0)
        played.stage.clock.offset_s -= 2.0  # type: ignore[attr-defined]
        await until(lambda: prefix(played) == 1, within_s=20.0)


@simulated
async def test_exhausted_record_halts_its_shard() -> None:
    """The default: nothing more is handed over, and the row says which record it is."""
    desk = Desk(answers={"2": [ValueError("no")] * 3}, work_s={"3": 0.5})
    options = {"retries": 1, "backoff_s": 0.01}
    async with a_pipeline(keyed("abcb"), processor=desk.processor(), delivery=options) as played:
        played.begin()
        halted = await played.lease.hears(Halted)
        assert halted.halt == Halt("ValueError: no", "2")
        await asyncio.sleep(5.0)
        assert (prefix(played), sorted(desk.done)) == (1, ["1", "3"])
        assert desk.numbers().count(4) == 0
        assert [failure.attempts for failure in desk.failures] == [2]


@simulated
async def test_skipped_record_counts_as_finished(log: LogCapture) -> None:
    """``on_failure: skip``: with an error in the log that names it, and no payload."""
    desk = Desk(answers={"2": [ValueError("no")]})
    options = {"retries": 0, "on_failure": "skip"}
    async with a_pipeline(keyed("aaa"), processor=desk.processor(), delivery=options) as played:
        played.begin()
        await until(lambda: prefix(played) == 3)
        (skipped,) = [entry for entry in log.entries if entry["event"] == "kcl_py.record.skipped"]
        assert (skipped["position"], skipped["attempts"], skipped["error"]) == ("2", 1, "ValueError: no")
        assert desk.done == ["1", "3"]


@simulated
async def test_rejected_record_is_not_tried_again() -> None:
    """``Reject`` goes straight to the policy."""
    desk = Desk(answers={"1": [Reject("malformed")]}, policy="skip")
    async with a_pipeline(keyed("a"), processor=desk.processor()) as played:
        played.begin()
        await until(lambda: prefix(played) == 1)
        assert [(each.reason, each.attempts, each.is_rejected) for each in desk.failures] == [("malformed", 1, True)]


@simulated
async def test_crash_of_handle_failed_is_contained(log: LogCapture) -> None:
    """BW-16: what ``on_failure`` says holds then."""
    desk = Desk(answers={"1": [Reject("malformed")]}, policy=RuntimeError("oh"))
    async with a_pipeline(keyed("a"), processor=desk.processor(), delivery={"on_failure": "skip"}) as played:
        played.begin()
        await until(lambda: prefix(played) == 1)
        (failed,) = [entry for entry in log.entries if entry["event"] == "kcl_py.processor.failed"]
        assert (failed["hook"], failed["error"]) == ("handle_failed", "RuntimeError: oh")


@simulated
async def test_attempt_that_takes_too_long_has_failed() -> None:
    """``attempt_timeout_s``: the call is cancelled, and the record comes again."""
    desk = Desk(work_s={"1": 100.0})
    options = {"attempt_timeout_s": 2.0, "retries": 1, "backoff_s": 0.1}
    async with a_pipeline(keyed("ab"), processor=desk.processor(), delivery=options) as played:
        played.begin()
        halted = await played.lease.hears(Halted)
        assert halted.halt.error == "TimeoutError: Desk.processor.<locals>.Lanes.process took longer than 2 s"
        assert [ended - begun for begun, ended in desk.spans["1"]] == pytest.approx([2.0, 2.0])


@simulated
async def test_answer_that_means_nothing_is_a_failure() -> None:
    """A function that returns something by habit does not lose records."""
    desk = Desk(answers={"1": [True]})  # type: ignore[list-item]
    async with a_pipeline(keyed("a"), processor=desk.processor(), delivery={"retries": 0}) as played:
        played.begin()
        halted = await played.lease.hears(Halted)
        assert halted.halt.error == (
            "ProcessorError: cannot use what process returned: expected None, Retry, Reject or ToBatch, found bool"
        )


@simulated
async def test_cancellation_from_within_the_users_code_is_a_failure() -> None:
    """A cancelled future of the user's own does not end the shard, nor lose the record."""
    desk = Desk()
    calls = []

    class Cancelled(desk.processor()):  # type: ignore[misc]
        async def process(self, record: Record) -> None:
            calls.append(record.redelivery)
            if len(calls) == 1:
                raise asyncio.CancelledError

    async with a_pipeline(keyed("a"), processor=Cancelled, delivery={"backoff_s": 0.01}) as played:
        played.begin()
        await until(lambda: prefix(played) == 1)
        assert len(calls) == 2


@simulated
async def test_shard_ends_when_all_lanes_are_done() -> None:
    """``shard_ended`` is called once, after the last record of the slowest key."""
    desk = Desk(work_s={"1": 5.0})
    source = ScriptedSource(some_reply(keyed("ab"), is_end=True))
    async with a_pipeline(source=source, processor=desk.processor()) as played:
        played.begin()
        complete = await played.lease.hears(Complete)
        assert complete.prefix == at(2)
        assert (desk.done, desk.hooks) == (["2", "1"], ["initialize", "shard_ended"])


@simulated
async def test_drain_waits_for_what_runs_and_drops_what_waits() -> None:
    """S2: queued and delayed records are dropped unmarked at once; running ones are finished."""
    desk = Desk(work_s={"1": 3.0, "2": 3.0}, answers={"4": [Retry(after_s=100.0)]})
    async with a_pipeline(keyed("abac"), processor=desk.processor()) as played:
        played.begin()
        await until(lambda: len(desk.seen) == 3)
        await asyncio.sleep(0.1)
        played.ref.tell(Drain(Why.STOP, LATER))
        drained = await played.lease.hears(Drained)
        assert drained == Drained(at(2), at(4), 0)
        assert desk.hooks == ["initialize", "shutdown_requested"]
        assert desk.numbers() == [1, 2, 4]


@simulated
async def test_drain_that_is_out_of_time_says_what_comes_again() -> None:
    """Records in the processor's hands are cancelled and not finished."""
    desk = Desk(work_s={"1": 100.0, "2": 100.0})
    async with a_pipeline(keyed("abc"), processor=desk.processor()) as played:
        played.begin()
        await until(lambda: desk.done == ["3"])
        played.ref.tell(Drain(Why.STOP, played.stage.clock.monotonic() + 1.0))
        drained = await played.lease.hears(Drained)
        assert drained == Drained(None, at(3), 2)
        assert desk.hooks == ["initialize", "lease_lost"]


@simulated
async def test_abandoned_records_free_their_slots() -> None:
    """A shard that is lost takes nothing from the others."""
    desk = Desk(work_s={str(number): 100.0 for number in range(1, 4)})
    async with a_pipeline(keyed("abc"), processor=desk.processor(), delivery={"concurrency": 2}) as played:
        played.begin()
        await until(lambda: desk.most_in_hand == 2)
        played.ref.tell(Abandon())
        await played.lease.hears(Drained)
        desk.work_s.clear()
        played.ref.tell(Start(played.lease.ref, LeaseRow(SHARD), played.stage.fence(), EPOCH + 1))
        played.stage.worker.source.replies.append(keyed("abc"))  # type: ignore[attr-defined]
        await until(lambda: prefix(played) == 3)


@simulated
async def test_nothing_is_handed_over_while_the_fence_forbids_it() -> None:
    """Rule 6: asked before each record; a heartbeat is asked for, and then it goes on where it was."""
    desk = Desk(work_s={"1": 2.0})
    async with a_pipeline(keyed("aab"), processor=desk.processor()) as played:
        played.begin()
        await until(lambda: desk.done == ["3"])
        played.stage.stand_still()
        await asyncio.sleep(1.5)
        played.stage.keep_pulse()
        await played.lease.hears(Confirm)
        await asyncio.sleep(10.0)
        assert desk.numbers() == [1, 3]
        played.fence.confirmed_at = played.stage.clock.monotonic()
        played.ref.tell(Confirmed())
        await until(lambda: prefix(played) == 3)
        assert desk.numbers() == [1, 3, 2]


@simulated
async def test_reading_stops_when_one_record_holds_up_too_many() -> None:
    """``max_ahead``: other lanes go on within it, and reading goes on when the record is done."""
    desk = Desk(work_s={"1": 50.0})
    replies = [keyed("a" + "b" * 9), *(keyed("b" * 10, first=first) for first in (11, 21, 31))]
    async with a_pipeline(*replies, processor=desk.processor(), delivery={"max_ahead": {"records": 20}}) as played:
        played.begin()
        await asyncio.sleep(20.0)
        assert max(desk.numbers()) == 20
        await until(lambda: prefix(played) == 40, within_s=60.0)


@simulated
async def test_memory_that_others_wait_for_is_given_back() -> None:
    """What was taken in and not handed over is dropped, and read again once the rest is done."""
    desk = Desk(work_s={"1": 20.0})
    source = ScriptedSource(keyed("aa"), keyed("a", first=3), keyed("a", first=4))
    async with a_pipeline(source=source, processor=desk.processor()) as played:
        played.begin()
        await asyncio.sleep(5.0)
        played.ref.tell(DropAhead())
        source.replies.append(keyed("aa", first=3))
        await until(lambda: prefix(played) == 4, within_s=60.0)
        assert desk.numbers() == [1, 2, 3, 4]


@simulated
async def test_what_an_earlier_owner_may_have_had_says_maybe() -> None:
    """S2-14: by its number where that is known, else by when it arrived; and None for the rest, certainly."""
    desk = Desk()
    records = [Record(str(number), b"", "a", float(number)) for number in range(1, 6)]
    async with a_pipeline(records, processor=desk.processor()) as played:
        played.ref.tell(Start(played.lease.ref, LeaseRow(SHARD), played.fence, EPOCH, Earlier(to=2, before_s=4.0)))
        await until(lambda: prefix(played) == 5)
        assert [record.redelivery for record in desk.seen] == ["maybe", "maybe", "maybe", None, None]


@simulated
async def test_what_is_put_off_and_what_holds_up_the_reading_is_told_to_the_lease() -> None:
    """S2-13: so that it comes into the row; also once the worker stops, and gone when the record is done."""
    desk = Desk(answers={"1": [Retry(after_s=30.0), Retry(after_s=60.0)]})
    delivery = {"max_ahead": {"records": 4}}
    async with a_pipeline(keyed("abbb"), processor=desk.processor(), delivery=delivery) as played:
        played.begin()
        await asyncio.sleep(10.0)
        told = played.lease.of(Progress)[-1]
        now_ms = played.stage.clock.time() * 1000
        assert [each.sequence_number for each in told.later] == ["1"]
        assert told.later[0].due_ms == pytest.approx(now_ms + 20_000, abs=500)
        assert told.held_by == "1"
        await asyncio.sleep(30.0)
        played.ref.tell(Drain(Why.STOP, LATER))
        await played.lease.hears(Drained)
        assert [each.sequence_number for each in played.lease.of(Progress)[-1].later] == ["1"]


@simulated
async def test_what_an_owner_before_has_put_off_waits_until_it_is_due() -> None:
    """S2-13: not before, and then like any other; its lane waits, the others do not."""
    desk = Desk()
    async with a_pipeline(keyed("aab"), processor=desk.processor()) as played:
        due_ms = int((played.stage.clock.time() + 30.0) * 1000)
        played.begin(LeaseRow(SHARD, native=Native(later=(Later("1", due_ms), Later("99", due_ms)))))
        await until(lambda: prefix(played) == 3, within_s=60.0)
        assert desk.numbers() == [3, 1, 2]
        assert desk.spans["1"][0][0] >= 29.9


@simulated
async def test_batch_that_an_owner_before_has_put_off_waits_whole() -> None:
    """The batch form is serial: nothing later comes before it."""
    async with a_pipeline(keyed("ab"), keyed("c", first=3)) as played:
        due_ms = int((played.stage.clock.time() + 30.0) * 1000)
        played.begin(LeaseRow(SHARD, native=Native(later=(Later("2", due_ms),))))
        await until(lambda: prefix(played) == 3, within_s=60.0)
        assert played.numbers() == [[1, 2], [3]]
        assert played.handovers[0].begun_at >= 29.9


@pytest.mark.parametrize("form", ["batch", "lanes"])
@simulated
async def test_processor_that_stalls_on_a_full_queue_loses_nothing(form: str) -> None:
    """33 s in one call while all that may be read ahead waits: async-kinesis drops the rest of the batch after 30 s."""
    stalls = {"1": 33.0}

    class Batches(RecordProcessor):
        async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
            await asyncio.sleep(stalls.pop("1", 0.01))
            desk.seen += batch.records

    desk = Desk(work_s=stalls)
    processor = Batches if form == "batch" else desk.processor()
    replies = [keyed("a" * 100, first=first) for first in range(1, 1001, 100)]
    delivery = {"batch": {"max_records": 10}, "max_ahead": {"records": 200}}
    async with a_pipeline(*replies, processor=processor, delivery=delivery) as played:
        played.begin()
        await asyncio.sleep(32.0)
        assert prefix(played) == 0
        await until(lambda: prefix(played) == 1000, within_s=120.0)
        assert desk.numbers() == list(range(1, 1001))


@simulated
async def test_paused_lanes_finish_what_is_in_hand_and_go_on_where_they_were() -> None:
    """Nothing more is handed over, also of what is put off or was read ahead; then all of it, each once."""
    desk = Desk(work_s={"1": 2.0}, answers={"3": [Retry(after_s=5.0)]})
    source = ScriptedSource(keyed("aabb"), keyed("c" * 10, first=5))
    async with a_pipeline(source=source, processor=desk.processor(), delivery={"concurrency": 2}) as played:
        played.begin()
        await asyncio.sleep(0.05)
        played.ref.tell(Pause(7))
        rested = await played.lease.hears(Rested)
        seen = desk.numbers()
        assert (rested.at_ms, desk.in_hand) == (7, set())
        source.replies.append(keyed("c" * 12, first=3))
        await asyncio.sleep(60.0)
        assert desk.numbers() == seen
        played.ref.tell(Pause(None))
        await until(lambda: prefix(played) == 14, within_s=60.0)
        assert sorted(desk.done, key=int) == [str(number) for number in range(1, 15)]


@simulated
async def test_paused_shard_that_is_drained_flushes_nothing() -> None:
    """What waits in its batchers comes again elsewhere, when that goes on."""
    seen = []

    class Batching(RecordProcessor):
        batchers: ClassVar = {"all": Batcher(max_records=10, max_age_s=60.0)}

        async def process(self, record: Record) -> ToBatch:
            return ToBatch("all")

        async def handle_batch(self, batch: Batched) -> None:
            seen.append(batch)

    async with a_pipeline(keyed("abc"), processor=Batching) as played:
        played.begin()
        await asyncio.sleep(1.0)
        played.ref.tell(Pause(7))
        await played.lease.hears(Rested)
        played.ref.tell(Drain(Why.STOP, LATER))
        drained = await played.lease.hears(Drained)
        assert (drained.prefix, drained.unfinished, seen) == (None, 0, [])
