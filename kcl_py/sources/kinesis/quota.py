"""How often and how much one shard may be read: 5 calls and 2 MB a second.

No I/O and no clock: callers pass the time in. Instants are monotonic seconds, waits are seconds. One ``Quota`` a
shard; it must outlive a restart of what reads the shard, or the restart would get a second allowance.
"""

from collections import deque

CALLS = 5
"""GetRecords calls in any window. Source: the GetRecords API reference."""
WINDOW_S = 1.0
BYTES_PER_S = 2_000_000
"""Source: the GetRecords API reference: after a reply of 10 MB, calls within the next 5 seconds are refused."""
MARGIN_S = 0.001
"""Added to the window, so that rounding in clocks never puts a sixth call inside it."""
ROUNDING_S = 1e-6
"""A wait shorter than this is none; a clock might not move on so little."""


class Quota:
    """The allowance of one shard, as used so far."""

    def __init__(self) -> None:
        self._sent: deque[float] = deque(maxlen=CALLS)
        self._paid_at = float("-inf")

    def wait_s(self, now: float) -> float:
        """Seconds from ``now`` until the next call may be sent; 0.0 if it may be sent at once."""
        window_ends = self._sent[0] + WINDOW_S + MARGIN_S if len(self._sent) == CALLS else now
        wait = max(window_ends, self._paid_at) - now
        return wait if wait > ROUNDING_S else 0.0

    def spent(self, now: float, size_bytes: int = 0) -> None:
        """Book one call that was sent at ``now``, whatever came of it, and the payload bytes of its reply."""
        self._sent.append(now)
        self._paid_at = max(self._paid_at, now) + size_bytes / BYTES_PER_S
