"""Bytes that all shards of a worker may hold together: a fetch reserves its expected size before it is sent.

In order of asking; one request that is larger than everything is let through alone. Sizes in bytes.
"""

from collections import deque
from dataclasses import dataclass, field

import anyio


class Budget:
    """The bytes of one worker."""

    def __init__(self, total_bytes: int) -> None:
        self._total_bytes = total_bytes
        self._used_bytes = 0
        self._waiting: deque[_Request] = deque()

    @property
    def used_bytes(self) -> int:
        return self._used_bytes

    def account(self) -> "Account":
        """Open an account for one shard."""
        return Account(self)

    async def reserve(self, size_bytes: int) -> None:
        """Wait until ``size_bytes`` more are within the budget, and take them."""
        if not self._waiting and self._fits(size_bytes):
            self._used_bytes += size_bytes
            return
        request = _Request(size_bytes)
        self._waiting.append(request)
        try:
            await request.granted.wait()
        except BaseException:
            if request.granted.is_set():
                self.give_back(size_bytes)
            else:
                self._waiting.remove(request)
                self._grant()
            raise

    def take(self, size_bytes: int) -> None:
        """Take bytes that are there already, over the total if need be."""
        self._used_bytes += size_bytes

    def give_back(self, size_bytes: int) -> None:
        self._used_bytes -= size_bytes
        self._grant()

    def _fits(self, size_bytes: int) -> bool:
        return self._used_bytes == 0 or self._used_bytes + size_bytes <= self._total_bytes

    def _grant(self) -> None:
        while self._waiting and self._fits(self._waiting[0].size_bytes):
            request = self._waiting.popleft()
            self._used_bytes += request.size_bytes
            request.granted.set()


@dataclass(eq=False, slots=True)
class _Request:
    size_bytes: int
    granted: anyio.Event = field(default_factory=anyio.Event)


class Account:
    """What one shard holds of the budget. ``close`` returns all of it, whatever became of its tasks."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._held_bytes = 0
        self._is_closed = False

    async def reserve(self, size_bytes: int) -> None:
        await self._budget.reserve(size_bytes)
        self._held_bytes += size_bytes

    def correct(self, expected_bytes: int, actual_bytes: int) -> None:
        """Replace a reservation by what really came."""
        self.give_back(expected_bytes)
        if not self._is_closed:
            self._budget.take(actual_bytes)
            self._held_bytes += actual_bytes

    def give_back(self, size_bytes: int) -> None:
        size_bytes = min(size_bytes, self._held_bytes)
        self._held_bytes -= size_bytes
        self._budget.give_back(size_bytes)

    def reset(self) -> None:
        """Return all of it; what was read is dropped."""
        self.give_back(self._held_bytes)

    def close(self) -> None:
        """Return all of it for good."""
        self._is_closed = True
        self.reset()
