"""A handoff, case by case: the rows of the table of docs/leases.md that concern the holder."""

import asyncio
from dataclasses import replace

import pytest

from kcl_py.delivery.lag import Lag
from kcl_py.leases import rules
from kcl_py.leases.row import Halt
from kcl_py.leases.view import How
from kcl_py.records import SequenceNumber
from kcl_py.sources.source import ShardInfo
from kcl_py.tree.messages import (
    Abandon,
    Complete,
    Drain,
    Drained,
    GaveUp,
    Halted,
    Hint,
    MemberGone,
    Progress,
    Resume,
    ShardEnded,
    Start,
    Why,
)
from tests.kcl_py.tree.fleet import FAILOVER_S
from tests.kcl_py.tree.leases import (
    FREE,
    HEARTBEAT_S,
    TENURE_S,
    THEIRS,
    PlayedLease,
    a_lease,
)
from tests.kcl_py.tree.stage import ME, OTHER, SHARD, ScriptedSource, until
from tests.kcl_py.tree.wire import Fault
from tests.simloop import simulated

ANOTHER = "another/00000003"


async def asked(played: PlayedLease) -> None:
    """Take the lease and be asked for it."""
    await played.held()
    played.progress(8)
    await played.ask_for_it()


@simulated
async def test_holder_drains_and_hands_over_with_its_final_checkpoint_in_one_write() -> None:
    """The normal case: the row goes over with the position of what has drained, and only then."""
    async with a_lease(FREE) as played:
        await asked(played)
        drain = await played.pipeline.hears(Drain, within_s=HEARTBEAT_S + 0.1)
        assert drain.why is Why.HANDOFF
        await asyncio.sleep(5)
        assert played.row.holder == ME, "a drain that takes long keeps the row renewed"
        played.ref.tell(Drained(SequenceNumber(9), SequenceNumber(9), 0))
        gave_up = await played.coordinator.hears(GaveUp, within_s=0.1)
        assert (played.row.owner, played.row.checkpoint_owner, played.row.checkpoint) == (OTHER, None, "9")
        assert gave_up.row == played.row
        assert played.writes("transfer") == 1


@simulated
async def test_holder_drains_at_once_when_a_scan_shows_the_request() -> None:
    """With the news of the other worker the request is seen long before the next heartbeat."""
    async with a_lease(FREE) as played:
        await asked(played)
        played.ref.tell(Hint(played.row))
        await played.pipeline.hears(Drain, within_s=0.1)


@simulated
async def test_holder_gives_a_slow_drain_its_limit_and_hands_over_what_is_finished() -> None:
    """Only the holder ends a long drain: at its own limit, counted from when it saw the request."""
    async with a_lease(FREE, leases={"handoff_timeout_s": 7.0}) as played:
        await asked(played)
        drain = await played.drains(3, delivered=9, unfinished=6)
        assert drain.until_at == pytest.approx(played.now + 7.0, abs=0.1)
        gave_up = await played.coordinator.hears(GaveUp)
        assert (played.row.owner, played.row.checkpoint) == (OTHER, "8"), "a checkpoint never goes back"
        assert gave_up.unfinished == 6


@simulated
async def test_holder_calls_the_handoff_off_when_the_receiver_has_died_and_goes_on() -> None:
    """A dead receiver's request is taken out of the row, and the shard goes on here once that is confirmed."""
    async with a_lease(FREE) as played:
        await asked(played)
        await played.pipeline.hears(Drain)
        played.ref.tell(MemberGone(OTHER))
        await until(lambda: not played.row.in_handoff, within_s=0.1)
        assert played.row.owner == ME
        assert not played.pipeline.of(Resume), "its Pipeline still drains"
        played.ref.tell(Drained(SequenceNumber(8), SequenceNumber(8), 0))
        await played.pipeline.hears(Resume, within_s=0.5)
        await asyncio.sleep(5)
        assert played.row.owner == ME
        assert not played.coordinator.of(GaveUp)


@pytest.mark.parametrize(("mode", "position"), [("auto", 8), ("manual", 5)])
@simulated
async def test_shard_goes_on_from_what_counts_as_finished_when_the_handoff_is_called_off(
    mode: str, position: int
) -> None:
    """In manual mode only what was checkpointed does: the records after it come again, to the new processor."""
    async with a_lease(replace(FREE, checkpoint="5"), checkpoint={"mode": mode}) as played:
        await asked(played)
        await played.pipeline.hears(Drain)
        played.ref.tell(MemberGone(OTHER))
        await until(lambda: not played.row.in_handoff, within_s=0.1)
        played.ref.tell(Drained(SequenceNumber(8), SequenceNumber(8), 0))
        assert await played.pipeline.hears(Resume) == Resume(SequenceNumber(position))


