"""What the Coordinator says of plans and requests: only what is new, and what lasts. Instants are monotonic seconds."""

from kcl_py.errors import RequestError
from kcl_py.events import Events
from kcl_py.leases.assignment import HeldOff, Plan


class Decisions:
    """The plans of one worker, and its requests that fail, told as events.

    Args:
        log: the worker's logger.
        patience_s: for how long shards may be without room before somebody is told: in a deploy they are, for a moment;
            and how long what fails again and again in the same way is not repeated.
    """

    def __init__(self, log: Events, *, patience_s: float) -> None:
        self._log, self._patience_s = log, patience_s
        self._spilled_since_at: float | None = None
        self._has_warned = False
        self._failures: dict[tuple[str, str], tuple[float, int]] = {}
        self.held_off: HeldOff | None = None

    def note(self, plan: Plan, now: float) -> None:
        """Say what has changed with this plan."""
        if plan.held_off not in (None, self.held_off):
            self._log.info("kcl_py.worker.held_off", why=plan.held_off.value)
        self.held_off = plan.held_off
        if not plan.spilled:
            if self._has_warned:
                self._log.info("kcl_py.worker.has_room")
            self._spilled_since_at, self._has_warned = None, False
            return
        if self._spilled_since_at is None:
            self._spilled_since_at = now
        if now - self._spilled_since_at >= self._patience_s and not self._has_warned:
            self._log.warning("kcl_py.worker.no_room", shards=plan.spilled)
            self._has_warned = True

    def note_failure(self, what: str, error: RequestError, now: float) -> None:
        """Say that a request has failed; of what fails in the same way, how often it did since the last word of it."""
        kind = what.partition(" ")[0], error.code  # not each row for itself
        said_at, times = self._failures.get(kind, (float("-inf"), 0))
        times += 1
        if now - said_at >= self._patience_s:
            self._log.warning("kcl_py.coordinator.request_failed", request=what, error=str(error), times=times)
            said_at, times = now, 0
        self._failures[kind] = said_at, times
