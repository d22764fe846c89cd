"""A handoff between whole workers, case by case as in the table of docs/leases.md.

Cases that need a hand between two messages are in test_lease_handoff.py (holder) and test_lease_receiving.py
(receiver): two receivers, a shard that ends meanwhile, one that is asked for before it was ever taken, a cancel seen
late. The normal case is in test_coordinator_running.py.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from kcl_py.processor import Checkpointer
from kcl_py.records import RecordBatch
from kcl_py.tree.alarms import POLL_S
from tests.kcl_py.tree.fleet import FAILOVER_S, Fleet, Member
from tests.kcl_py.tree.wire import DEADLINE_S, Fault
from tests.simloop import simulated

TICK_S = FAILOVER_S / 10
GRACE_S = 0.5
"""What requests and messages may take."""


@dataclass
class Handoff:
    """A shard of A for which B has asked; A has a batch of it in hand until ``finish``."""

    fleet: Fleet
    holder: Member
    receiver: Member
    shard_id: str
    in_hand: asyncio.Event = field(default_factory=asyncio.Event)

    def finish(self) -> None:
        self.in_hand.set()

    def is_handed_over(self) -> bool:
        """Whether the holder has let go, and the receiver not yet taken."""
        row = self.fleet.row(self.shard_id)
        return (row.owner, row.holder, row.native.owner) == (self.receiver.owner,) * 2 + (self.holder.owner,)

    async def taken(self, by: Member, *, within_s: float) -> None:
        row = self.fleet.row
        await self.fleet.until(lambda: row(self.shard_id).native.owner == by.owner, within_s=within_s)

    async def all_went_well(self) -> None:
        """Put more, and wait until all has been delivered and the workers have stopped."""
        self.fleet.put(20)
        await self.fleet.delivered()
        await self.fleet.stopped()


async def asked(*, handoff_timeout_s: float = 30.0) -> Handoff:
    """Have B join A, and ask for one of its two shards."""
    fleet, in_hand = Fleet(shards=2, leases={"handoff_timeout_s": handoff_timeout_s}), asyncio.Event()

    async def work(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        await in_hand.wait()

    fleet.put(20)
    holder = fleet.start("A", work=work)
    await fleet.until(lambda: len(fleet.diary.handovers) == 2)
    receiver = fleet.start("B")
    await fleet.until(lambda: any(row.in_handoff for row in fleet.rows().values()), each_s=0.001)
    [shard_id] = [key for key, row in fleet.rows().items() if row.in_handoff]
    return Handoff(fleet, holder, receiver, shard_id, in_hand)


@simulated
async def test_receiver_that_dies_before_the_transfer_costs_no_pause_and_no_repetition() -> None:
    """The holder sees that its worker row stands still, takes the request out of the row, and goes on."""
    handoff = await asked()
    handoff.receiver.crash()
    await handoff.fleet.until(lambda: not handoff.fleet.row(handoff.shard_id).in_handoff, within_s=2 * FAILOVER_S)
    handoff.finish()
    await handoff.all_went_well()
    handoff.fleet.check_once()


@simulated
async def test_receiver_that_dies_after_the_transfer_is_waited_for_until_the_row_expires() -> None:
    """Nothing was unfinished, so nothing comes twice."""
    handoff = await asked()
    handoff.finish()
    await handoff.fleet.until(handoff.is_handed_over, each_s=0.001)
    handoff.receiver.crash()
    await handoff.fleet.until(
        lambda: len(handoff.fleet.held_by(handoff.holder)) == 2, within_s=FAILOVER_S * 4 / 3 + TICK_S + GRACE_S
    )
    await handoff.all_went_well()
    handoff.fleet.check_once()


@simulated
async def test_receiver_that_stops_while_it_waits_leaves_the_shard_where_it_is() -> None:
    """It is gone before the holder has finished, and the holder goes on."""
    handoff = await asked()
    assert (await handoff.receiver.stop()).is_clean
    assert handoff.fleet.row(handoff.shard_id).owner == handoff.holder.owner
    handoff.finish()
    await handoff.all_went_well()
    handoff.fleet.check_once()


STEPS: dict[str, Callable[[Handoff], object]] = {
    "asked": lambda handoff: True,
    "draining": lambda handoff: handoff.holder.node(f"shards/{handoff.shard_id}/lease").state == "draining",
    "handing over": lambda handoff: handoff.holder.wire.of("transfer"),
    "handed over": lambda handoff: handoff.is_handed_over(),
}


@pytest.mark.parametrize("step", STEPS)
@simulated
async def test_holder_that_dies_at_any_step_is_replaced_by_the_receiver_within_f(step: str) -> None:
    """The receiver is first in line; nobody looks at the row more often."""
    handoff = await asked()
    if step.startswith("hand"):
        handoff.finish()
    await handoff.fleet.until(lambda: STEPS[step](handoff), each_s=0.001)
    handoff.holder.crash()
    await handoff.taken(handoff.receiver, within_s=FAILOVER_S + POLL_S + GRACE_S)
    await handoff.all_went_well()
    handoff.fleet.check()


@simulated
async def test_holder_that_never_sees_the_request_stops_by_its_own_clock() -> None:
    """All its calls hang: it has abandoned its batch before the receiver takes the expired row."""
    handoff = await asked()
    handoff.holder.wire.is_store_cut = True
    await handoff.taken(handoff.receiver, within_s=FAILOVER_S + POLL_S + GRACE_S)
    handoff.holder.wire.is_store_cut = False
    handoff.finish()
    await handoff.all_went_well()
    handoff.fleet.check()


@simulated
async def test_holder_whose_shard_has_failed_hands_it_over_at_once() -> None:
    """No Pipeline runs, so there is nothing to drain: the receiver does not wait for an expiry."""
    handoff = await asked()
    handoff.holder.kill_actor(f"shards/{handoff.shard_id}")
    await handoff.taken(handoff.receiver, within_s=1.0)
    handoff.finish()
    await handoff.all_went_well()
    handoff.fleet.check()


@simulated
async def test_drain_that_takes_longer_than_its_limit_is_ended_by_the_holder() -> None:
    """Only what was in hand comes again, and the holder's code is cancelled before the receiver begins."""
    handoff = await asked(handoff_timeout_s=5.0)
    [unfinished] = handoff.fleet.diary.of(handoff.shard_id)
    asked_at = handoff.fleet.loop.time()
    await handoff.taken(handoff.receiver, within_s=5.0 + TICK_S + POLL_S + GRACE_S)
    assert handoff.fleet.loop.time() > asked_at + 5.0
    handoff.finish()
    await handoff.all_went_well()
    handoff.fleet.check()
    handed_over = sum(len(handover.records) for handover in handoff.fleet.diary.handovers)
    assert handed_over == len(handoff.fleet.put_data) + len(unfinished.records)


@pytest.mark.parametrize("fault", [Fault.LOST_REPLY, Fault.LOST_REQUEST, Fault.LATE, Fault.BROKEN, Fault.THROTTLED])
@simulated
async def test_transfer_that_fails_is_made_again_and_nothing_comes_twice(fault: Fault) -> None:
    """Whatever became of it, the shard goes over, once."""
    handoff = await asked()
    handoff.holder.wire.fail("transfer", fault)
    handoff.finish()
    await handoff.taken(handoff.receiver, within_s=3 * DEADLINE_S + TICK_S + POLL_S)
    await handoff.all_went_well()
    handoff.fleet.check_once()
