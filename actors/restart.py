"""The rules of supervision: who is restarted when a child ends, and when a supervisor gives up.

Pure: no clock and no tasks; instants are monotonic seconds. Mirrors: supervisors of Erlang/OTP.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Restart(StrEnum):
    """When a child that has ended is started again."""

    PERMANENT = "permanent"
    """Always."""
    TRANSIENT = "transient"
    """Only when it failed."""
    TEMPORARY = "temporary"
    """Never."""


class Strategy(StrEnum):
    """Whom the failure of one child takes along."""

    ONE_FOR_ONE = "one_for_one"
    """Nobody."""
    ONE_FOR_ALL = "one_for_all"
    """Every other child."""
    REST_FOR_ONE = "rest_for_one"
    """The children started after it."""


@dataclass(frozen=True, slots=True)
class Intensity:
    """How many restarts a supervisor tolerates before it fails itself."""

    restarts: int = 3
    """Source: the default of Elixir's Supervisor, 3 in 5 seconds."""
    within_s: float = 5.0

    def allows(self, restarted_at: Sequence[float], now: float) -> bool:
        """Whether one more restart is allowed at ``now``, given the instants of the earlier ones."""
        return sum(1 for at in restarted_at if now - at <= self.within_s) < self.restarts


def wants_restart(policy: Restart, *, failed: bool) -> bool:
    """Decide whether a child with this policy is started again after it ended."""
    return policy is Restart.PERMANENT or (policy is Restart.TRANSIENT and failed)


def affected(strategy: Strategy, names: Sequence[str], ended: str) -> list[str]:
    """Name the children to start anew when ``ended`` is restarted, in start order and with itself."""
    match strategy:
        case Strategy.ONE_FOR_ONE:
            return [ended]
        case Strategy.ONE_FOR_ALL:
            return list(names)
        case Strategy.REST_FOR_ONE:
            return list(names[list(names).index(ended) :])
