"""How a Pipeline lets go: drained in order, out of time, abandoned, ended, and begun again."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from structlog.testing import LogCapture

from kcl_py.delivery.hook import ABANDON_S
from kcl_py.leases.row import LeaseRow
from kcl_py.processor import Checkpointer, OwnedShard, RecordProcessor
from kcl_py.records import RecordBatch, SequenceNumber
from kcl_py.sources.source import Position, PositionKind
from kcl_py.tree.messages import Abandon, Complete, Drain, Drained, Halted, Resume, Why
from kcl_py.tree.pipeline import FAREWELL_S
from tests.kcl_py.tree.pipelines import Failing, Played, a_pipeline
from tests.kcl_py.tree.stage import SHARD, ScriptedSource, some_records, some_reply, until
from tests.simloop import simulated

LATER = float("inf")


async def stuck(batch: RecordBatch, checkpointer: Checkpointer) -> None:
    """Never return."""
    await asyncio.Event().wait()


async def deaf(batch: RecordBatch, checkpointer: Checkpointer) -> None:
    """Never return, not even when cancelled."""
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            continue


def replace_hook(played: Played, name: str, hook: Callable[..., Awaitable[None]]) -> None:
    setattr(played.stage.worker.processor, name, hook)


async def begun(played: Played, row: LeaseRow | None = None) -> None:
    """Start it and wait until the first batch is in hand."""
    played.begin(row)
    await until(lambda: played.handovers)


@simulated
async def test_drain_waits_for_the_running_batch_and_drops_what_is_queued() -> None:
    """What was handed over is finished; what was only read is dropped unmarked, for the next owner."""
    source, delivery = ScriptedSource(some_records(4)), {"batch": {"max_records": 2}}
    async with a_pipeline(source=source, fetch={"budget_bytes": 1}, delivery=delivery) as played:
        played.stage.diary.work_s = 5.0
        await begun(played)
        await asyncio.sleep(1.0)
        played.ref.tell(Drain(Why.HANDOFF, LATER))
        drained = await played.lease.hears(Drained)
        assert drained == Drained(SequenceNumber(2), SequenceNumber(2), 0)
        assert played.stage.clock.monotonic() == pytest.approx(5.0, abs=0.1)
        assert played.numbers() == [[1, 2]]
        assert played.hooks() == ["initialize", "shutdown_requested"]
        reads = len(source.fetched)
        await asyncio.sleep(30)
        assert len(source.fetched) == reads
        await played.stage.finds_memory_free()


@simulated
async def test_drain_drops_a_batch_that_waits_for_its_retry() -> None:
    """A failed batch is not waited for: it comes again with the next owner, and no time was short."""
    async with a_pipeline(some_records(3), work=Failing(9), delivery={"backoff_s": 20}) as played:
        await begun(played, LeaseRow(SHARD, checkpoint="0"))
        await asyncio.sleep(1)
        played.ref.tell(Drain(Why.STOP, LATER))
        drained = await played.lease.hears(Drained, within_s=1)
        assert drained == Drained(SequenceNumber(0), SequenceNumber(3), 0)
        await asyncio.sleep(60)
        assert len(played.handovers) == 1


@simulated
async def test_drain_drops_a_batch_that_fails_meanwhile() -> None:
    """A batch that raises while the Pipeline drains is not tried again and not marked."""

    async def fail_late(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        await asyncio.sleep(3)
        raise ValueError("no such user")

    async with a_pipeline(some_records(3), work=fail_late) as played:
        await begun(played)
        played.ref.tell(Drain(Why.STOP, LATER))
        assert await played.lease.hears(Drained) == Drained(None, SequenceNumber(3), 0)
        assert played.hooks() == ["initialize", "shutdown_requested"]


@pytest.mark.parametrize("work", [stuck, deaf], ids=["stuck", "deaf to its cancellation"])
@simulated
async def test_drain_ends_at_its_limit_when_the_batch_does_not_return(work: Any, log: LogCapture) -> None:
    """A processor that never returns holds nobody up for long, and its batch counts as unfinished."""
    async with a_pipeline(some_records(3), work=work) as played:
        await begun(played)
        played.ref.tell(Drain(Why.STOP, 7.0))
        assert await played.lease.hears(Drained) == Drained(None, SequenceNumber(3), 3)
        assert played.stage.clock.monotonic() == pytest.approx(7.0 + (ABANDON_S if work is deaf else 0.0), abs=0.1)
        assert played.hooks() == ["initialize", "lease_lost"]
        played.ref.stop()
        await played.ref.ended()
        assert played.stage.clock.monotonic() < 7.0 + ABANDON_S + 0.5


@pytest.mark.parametrize("end", [Drain(Why.HANDOFF, 3.0), Abandon()], ids=["out of time", "abandoned"])
@simulated
async def test_hook_that_cleans_up_when_it_is_cancelled_is_waited_for_before_the_next_one(end: object) -> None:
    """Hooks of a shard are called one after the other, never two at a time."""
    ended_at: list[float] = []

    async def tidy(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(ABANDON_S / 2)
            ended_at.append(played.stage.clock.monotonic())

    async with a_pipeline(some_records(3), work=tidy) as played:
        await begun(played)
        played.ref.tell(end)
        assert await played.lease.hears(Drained) == Drained(None, SequenceNumber(3), 3)
        [last] = played.stage.diary.called("lease_lost")
        assert [last.at] == ended_at


@simulated
async def test_pipeline_has_drained_only_when_a_last_hook_that_was_cut_off_has_cleaned_up() -> None:
    """What it says then lets another worker begin, or a new processor here."""
    ended_at: list[float] = []

    async def tidy(self: Any, checkpointer: Checkpointer) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(ABANDON_S / 2)
            ended_at.append(played.stage.clock.monotonic())

    async with a_pipeline(some_records(1)) as played:
        replace_hook(played, "shutdown_requested", tidy)
        await begun(played)
        played.ref.tell(Drain(Why.HANDOFF, 3.0))
        assert await played.lease.hears(Drained) == Drained(SequenceNumber(1), SequenceNumber(1), 0)
        assert ended_at == [pytest.approx(3.0 + ABANDON_S / 2, abs=0.01)]
        assert played.stage.clock.monotonic() >= ended_at[0]


@simulated
async def test_drain_takes_the_nearer_of_two_limits() -> None:
    """A worker that stops during a handover does not wait for the handover's longer limit."""
    async with a_pipeline(some_records(1), work=stuck) as played:
        await begun(played)
        played.ref.tell(Drain(Why.HANDOFF, 20.0))
        played.ref.tell(Drain(Why.STOP, 5.0))
        played.ref.tell(Drain(Why.STOP, 50.0))
        await played.lease.hears(Drained)
        assert played.stage.clock.monotonic() == pytest.approx(5.0, abs=0.1)


