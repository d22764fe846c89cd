"""What a holder has proven by its acknowledged writes: the row as it is, and until when it may act.

Pure; instants are monotonic seconds. In words: docs/leases.md, "Possession".
"""

from dataclasses import replace

from kcl_py.delivery.earlier import Earlier, earlier, since
from kcl_py.leases.fence import Fence, Pulse
from kcl_py.leases.paths import COUNTER
from kcl_py.leases.row import LeaseRow
from kcl_py.leases.tenure import Tenure, deadline
from kcl_py.leases.writer import Settled
from kcl_py.records import SequenceNumber


class Possession:
    """The row of one Lease, from the take on.

    Args:
        row: the row as it was seen.
        pulse: tells gaps of the event loop.
        failover_s: how long a row may stand still before others take it.
        margin_s: how long before that the holder stops.
    """

    def __init__(self, row: LeaseRow, pulse: Pulse, *, failover_s: float, margin_s: float) -> None:
        self.row = row
        self.fence = Fence(pulse)
        """What Pipeline and Checkpointer ask."""
        self.earlier = Earlier()
        """What owners before may have had in hand."""
        self._failover_s, self._margin_s = failover_s, margin_s
        self._first_sent_at: float | None = None

    @property
    def is_held(self) -> bool:
        return self.fence.tenure is not None

    @property
    def token(self) -> str:
        assert self.fence.tenure is not None
        return self.fence.tenure.token

    @property
    def epoch(self) -> int:
        assert self.fence.tenure is not None
        return self.fence.tenure.epoch

    @property
    def deadline_at(self) -> float:
        assert self.fence.tenure is not None
        return self.fence.tenure.deadline_at

    def begin(self, taken: Settled, now_s: float) -> None:
        """Note an acknowledged take; ``now_s`` is Unix seconds."""
        assert taken.row is not None
        assert taken.write.token is not None
        self.earlier = earlier(self.row, now_s)
        self.row = taken.row
        epoch = int(taken.write.set[COUNTER])
        self.fence.tenure = Tenure(taken.write.owner, taken.write.token, epoch, self._deadline(taken.sent_at))
        self.fence.confirmed_at = taken.sent_at

    def begin_anew(self, moved: Settled, reached: SequenceNumber | None, now_s: float) -> None:
        """Note an acknowledged seek, which is a take of the own row, with an epoch of its own.

        It renews as a heartbeat does. Whoever still asks the fence of the ownership before it finds that this is over.
        Up to ``reached`` that was handed records; None: nobody can say.
        """
        assert moved.write.token is not None
        self.earlier = since(now_s) if reached is None else Earlier(to=reached.value)
        self.acknowledge(moved)
        before, epoch = self.fence, int(moved.write.set[COUNTER])
        assert before.tenure is not None
        self.fence = before.succeeded_by(replace(before.tenure, token=moved.write.token, epoch=epoch))

    def end(self) -> None:
        self.fence.tenure = None

    def acknowledge(self, settled: Settled) -> None:
        """Note a write that succeeded.

        Success known only by a read counts from the first write sent with the same expected counter: it may be that
        one which has taken effect.
        """
        assert settled.row is not None
        assert self.fence.tenure is not None
        base = settled.sent_at
        if settled.by_read and self._first_sent_at is not None:
            base = self._first_sent_at
        self._first_sent_at = None
        self.row = settled.row
        tenure = self.fence.tenure
        self.fence.tenure = replace(tenure, deadline_at=max(tenure.deadline_at, self._deadline(base)))
        self.fence.confirmed_at = max(self.fence.confirmed_at, base)

    def adopt(self, settled: Settled) -> None:
        """Note a write that did not succeed although the token is still ours: go on from the row that was read."""
        assert settled.row is not None
        if settled.row.counter != self.row.counter:
            self._first_sent_at = None
        else:
            self.note_sent(settled)
        self.row = settled.row

    def note_sent(self, settled: Settled) -> None:
        """Note a write that may yet take effect, or has without an answer."""
        if self._first_sent_at is None:
            self._first_sent_at = settled.sent_at

    def is_behind(self, scanned: LeaseRow) -> bool:
        """Whether a scanned row may know more than we do: it is to be answered with a heartbeat, never believed."""
        mine = self.row
        owners = (mine.owner, mine.checkpoint_owner)
        return scanned.counter > mine.counter or (
            scanned.counter == mine.counter and (scanned.owner, scanned.checkpoint_owner) != owners
        )

    def _deadline(self, sent_at: float) -> float:
        return deadline(sent_at, self._failover_s, self._margin_s)
