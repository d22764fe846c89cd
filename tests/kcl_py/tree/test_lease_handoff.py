"""A handoff, case by case: the table of docs/leases.md, each row from the side that it concerns."""

import asyncio
from dataclasses import replace

import pytest

from kcl_py.delivery.lag import Lag
from kcl_py.leases import rules
from kcl_py.leases.row import Halt, LeaseRow, Native
from kcl_py.leases.store import Is, Write
from kcl_py.leases.view import How
from kcl_py.records import SequenceNumber
from kcl_py.sources.source import ShardInfo
from kcl_py.tree.lease import POLL_S
from kcl_py.tree.messages import (
    Abandon,
    Acquired,
    Awaiting,
    Complete,
    Drain,
    Drained,
    GaveUp,
    Halted,
    Hint,
    MemberGone,
    Progress,
    Release,
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
    a_receiver,
    beats,
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


async def let_go(played: PlayedLease, position: int = 8) -> None:
    """Play the holder elsewhere that has drained."""
    await played.stage.store.write(rules.transfer(played.row, owner=OTHER, position=SequenceNumber(position)))


# --- the holder ------------------------------------------------------------------------------------------------------


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
        await played.pipeline.hears(Resume)
        renewals = [call.at for call in played.stage.wire.of("heartbeat")]
        reads = [call.at for call in played.stage.wire.of("read")]
        assert renewals[-1] >= reads[-1], "the renewal was sent after the deciding read"
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


# --- the receiver ----------------------------------------------------------------------------------------------------


@simulated
async def test_receiver_takes_the_shard_soon_after_the_holder_has_let_go() -> None:
    """The normal case: polled each 150 ms, so the shard stands still for less than half a second."""
    async with a_receiver() as played:
        assert (played.row.owner, played.row.checkpoint_owner) == (ME, OTHER)
        await beats(played, every_s=0.5, for_s=20)
        assert not played.coordinator.of(Acquired)
        await let_go(played)
        await played.coordinator.hears(Acquired, within_s=POLL_S + 0.05)
        start = await played.pipeline.hears(Start)
        assert start.row.checkpoint == "8"
        assert start.row.native.token != "theirs"


@simulated
async def test_receiver_leaves_the_shard_to_another_that_asked_first() -> None:
    """Of two receivers one gets its name into the row; the other plans again."""
    async with a_lease(THEIRS, how=How.HANDOFF) as played:
        await played.stage.store.write(rules.start_handoff(THEIRS, owner=ANOTHER))
        await played.coordinator.hears(GaveUp, within_s=0.1)
        assert (played.row.owner, played.row.checkpoint_owner) == (ANOTHER, OTHER)
        assert not played.coordinator.of(Awaiting)


@pytest.mark.parametrize("fault", [Fault.LOST_REPLY, Fault.LOST_REQUEST, Fault.BROKEN])
@simulated
async def test_receiver_finds_out_by_reading_whether_its_request_took_effect(fault: Fault) -> None:
    """A request without an answer either stands in the row, and is waited for, or is given up."""
    async with a_lease(THEIRS, how=How.HANDOFF) as played:
        played.stage.wire.fail("start handoff", fault)
        if fault is Fault.LOST_REPLY:
            await played.coordinator.hears(Awaiting)
        else:
            await played.coordinator.hears(GaveUp)
            assert played.row == THEIRS


@simulated
async def test_receiver_takes_the_shard_when_the_holder_has_died() -> None:
    """A row whose counter stands still for F is taken, handoff or not."""
    async with a_receiver() as played:
        begun_at = played.now
        await played.coordinator.hears(Acquired)
        assert begun_at + FAILOVER_S < played.now < begun_at + FAILOVER_S + POLL_S + 0.1
        assert (played.row.owner, played.row.checkpoint_owner) == (ME, None)


@simulated
async def test_receiver_waits_for_a_dead_holder_only_from_when_its_row_was_last_seen_to_move() -> None:
    """A pull from a worker that had died before does not begin to count anew."""
    async with a_receiver(seen_at=-2.0) as played:
        await played.coordinator.hears(Acquired)
        assert FAILOVER_S - 2.0 < played.now < FAILOVER_S - 2.0 + POLL_S + 0.1


@simulated
async def test_receiver_never_takes_from_a_holder_that_renews() -> None:
    """However slowly the other drains, only the holder ends its drain."""
    async with a_receiver(seen_at=-2.0) as played:
        await beats(played, every_s=FAILOVER_S - 0.2, for_s=60)
        assert not played.coordinator.of(Acquired)


@simulated
async def test_receiver_that_stops_withdraws_its_request() -> None:
    """The holder then keeps the shard without a pause."""
    async with a_receiver() as played:
        played.ref.tell(Release(played.now, played.now + 20))
        await played.coordinator.hears(GaveUp, within_s=0.5)
        assert (played.row.owner, played.row.checkpoint_owner, played.row.counter) == (OTHER, None, 5)


@simulated
async def test_receiver_that_stops_takes_and_releases_what_was_handed_over_already() -> None:
    """If the withdrawal fails the transfer has happened: the shard is let go of, not left to expire."""
    async with a_receiver() as played:
        await asyncio.sleep(POLL_S / 2)
        await let_go(played)
        played.ref.tell(Release(played.now, played.now + 20))
        await played.pipeline.hears(Start)
        await played.drains(8)
        await played.coordinator.hears(GaveUp)
        assert (played.row.owner, played.row.checkpoint) == (None, "8")


@simulated
async def test_receiver_that_stops_takes_and_releases_what_was_handed_over_during_its_withdrawal() -> None:
    """The withdrawal is refused, since the transfer was faster: the shard is ours, and let go of."""
    async with a_receiver() as played:
        played.ref.tell(Release(played.now, played.now + 20))
        await until(lambda: played.writes("cancel handoff by receiver"), each_s=0.0005)
        await let_go(played)
        await played.drains(8)
        await played.coordinator.hears(GaveUp)
        assert (played.row.owner, played.row.checkpoint) == (None, "8")


@simulated
async def test_receiver_that_stops_finds_out_about_a_withdrawal_without_an_answer() -> None:
    """A lost reply leaves no request behind, and no row that names a worker that is gone."""
    async with a_receiver() as played:
        played.stage.wire.fail("cancel handoff by receiver", Fault.LOST_REPLY)
        played.ref.tell(Release(played.now, played.now + 20))
        await played.coordinator.hears(GaveUp)
        assert played.row.owner == OTHER


@simulated
async def test_receiver_passes_on_what_another_asked_for_before_it_was_taken() -> None:
    """Asked for between the transfer and the take, the shard goes on at once to whom the row names."""
    async with a_receiver() as played:
        await let_go(played)
        await played.ask_for_it(ANOTHER)
        await played.coordinator.hears(GaveUp, within_s=POLL_S + 0.1)
        assert (played.row.owner, played.row.checkpoint_owner) == (ANOTHER, None)
        assert not played.coordinator.of(Acquired)


@simulated
async def test_receiver_passes_on_what_another_asked_for_while_its_take_was_on_its_way() -> None:
    """A take that fails because somebody asked in between is no loss to anybody."""
    async with a_receiver() as played:
        await let_go(played)
        await until(lambda: played.writes("take") == 1, each_s=0.0005)
        await played.ask_for_it(ANOTHER)
        await played.coordinator.hears(GaveUp, within_s=POLL_S + 0.1)
        assert (played.row.owner, played.row.checkpoint_owner) == (ANOTHER, None)


@simulated
async def test_receiver_gives_up_when_the_shard_ended_meanwhile() -> None:
    """The holder has completed the shard: there is nothing to take."""
    async with a_receiver() as played:
        held = Write("end", SHARD, (Is(("checkpointOwner",), OTHER),), {("checkpoint",): "SHARD_END"})
        await played.stage.store.write(held)
        await played.coordinator.hears(GaveUp, within_s=POLL_S + 0.1)
        assert not played.coordinator.of(Acquired)


@pytest.mark.parametrize("fault", [Fault.THROTTLED, Fault.BROKEN, Fault.LOST_REQUEST])
@simulated
async def test_receiver_takes_again_when_its_take_after_the_transfer_failed(fault: Fault) -> None:
    """The shard is nobody's then: it is not left until the next look at the whole table."""
    async with a_receiver() as played:
        played.stage.wire.fail("take", fault)
        await let_go(played)
        await played.coordinator.hears(Acquired, within_s=1.5)


@simulated
async def test_receiver_goes_on_waiting_when_a_look_at_the_row_fails() -> None:
    """One failed read ends no handoff."""
    async with a_receiver() as played:
        played.stage.wire.fail("read", Fault.THROTTLED, times=3)
        await asyncio.sleep(2)
        await let_go(played)
        await played.coordinator.hears(Acquired, within_s=1)


@simulated
async def test_lease_waits_for_a_handoff_that_its_own_earlier_shard_asked_for() -> None:
    """A request of this very worker that stands in the row without a Lease is waited for like a new one."""
    row = replace(THEIRS, owner=ME, checkpoint_owner=OTHER)
    async with a_lease(row, how=How.AWAIT) as played:
        await beats(played, every_s=0.5, for_s=5)
        await let_go(played)
        await played.coordinator.hears(Acquired, within_s=POLL_S + 0.1)
        assert isinstance(played.row, LeaseRow)
        assert isinstance(played.row.native, Native)
