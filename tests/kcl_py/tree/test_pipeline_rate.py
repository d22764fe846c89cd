"""``delivery.rate``: no more is handed over a second, in both forms, and a stop does not wait for it."""

import asyncio

import pytest

from kcl_py import Batcher, ConfigError, Record, RecordProcessor, Stream, ToBatch
from kcl_py.leases.row import LeaseRow
from kcl_py.tree.messages import Abandon, Confirm, Confirmed, Drain, Drained, DropAhead, Start, Why
from kcl_py.tree.pipeline import Pipeline
from tests.kcl_py.tree.batched import Counter
from tests.kcl_py.tree.fleet import Fleet, make_config
from tests.kcl_py.tree.lanes import Desk, at, keyed
from tests.kcl_py.tree.pipelines import EPOCH, a_pipeline, handed_over
from tests.kcl_py.tree.stage import ScriptedSource, some_records, until
from tests.kcl_py.tree.test_pipeline_lanes import LATER, prefix
from tests.simloop import simulated

SECOND = "shardId-000000000001"


def begun(desk: Desk) -> list[float]:
    """When each record was handed over, from the first one on."""
    times = sorted(begun_at for spans in desk.spans.values() for begun_at, _ in spans)
    return [round(time - times[0], 3) for time in times]


@simulated
async def test_records_are_handed_over_at_the_rate_whatever_keys_and_slots_are_free() -> None:
    """BW-13: exact, with slow records side by side."""
    desk = Desk(work_s={str(number): 0.5 for number in range(1, 31)})
    records = keyed(str(number) for number in range(30))
    async with a_pipeline(records, processor=desk.processor(), delivery={"rate": {"records": 10}}) as played:
        played.begin()
        await until(lambda: prefix(played) == 30)
        assert begun(desk) == pytest.approx([0.0] * 10 + [0.1 * place for place in range(1, 21)], abs=0.002)


@simulated
async def test_few_slots_cost_nothing_of_the_rate() -> None:
    """What cannot be handed over for lack of a slot is not paid for."""
    desk, records = Desk(work_s=dict.fromkeys(map(str, range(1, 31)), 0.001)), keyed(map(str, range(30)))
    options = {"rate": {"records": 10}, "concurrency": 1}
    async with a_pipeline(records, processor=desk.processor(), delivery=options) as played:
        played.begin()
        await until(lambda: prefix(played) == 30)
        assert begun(desk)[-1] == pytest.approx(2.0, abs=0.02)


@simulated
async def test_records_of_a_key_are_handed_over_at_the_rate() -> None:
    """One task hands them all over, as long as there are tokens."""
    desk = Desk(work_s={str(number): 0.0 for number in range(1, 31)})
    async with a_pipeline(keyed("a" * 30), processor=desk.processor(), delivery={"rate": {"bytes": 10}}) as played:
        played.begin()
        await until(lambda: prefix(played) == 30)
        assert begun(desk) == pytest.approx([0.0] * 10 + [0.1 * place for place in range(1, 21)], abs=0.002)
        assert desk.numbers() == list(range(1, 31))


@simulated
async def test_batches_are_handed_over_at_the_rate() -> None:
    """A batch that is larger than a second's worth goes whole, and the next one waits until it is paid."""
    options = {"batch": {"max_records": 30}, "rate": {"records": 10}}
    async with a_pipeline(some_records(90), delivery=options) as played:
        played.begin()
        await handed_over(played, batches=3)
        times = [handover.begun_at - played.handovers[0].begun_at for handover in played.handovers]
        assert times == pytest.approx([0.0, 3.0, 6.0], abs=0.01)


@simulated
async def test_shards_share_the_rate() -> None:
    """BW-13: one with many records waiting gets no more than one with few."""
    desk = Desk()
    source = ScriptedSource(keyed("a" * 40), keyed("b" * 10, first=101))
    async with a_pipeline(source=source, processor=desk.processor(), delivery={"rate": {"records": 4}}) as played:
        second = await played.stage.play("second", lambda: Pipeline(played.stage.worker, SECOND))
        played.begin()
        second.tell(Start(played.lease.ref, LeaseRow(SECOND), played.stage.fence(), EPOCH))
        await until(lambda: len(desk.done) >= 24)
        assert sum(record.partition_key == "b" for record in desk.seen[:24]) >= 9


@simulated
async def test_repetition_of_a_record_counts() -> None:
    """What is protected is whatever the processor calls."""
    desk = Desk(answers={"1": [ValueError("no")] * 2})
    options = {"rate": {"records": 1}, "backoff_s": 0.01}
    async with a_pipeline(keyed("a"), processor=desk.processor(), delivery=options) as played:
        played.begin()
        await until(lambda: prefix(played) == 1)
        assert begun(desk) == pytest.approx([0.0, 1.0, 2.0], abs=0.02)


@simulated
async def test_batchers_are_paid_for_once() -> None:
    """A record that waits in a batcher was handed over; its batch costs nothing more."""
    counter = Counter(batchers={"s3": Batcher(max_records=4)}, give=lambda record: ToBatch("s3"))
    async with a_pipeline(keyed("aaaa"), processor=counter.counter(), delivery={"rate": {"records": 2}}) as played:
        played.begin()
        await until(lambda: prefix(played) == 4)
        assert counter.at[0][0] - counter.spans["1"][0][0] == pytest.approx(1.0, abs=0.05)


