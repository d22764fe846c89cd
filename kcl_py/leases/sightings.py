"""Judge by reads alone whether something still moves: lease rows, workers' beats, rows that are missing.

No clock and no I/O: callers say when a read began and ended, in monotonic seconds. Nobody looks expired after a pause
of the reader, since a second read is always needed. In words: docs/leases.md, "Expiry".
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _Sighting:
    value: int | None
    ended_at: float


class Sightings:
    """When each key was first seen with the value that it still shows."""

    def __init__(self, failover_s: float) -> None:
        self._failover_s = failover_s
        self._seen: dict[str, _Sighting] = {}

    def has_expired(self, key: str, value: int | None, *, begun_at: float, ended_at: float) -> bool:
        """Note a read and tell whether ``key`` has expired.

        Args:
            key: a lease key or a worker.
            value: its counter or beat as read; None for "there is no such row".
            begun_at: when the read was sent.
            ended_at: when its reply was there.

        Returns:
            True if this read began more than the failover time after the end of the one that first saw ``value``.
        """
        first = self._seen.get(key)
        if first is None or first.value != value:
            self._seen[key] = _Sighting(value, ended_at)
            return False
        return begun_at > first.ended_at + self._failover_s

    def expires_at(self, key: str) -> float | None:
        """After which instant a read would find ``key`` expired, or None if it was never seen."""
        first = self._seen.get(key)
        return None if first is None else first.ended_at + self._failover_s

    def seen_at(self, key: str, value: int) -> float | None:
        """When ``key`` was first seen with ``value``, or None if that is not what was seen last."""
        first = self._seen.get(key)
        return None if first is None or first.value != value else first.ended_at

    def keep(self, keys: Iterable[str]) -> None:
        """Forget all other keys."""
        self._seen = {key: self._seen[key] for key in keys if key in self._seen}
