"""How many bytes a second a shard finishes, smoothed: what ``leases.strategy: throughput`` balances. Pure.

Instants are monotonic seconds; rates are kB/s (1,000 bytes), as in the row's ``throughputKBps``.
"""

HALF_LIFE_S = 30.0
"""After which time a former rate counts half. The Java client halves with each renewal, so that a burst of seconds
moves shards; ours has to last."""
_DIGITS = 6
"""Source: the Java client writes as many."""
MOST_KBPS = 1_000_000
"""No shard is as fast: what says more, or less than nothing, was not measured by any client."""


def credible(kbps: float | None) -> float | None:
    """Return a rate as it was read from a row, or None if it tells nothing."""
    return kbps if kbps is not None and 0 <= kbps <= MOST_KBPS else None


class Throughput:
    """The rate of one shard over one ownership."""

    def __init__(self) -> None:
        self._kbps: float | None = None
        self._known_s = self._finished_bytes = 0.0
        self._at = float("-inf")

    def begin(self, kbps: float | None, now: float) -> None:
        """Begin to measure; ``kbps`` is what the last owner has left in the row."""
        self._kbps, self._at, self._finished_bytes = kbps, now, 0
        self._known_s = 0.0 if kbps is None else float("inf")

    def by(self, now: float, finished_bytes: int) -> float | None:
        """Return the rate, given how many bytes have been finished since the beginning; None before anything is known.

        What nobody has measured before is the mean since the beginning, until that is as long as the half-life.
        """
        passed_s = now - self._at
        if passed_s <= 0:
            return self._kbps
        rate = (finished_bytes - self._finished_bytes) / 1000 / passed_s
        share = max(1 - 0.5 ** (passed_s / HALF_LIFE_S), passed_s / (self._known_s + passed_s))
        before = rate if self._kbps is None else self._kbps
        self._kbps = round(before + share * (rate - before), _DIGITS)
        self._known_s += passed_s
        self._at, self._finished_bytes = now, finished_bytes
        return self._kbps
