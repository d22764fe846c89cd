"""A Pipeline whose shard is paused: it hands nothing over, and goes on behind what is in hand."""

import asyncio

from kcl_py import Retry
from kcl_py.leases.row import LeaseRow
from kcl_py.processor import Checkpointer
from kcl_py.records import RecordBatch, SequenceNumber
from kcl_py.sources.source import Position, PositionKind
from kcl_py.tree.messages import (
    Complete,
    Confirmed,
    Drain,
    Drained,
    Halted,
    PipelineStarted,
    Progress,
    Resume,
    Start,
    Why,
)
from kcl_py.tree.steering import Pause, Rested
from tests.kcl_py.tree.lanes import Desk, keyed
from tests.kcl_py.tree.pipelines import EPOCH, Failing, Played, a_pipeline, handed_over
from tests.kcl_py.tree.stage import SHARD, ScriptedSource, some_records, some_reply, until
from tests.simloop import simulated

LONG_S = 30.0


def begin_paused(played: Played) -> None:
    """Start it on a shard that was paused before."""
    played.ref.tell(Start(played.lease.ref, LeaseRow(SHARD), played.fence, EPOCH, paused_at_ms=7))


class Slow:
    """Work that takes as long as the test says."""

    def __init__(self) -> None:
        self.may_return = asyncio.Event()

    async def __call__(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        await self.may_return.wait()


@simulated
async def test_paused_shard_is_neither_read_nor_handed_over_until_it_goes_on() -> None:
    """Behind what is finished, once."""
    source = ScriptedSource(some_records(3))
    async with a_pipeline(source=source) as played:
        played.begin()
        await handed_over(played, batches=1)
        played.ref.tell(Pause(7))
        await played.lease.hears(Rested)
        read = len(source.fetched)
        source.replies.append(some_records(2, first=4))
        await asyncio.sleep(LONG_S)
        assert len(source.fetched) <= read + 1, "one may have been on its way"
        assert played.numbers() == [[1, 2, 3]]
        source.replies.append(some_records(2, first=4))
        played.ref.tell(Pause(None))
        await handed_over(played, batches=2)
        assert played.numbers()[1] == [4, 5]
        assert source.opened[-1] == Position(PositionKind.AFTER, 3)
        assert len(played.lease.of(Rested)) == 1


@simulated
async def test_what_is_in_hand_is_finished_and_what_was_read_ahead_is_dropped() -> None:
    """Only then the shard rests; the rest is read again."""
    work = Slow()
    source = ScriptedSource(some_records(6))
    async with a_pipeline(source=source, work=work, delivery={"batch": {"max_records": 2}}) as played:
        played.begin()
        await handed_over(played, batches=1)
        played.ref.tell(Pause(7))
        await asyncio.sleep(LONG_S)
        assert not played.lease.of(Rested)
        work.may_return.set()
        await played.lease.hears(Rested)
        await until(lambda: played.lease.of(Progress)[-1].prefix == SequenceNumber(2))
        assert played.numbers() == [[1, 2]]
        source.replies.append(some_records(4, first=3))
        played.ref.tell(Pause(None))
        await handed_over(played, batches=3)
        assert played.numbers() == [[1, 2], [3, 4], [5, 6]]


@simulated
async def test_pause_that_is_over_before_the_batch_in_hand_is() -> None:
    """Reading goes on behind it."""
    work = Slow()
    source = ScriptedSource(some_records(2))
    async with a_pipeline(source=source, work=work) as played:
        played.begin()
        await handed_over(played, batches=1)
        played.ref.tell(Pause(7))
        played.ref.tell(Pause(None))
        source.replies.append(some_records(1, first=3))
        work.may_return.set()
        await handed_over(played, batches=2)
        assert played.numbers() == [[1, 2], [3]]
        assert not played.lease.of(Rested)


@simulated
async def test_batch_that_has_failed_waits_until_the_shard_goes_on() -> None:
    """Whoever pauses for an outage behind the processor does not want it to halt meanwhile."""
    work = Failing(2)
    async with a_pipeline(some_records(1), work=work, delivery={"retries": 2, "backoff_s": 1.0}) as played:
        played.begin()
        await handed_over(played, batches=1)
        played.ref.tell(Pause(7))
        await played.lease.hears(Rested)
        await asyncio.sleep(LONG_S)
        played.ref.tell(Confirmed())
        await asyncio.sleep(LONG_S)
        assert len(played.handovers) == 1
        played.ref.tell(Pause(None))
        await until(lambda: played.lease.of(Progress) and played.lease.of(Progress)[-1].prefix == SequenceNumber(1))
        attempts = [each.redelivery.attempt for each in played.handovers if each.redelivery is not None]
        assert attempts == [2, 3]
        assert not played.lease.of(Halted)


@simulated
async def test_shard_at_its_end_is_completed_only_when_it_goes_on() -> None:
    """Its end is seen again then."""
    source = ScriptedSource(some_records(1), some_reply([], is_end=True))
    async with a_pipeline(source=source, fetch={"idle_s": 5.0}) as played:
        played.begin()
        await handed_over(played, batches=1)
        played.ref.tell(Pause(7))
        await asyncio.sleep(LONG_S)
        assert "shard_ended" not in played.hooks()
        source.replies.clear()
        source.replies.append(some_reply([], is_end=True))
        played.ref.tell(Pause(None))
        await played.lease.hears(Complete)


@simulated
async def test_shard_that_is_taken_paused_initializes_and_reads_nothing() -> None:
    """The worker is as good as any for others, and the shard is ready to go on."""
    source = ScriptedSource(some_records(1))
    async with a_pipeline(source=source) as played:
        begin_paused(played)
        await played.lease.hears(PipelineStarted)
        await played.lease.hears(Rested)
        await asyncio.sleep(LONG_S)
        assert not source.opened
        played.ref.tell(Pause(None))
        await handed_over(played, batches=1)


@simulated
async def test_paused_shard_drains_as_ever() -> None:
    """Also with a batch that waits; a drain that is called off leaves it paused."""
    async with a_pipeline(some_records(1), work=Failing(1), delivery={"backoff_s": 1.0}) as played:
        played.begin()
        await handed_over(played, batches=1)
        played.ref.tell(Pause(7))
        await asyncio.sleep(LONG_S)
        played.ref.tell(Drain(Why.HANDOFF, played.stage.clock.monotonic() + 5))
        assert (await played.lease.hears(Drained)).prefix is None
        played.ref.tell(Resume(None))
        await played.lease.hears(PipelineStarted, times=2)
        await asyncio.sleep(LONG_S)
        assert len(played.handovers) == 1


@simulated
async def test_shard_goes_on_behind_what_still_waits_for_its_repetition() -> None:
    """Keys that have nothing to do with it are read at once, as far as they might be without the pause."""
    desk = Desk(answers={"1": [Retry(after_s=600.0)]})
    source = ScriptedSource(keyed("ab"))
    ahead = {"records": 3, "seconds": 3600.0}
    async with a_pipeline(source=source, processor=desk.processor(), delivery={"max_ahead": ahead}) as played:
        played.begin()
        await until(lambda: desk.done == ["2"])
        played.ref.tell(Pause(7))
        await played.lease.hears(Rested)
        source.replies += [keyed("c", first=3), keyed("d", first=4), keyed("e", first=5)]
        played.ref.tell(Pause(None))
        await until(lambda: desk.done == ["2", "3"], within_s=10.0)
        assert source.opened[-1] == Position(PositionKind.AFTER, 2)
        await until(lambda: played.lease.of(Progress)[-1].held is not None, within_s=10.0)
        held = played.lease.of(Progress)[-1].held
        assert held is not None
        assert held.sequence_number == "1"
        assert desk.done == ["2", "3"], "the three that may be ahead"
        await until(lambda: played.lease.of(Progress)[-1].prefix == SequenceNumber(5), within_s=700.0)
        assert desk.done == ["2", "3", "1", "4", "5"]


@simulated
async def test_what_was_read_before_the_pause_holds_up_the_reading_as_long_after_it() -> None:
    """``max_ahead.seconds`` counts from when it was read."""
    desk = Desk(answers={"1": [Retry(after_s=600.0)]})
    source = ScriptedSource(keyed("ab"))
    async with a_pipeline(
        source=source, processor=desk.processor(), delivery={"max_ahead": {"seconds": 20.0}}
    ) as played:
        played.begin()
        await until(lambda: desk.done == ["2"])
        played.ref.tell(Pause(7))
        await played.lease.hears(Rested)
        played.ref.tell(Pause(None))
        source.replies.append(keyed("c", first=3))
        await until(lambda: desk.done == ["2", "3"], within_s=10.0)
        await asyncio.sleep(25.0)
        source.replies.append(keyed("d", first=4))
        await asyncio.sleep(LONG_S)
        assert desk.done == ["2", "3"]
        assert (held := played.lease.of(Progress)[-1].held) is not None
        assert held.sequence_number == "1"
        await until(lambda: played.lease.of(Progress)[-1].prefix == SequenceNumber(4), within_s=700.0)
        assert desk.done == ["2", "3", "1", "4"]
