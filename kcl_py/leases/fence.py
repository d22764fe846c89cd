"""Whether this worker may still act on a shard: asked in place, before every hand-over and every write.

No I/O; instants are monotonic seconds and callers pass them in. In words: docs/leases.md, "Possession".
"""

from kcl_py.leases.tenure import Tenure


class Pulse:
    """When the worker's event loop was last seen running, and the last gap in that.

    A gap longer than ``limit_s`` may have been a stopped process: what is known from before it may be old.
    """

    def __init__(self, limit_s: float, now: float) -> None:
        self._limit_s = limit_s
        self._seen_at = now
        self._gap_ended_at = float("-inf")

    def beat(self, now: float) -> None:
        """Note that the loop runs."""
        if now - self._seen_at > self._limit_s:
            self._gap_ended_at = now
        self._seen_at = now

    def gap_ended_at(self, now: float) -> float:
        """When the last gap ended: ``-inf`` if there never was one."""
        self.beat(now)
        return self._gap_ended_at


class Fence:
    """The current tenure of one Lease, replaced by it and read by its Pipeline and Checkpointer."""

    def __init__(self, pulse: Pulse) -> None:
        self._pulse = pulse
        self.tenure: Tenure | None = None
        self.confirmed_at = float("-inf")
        """Send time of the last acknowledged write that proves possession."""

    def succeeded_by(self, tenure: Tenure) -> "Fence":
        """End this ownership; return the fence of the one that follows at once, as well confirmed as this."""
        after = Fence(self._pulse)
        after.tenure, after.confirmed_at, self.tenure = tenure, self.confirmed_at, None
        return after

    def is_over(self, now: float) -> bool:
        """Whether the ownership has ended or may have ended."""
        return self.tenure is None or now >= self.tenure.deadline_at

    def needs_confirmation(self, now: float) -> bool:
        """Whether a heartbeat must succeed before anything is handed over: the loop stood still for too long."""
        return self._pulse.gap_ended_at(now) >= self.confirmed_at

    def allows(self, now: float) -> bool:
        """Whether records may be handed over at ``now``."""
        return not self.is_over(now) and not self.needs_confirmation(now)