@simulated
async def test_drain_waits_for_initialize() -> None:
    """A processor that is just being prepared is not cut off, and gets its last hook."""
    async with a_pipeline(some_records(1)) as played:

        async def initialize(self: Any, shard: Any) -> None:
            self.shard = shard
            await asyncio.sleep(5)

        replace_hook(played, "initialize", initialize)
        played.begin()
        await asyncio.sleep(1)
        played.ref.tell(Drain(Why.HANDOFF, LATER))
        assert await played.lease.hears(Drained) == Drained(None, None, 0)
        assert played.hooks() == ["shutdown_requested"]
        assert not played.handovers


@simulated
async def test_initialize_that_outlasts_the_drain_is_cut_off_and_named(log: LogCapture) -> None:
    """It has no records that come again, so the log is what tells why the stop took all its time."""
    async with a_pipeline(some_records(1)) as played:

        async def initialize(self: Any, shard: Any) -> None:
            self.shard = shard
            await asyncio.Event().wait()

        replace_hook(played, "initialize", initialize)
        played.begin()
        await asyncio.sleep(1)
        played.ref.tell(Drain(Why.STOP, 3.0))
        assert await played.lease.hears(Drained) == Drained(None, None, 0)
        said = [(entry["event"], entry.get("hook")) for entry in log.entries if "cut_off" in entry["event"]]
        assert said == [("kcl_py.processor.cut_off", "initialize")]


