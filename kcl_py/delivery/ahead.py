"""How long ago the oldest record was read that is not finished yet: reading stops when that is too long. Pure."""

from collections import deque


class Ahead:
    """Records read and not finished, in order; instants are monotonic seconds."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._reads: deque[tuple[float, int]] = deque()

    def add(self, records: int, now: float) -> None:
        """Note that records were read."""
        self._reads.append((now, records))

    def free(self, records: int) -> None:
        """Note that the oldest ``records`` are finished."""
        while self._reads and records > 0:
            read_at, count = self._reads.popleft()
            if count > records:
                self._reads.appendleft((read_at, count - records))
            records -= count

    def clear(self) -> None:
        self._reads.clear()

    def is_too_old(self, now: float) -> bool:
        """Whether the oldest has waited for longer than the limit."""
        return bool(self._reads) and now - self._reads[0][0] > self._limit_s
