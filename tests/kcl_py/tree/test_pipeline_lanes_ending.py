"""``process``: how lanes end, wait, make room and rest, and what owners tell each other."""

import asyncio
from typing import ClassVar

import pytest

from kcl_py import (
    Batched,
    Batcher,
    Checkpointer,
    Record,
    RecordBatch,
    RecordProcessor,
    Reject,
    Retry,
    ToBatch,
)
from kcl_py.delivery.earlier import Earlier
from kcl_py.leases.row import Later, LeaseRow, Native
from kcl_py.tree.messages import (
    Abandon,
    Complete,
    Confirm,
    Confirmed,
    Drain,
    Drained,
    DropAhead,
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
        assert told.held is not None
        held, now = told.held, played.stage.clock.monotonic()
        assert [held.by(now + after_s, longest_s=60.0) for after_s in (-6.0, 0.0)] == [None, "1"]
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


@simulated
async def test_nobody_hears_of_what_is_given_up_while_the_fence_forbids_it() -> None:
    """Rule 6: ``handle_failed`` is the processor's code, too; it is called once the lease is known to be held."""
    desk = Desk(work_s={"1": 2.0}, answers={"1": [Reject("bad")]}, policy="skip")
    async with a_pipeline(keyed("a"), processor=desk.processor()) as played:
        played.begin()
        await until(lambda: desk.in_hand)
        played.stage.stand_still()
        await asyncio.sleep(1.5)
        played.stage.keep_pulse()
        await played.lease.hears(Confirm)
        await asyncio.sleep(10.0)
        assert (desk.failures, prefix(played)) == ([], 0)
        played.fence.confirmed_at = played.stage.clock.monotonic()
        played.ref.tell(Confirmed())
        await until(lambda: prefix(played) == 1)
        assert (len(desk.failures), desk.numbers()) == (1, [1])
