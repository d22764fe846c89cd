"""Let lease writes through in the order of what would be lost by waiting, and only so many at once.

A renewal that queues behind acquisitions costs a shard, so half of the slots are kept for heartbeats. Knows nothing of
rows or stores. In words: docs/leases.md, "Writes".
"""

import heapq
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import count

import anyio


class Priority(IntEnum):
    """What a write is for; the lower goes first."""

    HEARTBEAT = 0
    TRANSFER = 1
    """Also a release, and the cancel of a handoff: a shard stands still meanwhile."""
    COMPLETE = 2
    CHECKPOINT = 3
    TAKE = 4
    START_HANDOFF = 5
    DELETE = 6


@dataclass(slots=True, order=True)
class _Waiter:
    priority: Priority
    turn: int
    admitted: anyio.Event = field(compare=False, default_factory=anyio.Event)


class Gate:
    """A bound on concurrent writes with priorities; first come, first served within one priority."""

    def __init__(self, slots: int) -> None:
        """Make a gate of ``slots``, 2 or more; all but half of them (rounded down) are for any write."""
        if slots < 2:
            raise ValueError(f"cannot make a gate of {slots} slots: expected 2 or more")
        self._slots, self._others = slots, slots - slots // 2
        self._busy = {True: 0, False: 0}
        self._waiting: list[_Waiter] = []
        self._turns = count()

    @asynccontextmanager
    async def slot(self, priority: Priority) -> AsyncIterator[None]:
        """Hold one slot while the block runs, after waiting for it. A cancelled wait or block loses no slot."""
        waiter = _Waiter(priority, next(self._turns))
        heapq.heappush(self._waiting, waiter)
        self._admit()
        try:
            await waiter.admitted.wait()
            yield
        finally:
            self._leave(waiter)

    def _admit(self) -> None:
        while self._waiting and self._has_room(self._waiting[0].priority):
            waiter = heapq.heappop(self._waiting)
            self._busy[waiter.priority is Priority.HEARTBEAT] += 1
            waiter.admitted.set()

    def _has_room(self, priority: Priority) -> bool:
        """Heartbeats may use every slot; once none waits, the best of the others is first in the heap."""
        free = self._busy[True] + self._busy[False] < self._slots
        return free and (priority is Priority.HEARTBEAT or self._busy[False] < self._others)

    def _leave(self, waiter: _Waiter) -> None:
        if waiter.admitted.is_set():
            self._busy[waiter.priority is Priority.HEARTBEAT] -= 1
        else:
            self._waiting.remove(waiter)
            heapq.heapify(self._waiting)
        self._admit()
