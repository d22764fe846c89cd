"""``ToBatch`` and ``handle_batch``: how records are put together, and what becomes of each."""

import asyncio

import pytest
from structlog.testing import LogCapture

from actors import Ended
from kcl_py import Batched, Batcher, Record, Redelivery, Reject, Retry, ToBatch
from kcl_py.leases.row import Halt
from kcl_py.tree.messages import (
    Drain,
    Drained,
    Halted,
    Why,
)
from tests.kcl_py.tree.batched import Counter, again
from tests.kcl_py.tree.lanes import at, keyed
from tests.kcl_py.tree.pipelines import a_pipeline
from tests.kcl_py.tree.stage import until
from tests.kcl_py.tree.test_dead_letters import LETTERS, Letterbox
from tests.kcl_py.tree.test_pipeline_lanes import LATER, prefix
from tests.simloop import simulated


@simulated
async def test_batch_is_delivered_when_it_has_all_its_records() -> None:
    """BW-08: across fetches; what it lacks the next one has."""
    counter = Counter(batchers={"s3": Batcher(max_records=3, max_age_s=100.0)})
    replies = [keyed("aa"), keyed("aa", first=3), keyed("aa", first=5)]
    async with a_pipeline(*replies, processor=counter.counter()) as played:
        played.begin()
        await until(lambda: prefix(played) == 6)
        assert counter.told() == [([1, 2, 3], "size"), ([4, 5, 6], "size")]
        assert counter.batches[0].items == [(counter.seen[place], b"x") for place in range(3)]
        assert (counter.batches[0].batcher, counter.batches[0].key) == ("s3", None)


@simulated
async def test_batch_is_delivered_when_its_oldest_record_has_waited() -> None:
    """BW-08: not sooner, and whatever it lacks; the checkpoint waits for it."""
    counter = Counter(batchers={"s3": Batcher(max_age_s=5.0)})
    async with a_pipeline(keyed("ab"), processor=counter.counter()) as played:
        played.begin()
        await until(lambda: len(counter.done) == 2)
        await asyncio.sleep(4.9)
        assert (prefix(played), counter.told()) == (0, [])
        await until(lambda: prefix(played) == 2)
        assert counter.told() == [([1, 2], "age")]
        assert counter.at[0][0] - counter.spans["1"][0][1] == pytest.approx(5.0, abs=0.01)


@simulated
async def test_batch_is_delivered_before_it_has_too_many_bytes() -> None:
    """By the payload, or by what the processor says; what is larger goes by itself."""
    counter = Counter(batchers={"s3": Batcher(max_bytes=10, max_age_s=100.0)})
    counter.give = lambda record: ToBatch("s3", size_bytes={"4": 99}.get(record.sequence_number, 4))
    async with a_pipeline(keyed("aaaaaa"), processor=counter.counter()) as played:
        played.begin()
        await until(lambda: len(counter.batches) == 3)
        assert counter.told() == [([1, 2], "bytes"), ([3], "bytes"), ([4], "bytes")]


@simulated
async def test_batches_are_formed_for_each_key() -> None:
    """BW-09: each with a size and an age of its own."""
    counter = Counter(batchers={"s3": Batcher(max_records=2, max_age_s=3.0)})
    counter.give = lambda record: ToBatch("s3", key=record.partition_key)
    async with a_pipeline(keyed("abca"), processor=counter.counter()) as played:
        played.begin()
        await until(lambda: prefix(played) == 4)
        assert counter.told() == [([1, 4], "size"), ([2], "age"), ([3], "age")]
        assert [batch.key for batch in counter.batches] == ["a", "b", "c"]


@simulated
async def test_oldest_key_gives_way_when_there_are_too_many() -> None:
    """BW-09: open keys are bounded."""
    counter = Counter(batchers={"s3": Batcher(max_keys=2, max_age_s=100.0)})
    counter.give = lambda record: ToBatch("s3", key=record.partition_key)
    async with a_pipeline(keyed("abca"), processor=counter.counter(), delivery={"ordering": "shard"}) as played:
        played.begin()
        await until(lambda: len(counter.batches) == 2)
        assert counter.told() == [([1], "keys"), ([2], "keys")]


