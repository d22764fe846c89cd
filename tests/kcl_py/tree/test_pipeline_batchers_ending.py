"""``handle_batch``: how batchers end, wait, make room and rest."""

import asyncio
from typing import Any

import pytest

from kcl_py import Batcher, Failure, Redelivery, Reject, Retry, ToBatch
from kcl_py.delivery.earlier import Earlier
from kcl_py.leases.row import LeaseRow
from kcl_py.processor import FailurePolicy
from kcl_py.records import MAYBE
from kcl_py.tree.messages import (
    Abandon,
    Complete,
    Confirm,
    Confirmed,
    Drain,
    Drained,
    DropAhead,
    Start,
    Why,
)
from tests.kcl_py.tree.batched import Counter, again
from tests.kcl_py.tree.lanes import at, keyed
from tests.kcl_py.tree.pipelines import EPOCH, a_pipeline
from tests.kcl_py.tree.stage import SHARD, ScriptedSource, some_reply, until
from tests.kcl_py.tree.test_pipeline_lanes import LATER, prefix
from tests.simloop import simulated


@simulated
async def test_stop_delivers_what_waits_in_batchers() -> None:
    """BW-20: batches that lack something too, and what running records still give; queued records are dropped."""
    counter = Counter(batchers={"s3": Batcher(max_age_s=100.0)}, work_s={"2": 3.0}, batch_s=lambda batch: 2.0)
    async with a_pipeline(keyed("abb"), processor=counter.counter()) as played:
        played.begin()
        await until(lambda: counter.done == ["1"])
        await asyncio.sleep(0.1)
        played.ref.tell(Drain(Why.STOP, LATER))
        drained = await played.lease.hears(Drained)
        assert counter.told() == [([1], "drain"), ([2], "drain")]
        assert drained == Drained(at(2), at(2), 0)
        assert counter.hooks == ["initialize", "shutdown_requested"]


@simulated
async def test_stop_delivers_every_batch_though_few_may_be_at_a_time() -> None:
    """One after the other, before the last hook."""
    counter = Counter(batchers={"s3": Batcher(max_age_s=100.0)}, batch_s=lambda batch: 1.0)
    counter.give = lambda record: ToBatch("s3", key=record.partition_key)
    async with a_pipeline(keyed("abc"), processor=counter.counter()) as played:
        played.begin()
        await until(lambda: len(counter.done) == 3)
        played.ref.tell(Drain(Why.STOP, LATER))
        drained = await played.lease.hears(Drained)
        assert (drained, counter.most_batches) == (Drained(at(3), at(3), 0), 1)


@simulated
async def test_stop_drops_a_batch_that_waits_for_its_repetition_and_all_behind_it() -> None:
    """What failed comes again elsewhere, and what is of its key not before it."""
    counter = Counter(batchers={"s3": Batcher(max_records=1)}, batch_answers=[Retry(after_s=100.0)])
    counter.give = lambda record: ToBatch("s3", key=record.partition_key)
    async with a_pipeline(keyed("aaba"), processor=counter.counter(), delivery={"ordering": "shard"}) as played:
        counter.work_s["4"] = 5.0
        played.begin()
        await until(lambda: len(counter.batches) == 2)
        await asyncio.sleep(1.0)
        played.ref.tell(Drain(Why.STOP, LATER))
        drained = await played.lease.hears(Drained)
        assert counter.told() == [([1], "size"), ([3], "size")]
        assert drained == Drained(None, at(4), 0)


@simulated
async def test_stop_does_not_repeat_a_batch_that_fails() -> None:
    """It has its one attempt within the grace; what is behind it has none, for it would come before it."""
    counter = Counter(batchers={"s3": Batcher(max_records=2, max_age_s=100.0)}, batch_answers=[again(2)])
    counter.batch_s = lambda batch: 2.0
    async with a_pipeline(keyed("aaa"), processor=counter.counter()) as played:
        played.begin()
        await until(lambda: len(counter.done) == 3)
        played.ref.tell(Drain(Why.STOP, LATER))
        drained = await played.lease.hears(Drained)
        assert (drained, counter.told()) == (Drained(at(1), at(3), 0), [([1, 2], "size")])


@pytest.mark.parametrize(
    ("most", "batch_s", "rejected"),
    [(2, 5.0, {"answers": {"3": [Reject("malformed")]}}), (1, 0.01, {"batch_answers": [Reject("malformed")]})],
    ids=["process", "handle_batch"],
)
@simulated
async def test_stop_flushes_no_more_once_a_record_halts_its_shard(
    most: int, batch_s: float, rejected: dict[str, Any]
) -> None:
    """All of it would come again; whether the record halts is decided while batches are flushed, one by one."""
    counter = Counter(batchers={"s3": Batcher(max_records=most, max_age_s=100.0)}, **rejected)
    counter.give = lambda record: ToBatch("s3", key=record.partition_key)
    counter.batch_s = lambda batch: batch_s

    class Deciding(counter.counter()):  # type: ignore[misc]
        async def handle_failed(self, failure: Failure) -> FailurePolicy:
            await asyncio.sleep(3.0)
            return "halt"

    async with a_pipeline(keyed("abc"), processor=Deciding) as played:
        played.begin()
        await asyncio.sleep(1.0)
        played.ref.tell(Drain(Why.STOP, LATER))
        await played.lease.hears(Drained, within_s=30.0)
        assert [numbers for numbers, _ in counter.told()] == [[1]]
        assert counter.hooks == ["initialize", "shutdown_requested"]