@simulated
async def test_drain_of_a_shard_without_a_processor_calls_no_hook() -> None:
    """Held back before the first hook, there is nobody to say goodbye to."""
    async with a_pipeline(some_records(1)) as played:
        played.stage.stand_still()
        await asyncio.sleep(1.0)
        played.stage.keep_pulse()
        played.begin()
        await asyncio.sleep(1.0)
        played.ref.tell(Drain(Why.HANDOFF, LATER))
        assert await played.lease.hears(Drained, within_s=0.1) == Drained(None, None, 0)
        assert played.hooks() == []


@simulated
async def test_drain_of_a_halted_shard_ends_at_once() -> None:
    """A shard that stands still can be let go of: nothing of it was cut off by the stop."""
    async with a_pipeline(some_records(2), work=Failing(9), delivery={"retries": 0}) as played:
        await begun(played, LeaseRow(SHARD, checkpoint="0"))
        await played.lease.hears(Halted)
        played.ref.tell(Drain(Why.STOP, LATER))
        assert await played.lease.hears(Drained, within_s=1) == Drained(SequenceNumber(0), SequenceNumber(2), 0)
        assert played.hooks() == ["initialize", "shutdown_requested"]


@simulated
async def test_drain_completes_the_shard_when_its_end_is_in_hand() -> None:
    """A shard that ends while it drains is completed, not handed on."""
    async with a_pipeline(some_reply(some_records(1), is_end=True)) as played:

        async def shard_ended(self: Any, checkpointer: Any) -> None:
            self._note("shard_ended")
            await asyncio.sleep(5)

        replace_hook(played, "shard_ended", shard_ended)
        await begun(played)
        await until(lambda: "shard_ended" in played.hooks())
        played.ref.tell(Drain(Why.HANDOFF, LATER))
        await played.lease.hears(Complete)
        await asyncio.sleep(30)
        assert played.hooks() == ["initialize", "shard_ended"]
        assert not played.lease.of(Drained)


@simulated
async def test_abandon_cancels_the_running_batch_and_says_lease_lost_once() -> None:
    """An ownership that is over ends at once: nothing is waited for, nothing is handed over, nothing is marked."""
    async with a_pipeline(some_records(2), some_records(2, first=3)) as played:
        played.stage.diary.work_s = 30.0
        await begun(played)
        await asyncio.sleep(1)
        played.ref.tell(Abandon())
        assert await played.lease.hears(Drained, within_s=0.1) == Drained(None, SequenceNumber(2), 2)
        await asyncio.sleep(60)
        assert [handover.is_done for handover in played.handovers] == [False]
        assert played.hooks() == ["initialize", "lease_lost"]


@simulated
async def test_abandon_during_a_drain_ends_it() -> None:
    """Losing the lease while the running batch is waited for cuts the wait short."""
    async with a_pipeline(some_records(2), work=stuck) as played:
        await begun(played)
        played.ref.tell(Drain(Why.HANDOFF, LATER))
        await asyncio.sleep(3)
        played.ref.tell(Abandon())
        await played.lease.hears(Drained, within_s=0.1)
        assert played.hooks() == ["initialize", "lease_lost"]


@simulated
async def test_abandon_of_a_drained_pipeline_is_answered_without_another_hook() -> None:
    """The last hook of an ownership is called once, whatever comes after it."""
    async with a_pipeline(some_records(1)) as played:
        await begun(played)
        played.ref.tell(Drain(Why.HANDOFF, LATER))
        await played.lease.hears(Drained)
        played.ref.tell(Abandon())
        await played.lease.hears(Drained, times=2)
        assert played.hooks() == ["initialize", "shutdown_requested"]