@simulated
async def test_flush_delivers_at_once_what_is_there() -> None:
    """BW-10."""
    counter = Counter(batchers={"s3": Batcher(max_age_s=100.0)})
    counter.give = lambda record: ToBatch("s3", flush=record.sequence_number == "2")
    async with a_pipeline(keyed("aaa"), processor=counter.counter()) as played:
        played.begin()
        await until(lambda: prefix(played) == 2)
        assert counter.told() == [([1, 2], "flush")]


@simulated
async def test_record_that_goes_to_no_batcher_is_done_beside_those_that_do() -> None:
    """The checkpoint goes no further than the first that waits."""
    counter = Counter(batchers={"s3": Batcher(max_age_s=2.0)})
    counter.give = lambda record: None if record.partition_key == "b" else ToBatch("s3")
    async with a_pipeline(keyed("bab"), processor=counter.counter()) as played:
        played.begin()
        await until(lambda: len(counter.done) == 3)
        await asyncio.sleep(1.0)
        assert prefix(played) == 1
        await until(lambda: prefix(played) == 3)


@simulated
async def test_batches_of_a_key_come_in_order_and_those_of_others_beside_them() -> None:
    """``concurrency``: so many of a batcher at a time, but of a key one after the other."""
    counter = Counter(batchers={"s3": Batcher(max_records=1, concurrency=2)}, batch_s=lambda batch: 1.0)
    counter.give = lambda record: ToBatch("s3", key=record.partition_key)
    async with a_pipeline(keyed("aabc"), processor=counter.counter()) as played:
        played.begin()
        await until(lambda: prefix(played) == 4)
        spans = {numbers[0]: span for (numbers, _), span in zip(counter.told(), counter.at, strict=True)}
        assert counter.most_batches == 2
        assert spans[2][0] >= spans[1][1]
        assert spans[3][0] < spans[1][1]


@simulated
async def test_batchers_wait_for_nothing_of_each_other() -> None:
    """BW-08: named, each with its own limits and its own place."""
    batchers = {"slow": Batcher(max_records=1), "fast": Batcher(max_records=2)}
    counter = Counter(batchers=batchers, batch_s=lambda batch: 9.0 if batch.batcher == "slow" else 0.1)
    counter.give = lambda record: ToBatch("slow" if record.partition_key == "a" else "fast")
    async with a_pipeline(keyed("abb"), processor=counter.counter()) as played:
        played.begin()
        await until(lambda: prefix(played) == 3)
        spans = {batch.batcher: span for batch, span in zip(counter.batches, counter.at, strict=True)}
        assert spans["fast"][1] < spans["slow"][1] - 8.0


@simulated
async def test_records_that_wait_in_a_batcher_take_no_slot_and_no_lane() -> None:
    """A lane goes on once its record is given away, so a single slot is enough for a batch of many."""
    counter = Counter(batchers={"s3": Batcher(max_records=5, max_age_s=100.0)})
    async with a_pipeline(keyed("aaaaa"), processor=counter.counter(), delivery={"concurrency": 1}) as played:
        played.begin()
        await until(lambda: prefix(played) == 5)
        assert counter.told() == [([1, 2, 3, 4, 5], "size")]


@simulated
async def test_those_of_a_batch_that_failed_come_again_together(log: LogCapture) -> None:
    """BW-11: with the attempt and the reason, and before all that came behind them; the others are finished."""
    counter = Counter(batchers={"s3": Batcher(max_records=3)}, batch_answers=[again(2, 3), again(3)])
    async with a_pipeline(keyed("aaaaaa"), processor=counter.counter(), delivery={"backoff_s": 1.0}) as played:
        played.begin()
        await until(lambda: prefix(played) == 6)
        assert [numbers for numbers, _ in counter.told()] == [[1, 2, 3], [2, 3], [3], [4, 5, 6]]
        told = [[record.redelivery for record, _ in batch] for batch in counter.batches]
        assert told[0] == [None, None, None]
        assert all(isinstance(each, Redelivery) and each.attempt == 2 for each in told[1])
        assert [each.attempt for each in told[2] if isinstance(each, Redelivery)] == [3]
        failed = [entry for entry in log.entries if entry["event"] == "kcl_py.batch.failed"]
        assert [(entry["attempt"], entry["hook"], entry["records"]) for entry in failed] == [
            (1, "handle_batch", 2),
            (2, "handle_batch", 1),
        ]


