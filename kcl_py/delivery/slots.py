"""How many records may be in work at a time in the whole worker, and whose turn it is. Pure.

Shards that wait take turns, so one with many records waiting gets no more than one with few.
"""

from collections import deque
from collections.abc import Callable


class Seat:
    """One shard's place among those that wait."""

    __slots__ = ("granted", "is_waiting", "on_free")

    def __init__(self, on_free: Callable[[], object]) -> None:
        self.on_free = on_free
        self.granted = 0
        self.is_waiting = False


class Slots:
    """The slots of one worker.

    Args:
        total: how many records may be in work at a time.
    """

    def __init__(self, total: int) -> None:
        self._free = total
        self._waiting: deque[Seat] = deque()

    @property
    def is_contended(self) -> bool:
        """Whether a shard waits for a slot."""
        return bool(self._waiting)

    def take(self, seat: Seat) -> bool:
        """Take a slot; if there is none, have ``seat.on_free`` be called once one is kept for it."""
        if seat.granted:
            seat.granted -= 1
            return True
        if self._free and not self._waiting:
            self._free -= 1
            return True
        if not seat.is_waiting:
            seat.is_waiting = True
            self._waiting.append(seat)
            self._pass_on()
        return False

    def free(self) -> None:
        """Give a slot back."""
        self._free += 1
        self._pass_on()

    def leave(self, seat: Seat) -> None:
        """Take a shard out, with what is kept for it."""
        if seat.is_waiting:
            seat.is_waiting = False
            self._waiting.remove(seat)
        self._free += seat.granted
        seat.granted = 0
        self._pass_on()

    def _pass_on(self) -> None:
        while self._free and self._waiting:
            seat = self._waiting.popleft()
            seat.is_waiting = False
            self._free -= 1
            seat.granted += 1
            seat.on_free()
