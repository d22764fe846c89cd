"""What the Coordinator knows of one Shard that runs on this worker, and of those that failed. Pure."""

from collections.abc import Container
from dataclasses import dataclass, field
from enum import StrEnum

from actors import Ref
from kcl_py.delivery.retry import backoff_s

FAILURES = 5
"""How often a Shard is opened again before its shard is released with a fault, for others to try."""
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
HEALTHY_S = 60.0
"""A Shard that has run this long has its earlier failures forgiven."""


class Phase(StrEnum):
    """How far a Shard is."""

    OPENING = "opening"
    AWAITING = "awaiting"
    HELD = "held"
    CLOSING = "closing"


@dataclass(slots=True)
class Holding:
    """One Shard that runs."""

    opened_at: float
    phase: Phase = Phase.OPENING
    lease: Ref | None = None


@dataclass(slots=True)
class Setbacks:
    """Which shards this worker leaves alone for a while, because opening them did not work."""

    _failures: dict[str, int] = field(default_factory=dict)
    _not_before: dict[str, float] = field(default_factory=dict)

    def allows(self, key: str, now: float) -> bool:
        """Whether the shard may be opened at ``now``."""
        return now >= self._not_before.get(key, now)

    def resting(self, now: float) -> set[str]:
        """Name the shards that may not be opened at ``now``."""
        return {key for key, not_before in self._not_before.items() if now < not_before}

    def pause(self, key: str, until_at: float) -> None:
        """Leave the shard alone until then; an instant that is set already is not brought nearer."""
        self._not_before[key] = max(until_at, self._not_before.get(key, until_at))

    def failed(self, key: str, *, ran_s: float, now: float) -> bool:
        """Note that a Shard died after ``ran_s`` seconds; True if it has now failed too often."""
        count = 1 if ran_s >= HEALTHY_S else self._failures.get(key, 0) + 1
        self._failures[key] = count
        self.pause(key, now + backoff_s(count, FIRST_PAUSE_S, LONGEST_PAUSE_S))
        return count >= FAILURES

    def keep(self, keys: Container[str]) -> None:
        """Forget all other shards: they have no rows any more."""
        self._failures = {key: count for key, count in self._failures.items() if key in keys}
        self._not_before = {key: at for key, at in self._not_before.items() if key in keys}

    def forget(self, key: str) -> None:
        """The shard has ended or is another worker's."""
        self._failures.pop(key, None)
        self._not_before.pop(key, None)