@simulated
async def test_batch_that_raises_has_failed_as_a_whole_and_waits_alone() -> None:
    """BW-11: those of its key wait behind it, other keys and the batcher's place do not."""
    batchers = {"s3": Batcher(max_records=1)}
    counter = Counter(batchers=batchers, batch_answers=[Retry(after_s=20.0)])
    counter.give = lambda record: ToBatch("s3", key=record.partition_key)
    async with a_pipeline(keyed("aab"), processor=counter.counter()) as played:
        played.begin()
        await until(lambda: len(counter.batches) == 2)
        await asyncio.sleep(10.0)
        assert counter.told() == [([1], "size"), ([3], "size")]
        await until(lambda: prefix(played) == 3)
        assert [numbers for numbers, _ in counter.told()] == [[1], [3], [1], [2]]
        assert counter.at[2][0] - counter.at[0][1] == pytest.approx(20.0, abs=0.01)


@simulated
async def test_record_of_a_batch_that_is_exhausted_halts_its_shard() -> None:
    """The default, with the record's own position; what waits in batchers is not handed over any more."""
    counter = Counter(batchers={"s3": Batcher(max_records=2, max_age_s=1.0)}, batch_answers=[again(2)] * 2)
    options = {"retries": 1, "backoff_s": 0.01}
    async with a_pipeline(keyed("aaa"), processor=counter.counter(), delivery=options) as played:
        played.begin()
        halted = await played.lease.hears(Halted)
        assert halted.halt == Halt("the processor asked for it again", "2")
        await asyncio.sleep(5.0)
        assert (prefix(played), [numbers for numbers, _ in counter.told()]) == (1, [[1, 2], [2]])
        assert [(each.record.sequence_number, each.attempts) for each in counter.failures] == [("2", 2)]


@simulated
async def test_rejected_record_of_a_batch_is_passed_over_and_the_rest_comes_again() -> None:
    """BW-16: each by its own outcome; ``handle_failed`` hears of it first."""

    def mixed(batch: Batched) -> dict[Record, Reject | Exception]:
        return {batch.items[0][0]: Reject("malformed"), batch.items[1][0]: ValueError("busy")}

    counter = Counter(batchers={"s3": Batcher(max_records=3)}, batch_answers=[mixed], policy="skip")
    async with a_pipeline(keyed("aaa"), processor=counter.counter(), delivery={"backoff_s": 0.1}) as played:
        played.begin()
        await until(lambda: prefix(played) == 3)
        assert [numbers for numbers, _ in counter.told()] == [[1, 2, 3], [2]]
        assert [(each.record.sequence_number, each.reason) for each in counter.failures] == [("1", "malformed")]


@simulated
async def test_batch_waits_until_the_letter_of_a_record_is_stored() -> None:
    """It is finished only then; what else has failed of the batch comes again after it."""

    def mixed(batch: Batched) -> dict[Record, Reject | Exception]:
        return {batch.items[1][0]: Reject("malformed"), batch.items[2][0]: ValueError("busy")}

    counter = Counter(batchers={"s3": Batcher(max_records=3)}, batch_answers=[mixed])
    box = Letterbox(failures=[ConnectionError("no answer")] * 5)
    delivery = LETTERS | {"retries": 3}
    async with a_pipeline(keyed("aaa"), processor=counter.counter(), dead_letters=box, delivery=delivery) as played:
        played.begin()
        await until(lambda: prefix(played) == 3, within_s=100.0)
        assert [numbers for numbers, _ in counter.told()] == [[1, 2, 3], [3]]
        assert [(each.record, each.reason) for each in box.stored] == [(keyed("aaa")[1], "malformed")]
        assert len(counter.failures) == 1


@simulated
async def test_record_that_was_put_off_waits_also_where_a_letter_had_to_wait_first() -> None:
    """The letter is stored within a second, and the other record of the batch was put off for a minute."""

    def mixed(batch: Batched) -> dict[Record, Reject | Retry]:
        return {batch.items[0][0]: Reject("malformed"), batch.items[1][0]: Retry(after_s=60.0)}

    counter = Counter(batchers={"s3": Batcher(max_records=2)}, batch_answers=[mixed])
    box = Letterbox(failures=[ConnectionError("no answer")])
    delivery = LETTERS | {"retries": 3, "backoff_s": 0.1}
    async with a_pipeline(keyed("aa"), processor=counter.counter(), dead_letters=box, delivery=delivery) as played:
        played.begin()
        await asyncio.sleep(59.0)
        assert [numbers for numbers, _ in counter.told()] == [[1, 2]]
        assert len(box.stored) == 1
        await until(lambda: prefix(played) == 2, within_s=2.0)


