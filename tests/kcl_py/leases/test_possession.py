"""What a holder may rely on: deadlines from send times, gaps of the loop, and what a receiver does with its row."""

from dataclasses import replace
from typing import Literal

import pytest

from kcl_py.leases import rules
from kcl_py.leases.fence import Pulse
from kcl_py.leases.possession import Possession
from kcl_py.leases.receiving import Receiving, Step
from kcl_py.leases.row import LeaseRow, Native
from kcl_py.leases.writer import Settled

ME, OTHER, THIRD = "me/1", "other/2", "third/3"
F, MARGIN = 10.0, 1.0
ROW = LeaseRow("shard", counter=5)


def held(*, taken_at: float = 100.0) -> Possession:
    """Take the row, with a write sent at that instant."""
    possession = Possession(ROW, Pulse(MARGIN / 2, taken_at), failover_s=F, margin_s=MARGIN)
    write = rules.take(ROW, owner=ME, token="t", now_ms=0)
    row = replace(ROW, counter=6, owner=ME, native=Native(token="t", owner=ME))
    possession.begin(Settled(write, "succeeded", row, taken_at), 0.0)
    return possession


def renewal(
    possession: Possession,
    sent_at: float,
    *,
    by_read: bool = False,
    counter: int | None = None,
    outcome: Literal["succeeded", "again"] = "succeeded",
) -> Settled:
    """Settle a heartbeat on the row as it is."""
    row = possession.row
    write = rules.heartbeat(row, owner=ME, token="t")
    after = replace(row, counter=row.counter + 1 if counter is None else counter)
    return Settled(write, outcome, after, sent_at, by_read=by_read)


def test_tenure_counts_from_the_send_of_the_take() -> None:
    """The reply may have been slow: others began to wait when the write arrived, not when we heard of it."""
    possession = held(taken_at=100.0)
    assert possession.deadline_at == 100.0 + F - MARGIN
    assert possession.fence.tenure is not None
    assert possession.fence.tenure.epoch == 6


def test_acknowledged_write_extends_the_tenure_from_its_send() -> None:
    """And never shortens it."""
    possession = held(taken_at=100.0)
    possession.acknowledge(renewal(possession, 103.0))
    assert possession.deadline_at == 103.0 + F - MARGIN
    possession.acknowledge(renewal(possession, 102.0))
    assert possession.deadline_at == 103.0 + F - MARGIN


def test_success_known_by_a_read_counts_from_the_first_write_with_that_counter() -> None:
    """It may be that one which took effect, and the later one that was refused."""
    possession = held(taken_at=100.0)
    possession.adopt(renewal(possession, 103.0, outcome="again", counter=6))
    possession.note_sent(renewal(possession, 104.0))
    possession.acknowledge(renewal(possession, 105.0, by_read=True))
    assert possession.deadline_at == 103.0 + F - MARGIN
    possession.acknowledge(renewal(possession, 106.0, by_read=True))
    assert possession.deadline_at == 106.0 + F - MARGIN, "the next counter has a first write of its own"


def test_counter_that_was_adopted_forgets_the_writes_before_it() -> None:
    """They can no longer take effect."""
    possession = held(taken_at=100.0)
    possession.note_sent(renewal(possession, 101.0))
    possession.adopt(renewal(possession, 103.0, outcome="again", counter=9))
    possession.acknowledge(renewal(possession, 104.0, by_read=True))
    assert possession.deadline_at == 104.0 + F - MARGIN


def test_fence_closes_at_the_deadline_and_when_the_tenure_ends() -> None:
    """Asked in place: an instant before it is open."""
    possession = held(taken_at=100.0)
    fence = possession.fence
    assert not fence.is_over(108.999)
    assert fence.is_over(109.0)
    possession.end()
    assert fence.is_over(100.0)


def test_fence_asks_for_a_confirmation_sent_after_a_gap() -> None:
    """What is known from before the loop stood still may be old; a write sent before its end proves nothing."""
    possession = held(taken_at=100.0)
    fence = possession.fence
    assert not fence.needs_confirmation(100.4)
    assert fence.needs_confirmation(101.0)
    possession.acknowledge(renewal(possession, 100.9))
    assert fence.needs_confirmation(101.1)
    possession.acknowledge(renewal(possession, 101.2))
    assert not fence.needs_confirmation(101.3)


@pytest.mark.parametrize(
    ("row", "is_stopping", "step"),
    [
        (None, False, Step.LEAVE),
        (replace(ROW, owner=ME, checkpoint_owner=OTHER), False, Step.WAIT),
        (replace(ROW, owner=ME, checkpoint_owner=OTHER), True, Step.WITHDRAW),
        (replace(ROW, owner=ME), False, Step.TAKE),
        (replace(ROW, owner=ME), True, Step.TAKE),
        (replace(ROW, owner=OTHER), False, Step.LEAVE),
        (replace(ROW, owner=THIRD, checkpoint_owner=OTHER), False, Step.LEAVE),
        (replace(ROW, owner=THIRD, checkpoint_owner=ME), False, Step.PASS_ON),
        (replace(ROW, owner=None), False, Step.LEAVE),
        (replace(ROW, owner=ME, checkpoint="SHARD_END"), False, Step.LEAVE),
    ],
)
def test_receiver_decides_from_one_look_at_the_row(row: LeaseRow | None, is_stopping: bool, step: Step) -> None:
    """Each row of the handoff table that a receiver can meet."""
    receiving = Receiving(ME, ROW, seen_at=None, failover_s=F)
    assert receiving.step(row, begun_at=200.0, ended_at=200.1, is_stopping=is_stopping) is step


@pytest.mark.parametrize(
    ("seen_at", "counter", "begun_at", "step"),
    [
        (None, 5, 300.0, Step.WAIT),
        (100.0, 5, 110.0, Step.WAIT),
        (100.0, 5, 110.1, Step.TAKE_EXPIRED),
        (100.0, 6, 110.1, Step.WAIT),
    ],
)
def test_receiver_takes_an_expired_row_from_when_its_counter_was_first_seen(
    seen_at: float | None, counter: int, begun_at: float, step: Step
) -> None:
    """A first look alone proves nothing, unless somebody here had seen that very counter before."""
    receiving = Receiving(ME, ROW, seen_at=seen_at, failover_s=F)
    row = replace(ROW, owner=ME, checkpoint_owner=OTHER, counter=counter)
    assert receiving.step(row, begun_at=begun_at, ended_at=begun_at, is_stopping=False) is step
