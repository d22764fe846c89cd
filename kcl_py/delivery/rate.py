"""How many records and bytes a second are handed over in the whole worker: token buckets, shared by its shards. Pure.

A bucket holds a second's worth. What is handed over is paid when it is first asked for, so shards that ask get what
they need in that order. What is larger than a bucket waits for a full one, and whoever comes next waits until it is
paid.
Instants are monotonic seconds.
"""

from collections.abc import Callable

Weight = tuple[int, int]
"""Records and bytes."""
FREE: Weight = (0, 0)

_ENOUGH_S = 1e-6
"""A wait that is none: less than a timer tells apart."""


class _Bucket:
    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self._level = float(limit or 0)
        self._at = 0.0

    def take(self, amount: int, now: float) -> float:
        """Take tokens, also such as are not there yet; return the seconds until enough of them were there."""
        if self.limit is None:
            return 0.0
        self._level = min(self._level + (now - self._at) * self.limit, self.limit)
        self._at = now
        wait_s = (min(amount, self.limit) - self._level) / self.limit
        self._level -= amount
        return max(wait_s, 0.0)

    def change(self, limit: int | None, now: float) -> None:
        """Fill at another rate from now on; what is owed stays owed."""
        self.take(0, now)
        if self.limit is None or limit is None:
            self._level = float(limit or 0)
        self.limit, self._at = limit, now


class Rate:
    """The tokens of one worker.

    Args:
        records: how many a second; None: as many as there are.
        size_bytes: the same in payload bytes.
    """

    def __init__(self, records: int | None = None, size_bytes: int | None = None) -> None:
        self._records, self._bytes = _Bucket(records), _Bucket(size_bytes)
        self._waiting: list[Turn] = []

    @property
    def limits(self) -> tuple[int | None, int | None]:
        """Records and bytes a second."""
        return self._records.limit, self._bytes.limit

    @property
    def is_on(self) -> bool:
        """Whether there is a limit."""
        return self.limits != (None, None)

    def change(self, records: int | None, size_bytes: int | None, now: float) -> None:
        """Set other limits; shards that wait are told when their turn is by these."""
        waiting = self._call_off(now)
        self._records.change(records, now)
        self._bytes.change(size_bytes, now)
        self._wait_anew(waiting, now)

    def take(self, weight: Weight, now: float) -> float:
        """Take tokens; return the instant at which they are there."""
        records, size_bytes = weight
        return now + max(self._records.take(records, now), self._bytes.take(size_bytes, now))

    def give_back(self, weight: Weight, now: float) -> None:
        """Give back what was not used."""
        self.take((-weight[0], -weight[1]), now)

    def wait(self, turn: "Turn") -> None:
        """Note that a shard waits for what it has taken."""
        self._waiting.append(turn)

    def end_waiting(self, turn: "Turn") -> None:
        """Note that it waits no longer."""
        self._waiting.remove(turn)

    def forgo(self, turn: "Turn", now: float) -> None:
        """Take back what a shard waits for: those behind it come sooner."""
        waiting = self._call_off(now)
        waiting.remove(turn)
        self._wait_anew(waiting, now)

    def _call_off(self, now: float) -> "list[Turn]":
        waiting, self._waiting = self._waiting, []
        for turn in waiting:
            self.give_back(turn.weight, now)
        return waiting

    def _wait_anew(self, waiting: "list[Turn]", now: float) -> None:
        for turn in waiting:
            turn.due_at = self.take(turn.weight, now)
            self.wait(turn)
            turn.on_change()


class Turn:
    """One shard's place among those that take tokens.

    Args:
        rate: the worker's.
        on_change: called when the shard's turn may be sooner or later than it was told.
    """

    def __init__(self, rate: Rate, on_change: Callable[[], object]) -> None:
        self._rate, self.on_change = rate, on_change
        self.weight = FREE
        self.due_at: float | None = None
        """When what the shard waits for may be handed over; None if it waits for nothing."""

    def pay(self, weigh: Callable[[], Weight], now: float) -> Weight | None:
        """Pay for what is handed over next, and return what was paid; None: not before ``due_at``."""
        if self.due_at is None:
            if not self._rate.is_on:
                return FREE
            self.weight = weigh()
            self.due_at = self._rate.take(self.weight, now)
            self._rate.wait(self)
        if self.due_at > now + _ENOUGH_S:
            return None
        self._rate.end_waiting(self)
        self.due_at = None
        return self.weight

    def give_back(self, paid: Weight, now: float) -> None:
        """Give back what was paid and not used."""
        if paid != FREE:
            self._rate.give_back(paid, now)

    def leave(self, now: float) -> None:
        """Wait no longer."""
        if self.due_at is not None:
            self.due_at = None
            self._rate.forgo(self, now)