@simulated
async def test_stop_drops_a_batch_whose_letter_waits() -> None:
    """Its record is not finished, and comes again."""
    counter = Counter(batchers={"s3": Batcher(max_records=2)}, batch_answers=[Reject("malformed")])
    box = Letterbox(failures=[ConnectionError("no answer")] * 100)
    async with a_pipeline(keyed("aa"), processor=counter.counter(), dead_letters=box, delivery=LETTERS) as played:
        played.begin()
        await asyncio.sleep(20.0)
        played.ref.tell(Drain(Why.STOP, LATER))
        drained = await played.lease.hears(Drained, within_s=1.0)
        assert drained == Drained(None, at(2), 0)


@simulated
async def test_unknown_batcher_is_a_failed_record() -> None:
    """BW-08: the others are processed, and the reason says what there is."""
    counter = Counter(give=lambda record: ToBatch("s4"))
    async with a_pipeline(keyed("a"), processor=counter.counter(), delivery={"retries": 0}) as played:
        played.begin()
        halted = await played.lease.hears(Halted)
        assert halted.halt.error == (
            "ProcessorError: cannot use what process returned: expected one of the processor's batchers (s3), found "
            "'s4'"
        )


@simulated
async def test_answer_of_handle_batch_that_means_nothing_is_a_failure() -> None:
    """What a client's call has returned does not pass for done."""
    counter = Counter(batch_answers=[{"FailedPutCount": 1}])  # type: ignore[dict-item]
    async with a_pipeline(keyed("a"), processor=counter.counter(), delivery={"retries": 0}) as played:
        played.begin()
        halted = await played.lease.hears(Halted)
        assert halted.halt.error == (
            "ProcessorError: cannot use what handle_batch returned: expected a mapping of records of the batch, found "
            "str as a key"
        )


@simulated
async def test_batch_that_takes_too_long_has_failed() -> None:
    """``attempt_timeout_s`` holds for it, too."""
    counter = Counter(batch_s=lambda batch: 100.0)
    options = {"attempt_timeout_s": 2.0, "retries": 0}
    async with a_pipeline(keyed("a"), processor=counter.counter(), delivery=options) as played:
        played.begin()
        halted = await played.lease.hears(Halted)
        assert "handle_batch took longer than 2 s" in halted.halt.error


@simulated
async def test_cancellation_from_within_handle_batch_is_a_failure() -> None:
    """A cancelled future of the user's own neither ends the shard nor loses the batch."""
    counter = Counter()
    calls = []

    class Cancelled(counter.counter()):  # type: ignore[misc]
        async def handle_batch(self, batch: Batched) -> None:
            calls.append(batch)
            if len(calls) == 1:
                raise asyncio.CancelledError

    async with a_pipeline(keyed("aa"), processor=Cancelled, delivery={"backoff_s": 0.01}) as played:
        played.begin()
        await until(lambda: prefix(played) == 2)
        assert [len(batch) for batch in calls] == [2, 2]


@simulated
async def test_batch_may_come_again_at_once_while_lanes_are_busy() -> None:
    """Its next attempt begins before it is noted that the last one has ended: neither is taken for the other."""
    numbers = range(1, 501)
    counter = Counter(
        batchers={"s3": Batcher(max_records=1, concurrency=20)},
        give=lambda record: ToBatch("s3", key=record.partition_key),
        work_s={str(number): 0.0 for number in numbers},
        batch_s=lambda batch: 0.0,
        batch_answers=[Retry(after_s=0)] * 300,
    )
    async with a_pipeline(keyed(map(str, numbers)), processor=counter.counter(), delivery={"retries": 1000}) as played:
        played.begin()
        await until(lambda: prefix(played) == len(numbers))
        assert len(counter.batches) == len(numbers) + 300
        assert not [event for event in played.stage.events.events if isinstance(event, Ended)]
