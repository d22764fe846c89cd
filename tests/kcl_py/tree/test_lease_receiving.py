"""A handoff, case by case: the rows of the table of docs/leases.md that concern the receiver."""

import asyncio
from dataclasses import replace

import pytest

from kcl_py.leases import rules
from kcl_py.leases.row import LeaseRow, Native
from kcl_py.leases.store import Is, Write
from kcl_py.leases.view import How
from kcl_py.records import SequenceNumber
from kcl_py.tree.alarms import POLL_S
from kcl_py.tree.messages import (
    Acquired,
    Awaiting,
    GaveUp,
    Release,
    Start,
)
from tests.kcl_py.tree.fleet import FAILOVER_S
from tests.kcl_py.tree.leases import (
    THEIRS,
    PlayedLease,
    a_lease,
    a_receiver,
    beats,
)
from tests.kcl_py.tree.stage import ME, OTHER, SHARD, until
from tests.kcl_py.tree.wire import Fault
from tests.simloop import simulated

ANOTHER = "another/00000003"


async def let_go(played: PlayedLease, position: int = 8) -> None:
    """Play the holder elsewhere that has drained."""
    await played.stage.store.write(rules.transfer(played.row, owner=OTHER, position=SequenceNumber(position)))


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