@simulated
async def test_stop_does_not_wait_for_the_rate() -> None:
    """BW-13: what waits for tokens is dropped at once."""
    desk = Desk()
    async with a_pipeline(keyed("a" * 10), processor=desk.processor(), delivery={"rate": {"records": 1}}) as played:
        played.begin()
        await until(lambda: desk.done == ["1"])
        asked_at = played.stage.clock.monotonic()
        played.ref.tell(Drain(Why.STOP, LATER))
        drained = await played.lease.hears(Drained)
        assert drained == Drained(at(1), at(1), 0)
        assert played.stage.clock.monotonic() - asked_at < 0.1
        await asyncio.sleep(5.0)
        assert desk.numbers() == [1]


@pytest.mark.parametrize("message", [Drain(Why.STOP, LATER), Abandon(), DropAhead()])
@simulated
async def test_tokens_that_a_shard_needs_no_more_are_there_for_the_others(message: object) -> None:
    """They come at once, not when those would have been used."""
    desk = Desk(work_s={"1": 0.0})
    source = ScriptedSource(keyed("a"), keyed("a", first=2))
    async with a_pipeline(source=source, processor=desk.processor(), delivery={"rate": {"records": 1}}) as played:
        second = await played.stage.play("second", lambda: Pipeline(played.stage.worker, SECOND))
        played.begin()
        await until(lambda: len(source.fetched) == 3)
        source.replies.append(keyed("b", first=101))
        second.tell(Start(played.lease.ref, LeaseRow(SECOND), played.stage.fence(), EPOCH))
        await until(lambda: not source.replies)
        await asyncio.sleep(0.1)
        played.ref.tell(message)
        await until(lambda: len(desk.done) == 2)
        assert desk.numbers() == [1, 101]
        assert begun(desk)[1] == pytest.approx(1.0, abs=0.01)


@simulated
async def test_nothing_that_waited_for_the_rate_is_handed_over_against_the_fence() -> None:
    """Rule 6: asked when the tokens are there; they are not used up by it."""
    desk = Desk()
    records = [Record("1", b"x", "a"), Record("2", b"x" * 100, "a"), Record("3", b"", "a")]
    async with a_pipeline(records, processor=desk.processor(), delivery={"rate": {"bytes": 1}}) as played:
        played.begin()
        await until(lambda: desk.done == ["1"])
        played.stage.stand_still()
        await asyncio.sleep(2.0)
        played.stage.keep_pulse()
        await played.lease.hears(Confirm)
        await asyncio.sleep(10.0)
        assert desk.numbers() == [1]
        played.fence.confirmed_at = played.stage.clock.monotonic()
        played.ref.tell(Confirmed())
        await until(lambda: len(desk.seen) == 2, within_s=1.0)


@simulated
async def test_memory_that_others_wait_for_is_given_back_by_a_shard_that_waits_for_tokens() -> None:
    """What is dropped is read again, and handed over in its order."""
    desk = Desk()
    source = ScriptedSource(keyed("aa"), keyed("aa", first=3))
    async with a_pipeline(source=source, processor=desk.processor(), delivery={"rate": {"records": 1}}) as played:
        played.begin()
        await until(lambda: len(source.fetched) >= 3)
        source.replies.append(keyed("aa", first=3))
        played.ref.tell(DropAhead())
        await until(lambda: prefix(played) == 4)
        assert desk.numbers() == [1, 2, 3, 4]


@simulated
async def test_rate_is_changed_while_the_worker_runs() -> None:
    """BW-13: and read back; what waits goes on at the new one."""
    fleet = Fleet(shards=1)
    fleet.put(60)
    member = fleet.start("A", delivery={"rate": {"records": 1}, "batch": {"max_records": 1}})
    await fleet.until(lambda: len(fleet.diary.handovers) == 3)
    stream = member.stream
    assert stream is not None
    assert (stream.rate.records, stream.rate.bytes) == (1, None)
    changed_at = asyncio.get_running_loop().time()
    stream.set_rate(records=20, bytes=None)
    assert (stream.rate.records, stream.rate.bytes) == (20, None)
    await fleet.delivered()
    assert asyncio.get_running_loop().time() - changed_at == pytest.approx(57 / 20, abs=0.3)
    await member.stop()


@pytest.mark.parametrize(("limit", "found"), [(0, "0"), (-5, "-5"), (2.5, "2.5"), ("10", "'10'"), (True, "True")])
def test_rate_that_cannot_be_is_refused(limit: object, found: str) -> None:
    """With one sentence; and nothing has changed."""

    class Fine(RecordProcessor):
        async def process(self, record: Record) -> None: ...

    stream = Stream(make_config(delivery={"rate": {"bytes": 7}}), processor=Fine)
    with pytest.raises(ConfigError) as caught:
        stream.set_rate(records=limit, bytes=None)  # type: ignore[arg-type]
    assert str(caught.value) == (
        "cannot set the rate of records: expected a whole number of at least 1, or None for no limit, found " + found
    )
    assert stream.rate.bytes == 7
