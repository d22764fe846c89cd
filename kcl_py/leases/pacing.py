"""How often a worker reads a whole table. Pure; instants are monotonic seconds.

As often as the protocol says, unless the table refuses reads for their rate or is known to be too small: then less
often, in steps, and back again. Whatever is decided from what was read stays right however old it is, as each write
names the row that it was made from.
"""

from collections.abc import Callable

MOST = 16
"""By how much reads that are refused stretch the period at most."""
LONGEST_S = 60.0
"""As often a table is read in any case."""
JITTER = 0.2
"""Part by which stretched periods vary, so that workers which were refused together do not come back together."""

_SLACK_S = 1e-6
"""Alarms and sums of seconds differ by rounding."""


class Pace:
    """When one table is to be read again.

    Args:
        usual_s: the period while nothing is in the way.
        jitter: draws a number between two; only for periods that are stretched.
    """

    def __init__(self, usual_s: float, jitter: Callable[[float, float], float]) -> None:
        self._usual_s, self._jitter = usual_s, jitter
        self._stretch = 1
        self._carried_s = self._spread_s = 0.0
        self._begun_at = self._due_at = float("-inf")
        self._is_hurried = False

    @property
    def period_s(self) -> float:
        return min(max(self._usual_s, self._carried_s, self._spread_s) * self._stretch, max(LONGEST_S, self._usual_s))

    @property
    def is_stretched(self) -> bool:
        return self.period_s > self._usual_s

    @property
    def is_short(self) -> bool:
        """Whether it is for want of capacity that the period is stretched."""
        return self._stretch > 1 or self._carried_s > self._usual_s

    def is_due(self, now: float, *, has_news: bool = False) -> bool:
        """Whether to read now; news are looked at without delay, but not while the period is stretched."""
        return now >= self._due_at - _SLACK_S or (has_news and not self.is_stretched)

    def begin(self, now: float) -> None:
        """Note that a read begins."""
        varied = self._jitter(1 - JITTER, 1 + JITTER) if self.is_stretched else 1.0
        self._begun_at, self._due_at = now, now + self.period_s * varied
        if self._is_hurried:
            self.hurry()
            self._is_hurried = False

    def answered(self) -> None:
        """Note a read that was answered."""
        self._stretch = max(self._stretch // 2, 1)

    def refused(self) -> None:
        """Note a read that was refused for the rate of reads."""
        self._stretch = min(self._stretch * 2, MOST)

    def hurry(self) -> None:
        """Have the next two reads come as soon as there is capacity for them, however large the table is."""
        soon_s = min(max(self._usual_s, self._carried_s) * self._stretch, self.period_s)
        self._due_at, self._is_hurried = min(self._due_at, self._begun_at + soon_s), True

    def spread(self, period_s: float) -> None:
        """Note how often the table is to be read for its size."""
        self._spread_s = period_s

    def carry(self, period_s: float) -> None:
        """Note how often the table's capacity lets it be read."""
        self._carried_s = period_s
