"""When a drain ends at the latest."""

from actors import Actor, Timer
from kcl_py.delivery.hook import OutOfTime


class TimeLimit:
    """A limit that only ever comes nearer; its actor hears ``OutOfTime``. Instants are monotonic seconds."""

    def __init__(self, owner: Actor) -> None:
        self._owner = owner
        self._timer: Timer | None = None
        self._at = float("inf")

    def set(self, at: float) -> None:
        """Have it ring at ``at``, unless it rings before that."""
        if at < self._at:
            self.clear()
            self._at = at
            self._timer = self._owner.send_after(max(at - self._owner.clock.monotonic(), 0), OutOfTime())

    def clear(self) -> None:
        """Let it not ring."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._at = None, float("inf")