@simulated
async def test_records_not_stored_before_a_handoff_that_was_called_off_count_when_the_lease_is_lost() -> None:
    """They come again to whoever has the shard next, just as those that the new processor has finished."""
    async with a_lease(FREE, checkpoint={"interval_s": 100.0}) as played:
        await played.held()
        played.progress(5)
        await until(lambda: played.row.checkpoint == "5")
        played.progress(8)
        await played.ask_for_it()
        await played.pipeline.hears(Drain)
        played.ref.tell(MemberGone(OTHER))
        played.ref.tell(Drained(SequenceNumber(8), SequenceNumber(8), 0))
        await played.pipeline.hears(Resume)
        now = played.stage.clock.monotonic()
        played.ref.tell(Progress(SequenceNumber(9), SequenceNumber(9), Lag(0, now), 1))
        played.stage.wire.is_cut = True
        await played.pipeline.hears(Abandon)
        played.ref.tell(Drained(SequenceNumber(9), SequenceNumber(9), 0))
        assert (await played.coordinator.hears(GaveUp)).unfinished == 4


@simulated
async def test_holder_hands_over_to_a_receiver_that_was_taken_for_dead_and_asks_again() -> None:
    """One that had only stood still is alive: its new request is served, not called off for ever."""
    async with a_lease(FREE) as played:
        await asked(played)
        await played.pipeline.hears(Drain)
        played.ref.tell(MemberGone(OTHER))
        await until(lambda: not played.row.in_handoff, within_s=0.1)
        played.ref.tell(Halted(Halt("ValueError", "9")))
        await played.drains(8)
        await played.pipeline.hears(Resume, within_s=0.5)
        await until(lambda: played.row.native.halted is None, within_s=FAILOVER_S)
        await asked(played)
        await until(lambda: len(played.pipeline.of(Drain)) == 2, within_s=FAILOVER_S / 3 + 0.1)
        await played.drains(9)
        await played.coordinator.hears(GaveUp)
        assert (played.row.owner, played.row.checkpoint_owner, played.row.checkpoint) == (OTHER, None, "9")


@simulated
async def test_holder_resumes_only_after_a_heartbeat_that_was_sent_after_the_cancel_was_seen() -> None:
    """Until the counter has risen an older transfer may still take effect, so nothing is handed over before."""
    async with a_lease(FREE) as played:
        await asked(played)
        await played.drains(8)
        played.stage.wire.fail("transfer", Fault.LATE)
        await until(lambda: played.writes("transfer") == 1)
        await played.stage.store.write(rules.cancel_handoff_by_receiver(played.row, owner=OTHER))
        counter = played.row.counter
        played.stage.wire.fail("heartbeat", Fault.THROTTLED)
        await played.pipeline.hears(Resume)
        assert played.row.counter > counter, "the renewal was acknowledged"
        renewals = [call.at for call in played.stage.wire.of("heartbeat")]
        reads = [call.at for call in played.stage.wire.of("read")]
        assert renewals[-1] >= reads[-1], "it was sent after the deciding read"
        await asyncio.sleep(5)
        assert played.row.owner == ME, "the transfer that arrived late found a higher counter"


@simulated
async def test_holder_may_be_asked_again_after_a_handoff_that_was_called_off() -> None:
    """The second request is a handoff like the first."""
    async with a_lease(FREE) as played:
        await asked(played)
        await played.drains(8)
        await asyncio.sleep(0)
        played.stage.wire.fail("transfer", Fault.LATE)
        await until(lambda: played.writes("transfer") == 1)
        await played.stage.store.write(rules.cancel_handoff_by_receiver(played.row, owner=OTHER))
        await played.pipeline.hears(Resume)
        await played.ask_for_it(ANOTHER)
        await played.pipeline.hears(Drain, times=2)
        played.ref.tell(Drained(SequenceNumber(9), SequenceNumber(9), 0))
        await until(lambda: played.row.owner == ANOTHER and not played.row.in_handoff)


@simulated
async def test_holder_stops_at_its_deadline_when_it_cannot_see_the_request() -> None:
    """With its calls hanging it neither hands over nor goes on: the row expires for the receiver."""
    async with a_lease(FREE) as played:
        await asked(played)
        played.stage.wire.is_cut = True
        await played.pipeline.hears(Abandon)
        assert played.now <= TENURE_S + 0.05
        assert played.row.in_handoff


@simulated
async def test_lease_passes_on_at_once_what_was_asked_for_while_no_pipeline_ran() -> None:
    """No Pipeline, no heartbeat: a row that another asked for after our Shard had died is handed over unread."""
    row = replace(THEIRS, owner=OTHER, checkpoint_owner=ME)
    async with a_lease(row, how=How.OWN) as played:
        await played.coordinator.hears(GaveUp, within_s=0.1)
        assert (played.row.owner, played.row.checkpoint_owner, played.row.counter) == (OTHER, None, 6)
        assert not played.pipeline.of(Start)


@simulated
async def test_holder_completes_a_shard_that_ends_during_the_handoff() -> None:
    """An ended shard has no owner and no receiver any more."""
    async with a_lease(FREE, source=ScriptedSource()) as played:
        await asked(played)
        await played.pipeline.hears(Drain)
        played.ref.tell(Complete(SequenceNumber(9), (ShardInfo("shardId-000000000001", (SHARD,)),)))
        await played.coordinator.hears(ShardEnded)
        row = played.row
        assert row.has_ended
        assert (row.owner, row.checkpoint_owner, row.children) == (None, None, ("shardId-000000000001",))