@pytest.mark.parametrize(("end", "hook"), [(Drain(Why.STOP, LATER), "shutdown_requested"), (Abandon(), "lease_lost")])
@pytest.mark.parametrize("error", [OSError("no disk"), SystemExit("no disk")])
@simulated
async def test_last_hook_that_raises_is_logged_and_changes_nothing(
    end: object, hook: str, error: BaseException, log: LogCapture
) -> None:
    """An error of ``shutdown_requested`` or ``lease_lost`` neither keeps the lease nor fails the shard."""
    async with a_pipeline(some_records(1)) as played:

        async def failing(self: Any, *arguments: Any) -> None:
            raise error

        replace_hook(played, hook, failing)
        await begun(played)
        await until(lambda: played.handovers[0].is_done)
        played.ref.tell(end)
        assert await played.lease.hears(Drained) == Drained(SequenceNumber(1), SequenceNumber(1), 0)
        [entry] = [entry for entry in log.entries if entry["event"] == "kcl_py.processor.failed"]
        assert entry["hook"] == hook
        assert type(error).__name__ in entry["error"]
        assert "no disk" in entry["error"]


@simulated
async def test_lease_lost_that_hangs_is_cut_off() -> None:
    """The shard is another worker's by then: nothing waits for long."""
    async with a_pipeline(some_records(1)) as played:

        async def hanging(self: Any) -> None:
            await asyncio.Event().wait()

        replace_hook(played, "lease_lost", hanging)
        await begun(played)
        played.ref.tell(Abandon())
        await played.lease.hears(Drained)
        assert played.stage.clock.monotonic() == pytest.approx(FAREWELL_S, abs=0.2)


@simulated
async def test_pipeline_goes_on_where_its_lease_says_when_a_handoff_is_called_off() -> None:
    """After ``Resume`` what was dropped is read and handed over again, to a new processor, and nothing twice."""
    source = ScriptedSource(some_records(2), some_records(2, first=3), [], some_records(2, first=3))
    async with a_pipeline(source=source) as played:
        played.stage.diary.work_s = 1.0
        prepared: list[SequenceNumber | None] = []
        prepare = played.stage.worker.processor.initialize

        async def initialize(self: RecordProcessor, shard: OwnedShard) -> None:
            prepared.append(shard.position)
            await prepare(self, shard)

        replace_hook(played, "initialize", initialize)
        await begun(played)
        played.ref.tell(Drain(Why.HANDOFF, LATER))
        await played.lease.hears(Drained)
        source.replies.clear()
        source.replies.append(some_records(2, first=3))
        played.ref.tell(Resume(SequenceNumber(2)))
        await until(lambda: len(played.handovers) == 2 and played.handovers[-1].is_done)
        assert played.numbers() == [[1, 2], [3, 4]]
        assert source.opened[-1] == Position(PositionKind.AFTER, 2)
        assert played.hooks() == ["initialize", "shutdown_requested", "initialize"]
        assert prepared == [None, SequenceNumber(2)]
        assert played.handovers[-1].redelivery is None


@simulated
async def test_abandon_cuts_off_a_last_hook_that_was_meant_for_a_lease_still_held() -> None:
    """``shutdown_requested`` may checkpoint and publish; past the deadline the shard is another worker's."""
    async with a_pipeline(some_records(1)) as played:

        async def hanging(self: Any, checkpointer: Checkpointer) -> None:
            await asyncio.Event().wait()

        replace_hook(played, "shutdown_requested", hanging)
        await begun(played)
        played.ref.tell(Drain(Why.HANDOFF, LATER))
        await until(lambda: played.handovers[0].is_done)
        abandoned_at = played.stage.clock.monotonic()
        played.ref.tell(Abandon())
        await played.lease.hears(Drained)
        assert played.stage.clock.monotonic() - abandoned_at < 0.1
        assert played.hooks() == ["initialize"], "it is not followed by another last hook"


@simulated
async def test_resumed_pipeline_drains_again() -> None:
    """A second handoff after one that was called off finds a Pipeline like any other."""
    async with a_pipeline(some_records(2)) as played:
        await begun(played)
        played.ref.tell(Drain(Why.HANDOFF, 5.0))
        await played.lease.hears(Drained)
        played.ref.tell(Resume(SequenceNumber(2)))
        await asyncio.sleep(30)
        played.ref.tell(Drain(Why.HANDOFF, 60.0))
        await played.lease.hears(Drained, times=2)
        assert played.hooks() == ["initialize", "shutdown_requested"] * 2
