"""What a receiver does each time it has looked at the row that it waits for. Pure; instants are monotonic seconds.

The holder alone ends its drain; the receiver only sees whether it has let go, has died, or the row is no longer meant
for it. In words: docs/leases.md, "Handoff".
"""

from enum import Enum, auto

from kcl_py.leases.row import LeaseRow
from kcl_py.leases.sightings import Sightings


class Step(Enum):
    """What comes next."""

    ASK = auto()
    """Nobody has asked for the row yet; only at the beginning."""
    WAIT = auto()
    TAKE = auto()
    """The holder has let go."""
    TAKE_EXPIRED = auto()
    """The holder has died."""
    PASS_ON = auto()
    """Another has asked for the row before we ever took it, or while we do not run it: transfer at once."""
    WITHDRAW = auto()
    """This worker stops: take the request out of the row."""
    LEAVE = auto()
    """The row is not meant for us any more, or has ended."""


class Receiving:
    """The wait for one row.

    Args:
        me: this worker, as in ``leaseOwner``.
        row: the row as it was seen.
        seen_at: when it was first seen with its counter, if that is known.
        failover_s: how long it may stand still.
    """

    def __init__(self, me: str, row: LeaseRow, *, seen_at: float | None, failover_s: float) -> None:
        self._me = me
        self._sightings = Sightings(failover_s)
        if seen_at is not None:
            self._sightings.has_expired(row.key, row.counter, begun_at=seen_at, ended_at=seen_at)

    def step(self, row: LeaseRow | None, *, begun_at: float, ended_at: float, is_stopping: bool) -> Step:
        """Decide from one look at the row, which began and ended then; None if there was none."""
        if row is None:
            return Step.LEAVE
        if row.holder == self._me and row.owner != self._me:
            return Step.PASS_ON
        if row.owner != self._me or row.has_ended:
            return Step.LEAVE
        if not row.in_handoff:
            return Step.TAKE
        if self._sightings.has_expired(row.key, row.counter, begun_at=begun_at, ended_at=ended_at):
            return Step.TAKE_EXPIRED
        return Step.WITHDRAW if is_stopping else Step.WAIT
