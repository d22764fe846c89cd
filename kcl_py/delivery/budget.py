"""The memory that the shards of a worker share: who may read next, and who has to give up what it has read ahead.

A fetch may be sent while less than the total is held, and counts as the most that a reply brings until its size is
known: so the total and one reply are never passed. Bytes of payloads that rest with a processor which finishes nothing
are set aside, beside the total, once a shard that holds nothing waits; their shard drops what it has read ahead. So
that shard goes on, however many others fail or stand still. Durations and instants are monotonic seconds.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import anyio

from actors import Clock
from actors.clock import move_on_after

FETCH_BYTES = 10_485_760
"""The most that one reply brings. Source: the GetRecords API reference, 10 MB."""
IDLE_S = 5.0
"""How long a shard finishes nothing until it may be called in: what it then reads again costs it no longer pause than
this (Source: the GetRecords API reference, after 10 MB)."""
PATIENCE_S = 1.0
"""How long a shard that holds nothing waits until it calls others in: many fetches, but for one that brings 10 MB."""


class Budget:
    """The bytes of one worker.

    Args:
        total_bytes: below which another fetch may be sent.
        clock: tells for how long a shard has finished nothing, and how long one has waited.
    """

    def __init__(self, total_bytes: int, clock: Clock) -> None:
        self._total_bytes = total_bytes
        self._spare_bytes = min(FETCH_BYTES, total_bytes // 2)
        self._clock = clock
        self._used_bytes = 0
        self._accounts: list[Account] = []
        self._waiting: list[_Request] = []

    def account(self, on_call: Callable[[], object]) -> "Account":
        """Open an account for one shard; ``on_call`` tells it to drop what it has read ahead."""
        account = Account(self, self._clock, on_call)
        self._accounts.append(account)
        return account

    def forget(self, account: "Account") -> None:
        self._accounts.remove(account)

    async def turn(self, account: "Account") -> None:
        """Wait until a fetch is granted to this account."""
        request = _Request(account)
        self._waiting.append(request)
        self._grant()
        try:
            while not request.granted.is_set():
                with move_on_after(self._clock, PATIENCE_S) as patience:
                    await request.granted.wait()
                if patience.cancelled_caught:
                    self._call_in_for(request)
        except BaseException:
            if request.granted.is_set():
                account.settle(0)
            else:
                self._waiting.remove(request)
                self._grant()
            raise

    def change(self, by_bytes: int) -> None:
        """Note that so many bytes more, or less, are held."""
        self._used_bytes += by_bytes
        self._grant()

    def _grant(self) -> None:
        while (request := self._next()) is not None:
            self._waiting.remove(request)
            self._used_bytes += FETCH_BYTES
            request.account.expect(FETCH_BYTES)
            request.granted.set()

    def _next(self) -> "_Request | None":
        """Who is next: in order of asking, but whoever holds nothing before those who read ahead.

        These leave room for one fetch, so that nobody with empty hands waits for what others only keep ready.
        """
        hungry = next((request for request in self._waiting if request.account.is_empty), None)
        if hungry is not None:
            return hungry if self._used_bytes < self._total_bytes else None
        has_spare = self._used_bytes + self._spare_bytes < self._total_bytes
        return self._waiting[0] if self._waiting and has_spare else None

    def _call_in_for(self, request: "_Request") -> None:
        """Set aside what idle shards hold, the largest first, until a shard that holds nothing has its turn."""
        now = self._clock.monotonic()
        idle = [account for account in self._accounts if account.idle_s(now) >= IDLE_S]
        if self._used_bytes - sum(account.held_bytes for account in idle) >= self._total_bytes:
            return  # not even all of it would do
        for account in sorted(idle, key=lambda each: each.held_bytes, reverse=True):
            if request.granted.is_set() or not request.account.is_empty:
                return
            account.set_aside()


@dataclass(eq=False, slots=True)
class _Request:
    account: "Account"
    granted: anyio.Event = field(default_factory=anyio.Event)


class Account:
    """What one shard holds of the budget. ``close`` returns all of it, whatever became of its tasks."""

    def __init__(self, budget: Budget, clock: Clock, on_call: Callable[[], object]) -> None:
        self._budget, self._clock, self._on_call = budget, clock, on_call
        self._expected_bytes = 0
        """Of the fetch that is on its way, and of an earlier one that is still being cancelled."""
        self.held_bytes = 0
        self._aside_bytes = 0
        """Held, but beside the budget."""
        self._moved_at = 0.0
        self._is_closed = False

    @property
    def is_empty(self) -> bool:
        """Whether its shard has nothing to do."""
        return self.held_bytes + self._aside_bytes == 0

    def idle_s(self, now: float) -> float:
        """Return for how long it has held something that counts, and finished nothing."""
        return now - self._moved_at if self.held_bytes else 0.0

    async def turn(self) -> None:
        """Wait until a fetch may be sent; ``settle`` must follow."""
        await self._budget.turn(self)

    def expect(self, size_bytes: int) -> None:
        """Note what a fetch may bring; the budget has counted it."""
        self._expected_bytes += size_bytes

    def settle(self, size_bytes: int) -> None:
        """Replace what a fetch was expected to bring by what came: nothing, if it has failed."""
        expected_bytes = min(FETCH_BYTES, self._expected_bytes)
        self._expected_bytes -= expected_bytes
        came_bytes = 0 if self._is_closed else size_bytes
        if self.held_bytes == 0:
            self._moved_at = self._clock.monotonic()
        self.held_bytes += came_bytes
        self._budget.change(came_bytes - expected_bytes)

    def give_back(self, size_bytes: int) -> None:
        """Note that records of that size are finished or dropped; never more than is held."""
        aside_bytes = min(size_bytes, self._aside_bytes)
        counted_bytes = min(size_bytes - aside_bytes, self.held_bytes)
        self._aside_bytes -= aside_bytes
        self.held_bytes -= counted_bytes
        self._moved_at = self._clock.monotonic()
        self._budget.change(-counted_bytes)

    def set_aside(self) -> None:
        """Count what is held no longer, and have what was read ahead of it dropped."""
        set_aside, self.held_bytes = self.held_bytes, 0
        self._aside_bytes += set_aside
        self._on_call()
        self._budget.change(-set_aside)

    def reset(self) -> None:
        """Return all that is held; it is dropped."""
        self.give_back(self._aside_bytes + self.held_bytes)

    def close(self) -> None:
        """Return all of it for good."""
        self._is_closed = True
        self.reset()
        while self._expected_bytes:
            self.settle(0)
        self._budget.forget(self)