@simulated
async def test_stop_that_is_out_of_time_cancels_its_batches() -> None:
    """BW-20: the deadline holds; the batch in hand counts as unfinished, what waited behind it is in nobody's hands."""
    counter = Counter(batchers={"s3": Batcher(max_records=2, max_age_s=100.0)}, batch_s=lambda batch: 100.0)
    async with a_pipeline(keyed("aaa"), processor=counter.counter()) as played:
        played.begin()
        await until(lambda: len(counter.done) == 3)
        played.ref.tell(Drain(Why.STOP, played.stage.clock.monotonic() + 1.0))
        drained = await played.lease.hears(Drained)
        assert (drained, len(counter.batches)) == (Drained(None, at(3), 2), 1)
        assert counter.hooks == ["initialize", "lease_lost"]


@simulated
async def test_abandoned_batches_are_cancelled() -> None:
    """A lease that is lost flushes nothing."""
    counter = Counter(batchers={"s3": Batcher(max_records=1)}, batch_s=lambda batch: 100.0)
    async with a_pipeline(keyed("aa"), processor=counter.counter()) as played:
        played.begin()
        await until(lambda: len(counter.done) == 2)
        played.ref.tell(Abandon())
        await played.lease.hears(Drained)
        assert (len(counter.batches), counter.running) == (1, 0)


@simulated
async def test_shard_ends_when_its_batches_are_done() -> None:
    """What waits is delivered once nothing more can come, before ``shard_ended``."""
    counter = Counter(batchers={"s3": Batcher(max_age_s=100.0)}, work_s={"1": 3.0})
    source = ScriptedSource(some_reply(keyed("ab"), is_end=True))
    async with a_pipeline(source=source, processor=counter.counter()) as played:
        played.begin()
        complete = await played.lease.hears(Complete, within_s=10.0)
        assert complete.prefix == at(2)
        assert counter.told() == [([2, 1], "end")]
        assert counter.hooks == ["initialize", "shard_ended"]


@simulated
async def test_no_batch_is_handed_over_while_the_fence_forbids_it() -> None:
    """Rule 6: a heartbeat is asked for, and then it goes on with the same batch; at the end, too."""
    counter = Counter(batchers={"s3": Batcher(max_age_s=2.0)})
    async with a_pipeline(keyed("aa"), processor=counter.counter()) as played:
        played.begin()
        await until(lambda: len(counter.done) == 2)
        played.stage.stand_still()
        await asyncio.sleep(3.0)
        played.stage.keep_pulse()
        await played.lease.hears(Confirm)
        played.ref.tell(Drain(Why.STOP, LATER))
        await asyncio.sleep(5.0)
        assert (counter.batches, played.lease.of(Drained)) == ([], [])
        played.fence.confirmed_at = played.stage.clock.monotonic()
        played.ref.tell(Confirmed())
        drained = await played.lease.hears(Drained)
        assert (drained, counter.told()) == (Drained(at(2), at(2), 0), [([1, 2], "age")])


@pytest.mark.parametrize("ahead", [{"records": 4}, {"bytes": 4}])
@simulated
async def test_batch_never_waits_for_more_than_can_be_read(ahead: dict[str, int]) -> None:
    """Reading stops at ``max_ahead``: a batch that is to have more is full by then."""
    counter = Counter(batchers={"s3": Batcher(max_records=1000, max_age_s=600.0)})
    replies = [keyed("aaaa"), keyed("aaaa", first=5)]
    async with a_pipeline(*replies, processor=counter.counter(), delivery={"max_ahead": ahead}) as played:
        played.begin()
        await until(lambda: prefix(played) == 8)
        assert [len(batch) for batch in counter.batches] == [4, 4]


@simulated
async def test_reading_goes_on_when_the_batches_of_many_keys_are_old_enough() -> None:
    """None of them is full when reading stops: their age is what ends the wait."""
    counter = Counter(batchers={"s3": Batcher(max_age_s=5.0)})
    counter.give = lambda record: ToBatch("s3", key=record.partition_key)
    replies = [keyed("abcd"), keyed("efgh", first=5)]
    async with a_pipeline(*replies, processor=counter.counter(), delivery={"max_ahead": {"records": 4}}) as played:
        played.begin()
        await until(lambda: prefix(played) == 8)
        assert {batch.trigger for batch in counter.batches} == {"age"}


@simulated
async def test_memory_that_others_wait_for_is_not_taken_from_batchers() -> None:
    """What waits in them stays, and is delivered when it is old enough; then what was dropped is read again."""
    counter = Counter(batchers={"s3": Batcher(max_age_s=5.0)}, work_s={"2": 2.0})
    source = ScriptedSource(keyed("aa"), keyed("a", first=3))
    async with a_pipeline(source=source, processor=counter.counter()) as played:
        played.begin()
        await until(lambda: counter.done == ["1"])
        played.ref.tell(DropAhead())
        source.replies.append(keyed("a", first=3))
        await until(lambda: prefix(played) == 3)
        assert counter.told() == [([1, 2], "age"), ([3], "age")]
        assert counter.numbers() == [1, 2, 3]


@simulated
async def test_record_says_the_same_to_process_and_to_handle_batch() -> None:
    """``maybe``, and why it came again to ``process``."""
    counter = Counter(answers={"2": [ValueError("no")]})
    async with a_pipeline(keyed("ab"), processor=counter.counter(), delivery={"backoff_s": 0.01}) as played:
        played.ref.tell(Start(played.lease.ref, LeaseRow(SHARD), played.fence, EPOCH, Earlier(to=1)))
        await until(lambda: prefix(played) == 2)
        first, second = (record.redelivery for record, _ in counter.batches[0])
        assert first == MAYBE
        assert isinstance(second, Redelivery)
        assert (second.attempt, second.reason) == (2, "ValueError: no")
