"""Which record is handed over next: those of a lane one after the other, those of different lanes at the same time.

Pure; instants are monotonic seconds. A lane is there only while one of its records is in hand, or waits. Lanes take
turns: one that has many records waiting is no further ahead than one that has one.
"""

from collections import deque
from collections.abc import Container
from heapq import heapify, heappop, heappush
from typing import Literal

from kcl_py.delivery.ledger import Range

Ordering = Literal["key", "shard", "none"]
Item = tuple[Range, int]
"""A record: its range, and its index in it. A whole range has the index -1."""
WHOLE = -1


class Lanes:
    """The records of one shard that are taken in and not settled."""

    def __init__(self, ordering: Ordering) -> None:
        self._ordering = ordering
        self._ready: deque[Item] = deque()
        self._behind: dict[str, deque[Item] | None] = {}
        self._delayed: list[tuple[float, int, int, Item]] = []
        self.in_hand: set[Item] = set()

    def __bool__(self) -> bool:
        """Whether anything is taken in and not settled."""
        return bool(self.in_hand or self._ready or self._delayed or self._behind)

    @property
    def ready(self) -> int:
        """How many can be taken in hand."""
        return len(self._ready)

    @property
    def next_due_at(self) -> float | None:
        """When the next of those that are put off is due."""
        return self._delayed[0][0] if self._delayed else None

    def add(self, entry: Range, first: int = 0) -> None:
        """Take in the records of a range, from index ``first`` on, each behind those of its lane."""
        if self._ordering == "none":
            self._ready.extend((entry, index) for index in range(first, len(entry.records)))
            return
        is_by_key = self._ordering == "key"
        behind, ready = self._behind, self._ready
        for index in range(first, len(entry.records)):
            key = entry.records[index].partition_key if is_by_key else ""
            if key not in behind:
                behind[key] = None
                ready.append((entry, index))
                continue
            queue = behind[key]
            if queue is None:
                behind[key] = deque(((entry, index),))
            else:
                queue.append((entry, index))

    def add_whole(self, entry: Range) -> None:
        """Take in a range as one."""
        self._ready.append((entry, WHOLE))

    def next(self) -> Item | None:
        """Take the next one in hand; None if none may be."""
        if not self._ready:
            return None
        item = self._ready.popleft()
        self.in_hand.add(item)
        return item

    def peek(self, place: int) -> Item:
        """The one that is taken in hand after ``place`` others, if nothing comes between."""
        return self._ready[place]

    def put_back(self, item: Item) -> None:
        """Have one that was taken in hand be the next again."""
        self.in_hand.discard(item)
        self._ready.appendleft(item)

    def settle(self, item: Item) -> None:
        """Note that one in hand is done with: the next of its lane is ready."""
        self.in_hand.discard(item)
        if item[1] == WHOLE or self._ordering == "none":
            return
        key = item[0].records[item[1]].partition_key if self._ordering == "key" else ""
        queue = self._behind.get(key)
        if queue:
            self._ready.append(queue.popleft())
        else:
            self._behind.pop(key, None)

    def delay(self, item: Item, due_at: float) -> None:
        """Put off one in hand; its lane waits."""
        self.in_hand.discard(item)
        heappush(self._delayed, (due_at, item[0].number, item[1], item))

    def wake(self, now: float) -> None:
        """Have those that are due be ready, before all others."""
        due = []
        while self._delayed and self._delayed[0][0] <= now:
            due.append(heappop(self._delayed)[-1])
        self._ready.extendleft(reversed(due))

    def delayed(self) -> list[tuple[Item, float]]:
        """Those that are put off and when they are due, in that order."""
        return [(each[-1], each[0]) for each in sorted(self._delayed, key=lambda each: each[:3])]

    def drop(self, entries: Container[Range]) -> None:
        """Forget ranges of which nothing is in hand, nor was."""
        self._ready = deque(item for item in self._ready if item[0] not in entries)
        self._delayed = [each for each in self._delayed if each[-1][0] not in entries]
        heapify(self._delayed)
        for key, queue in list(self._behind.items()):
            kept = deque(item for item in queue or () if item[0] not in entries)
            self._behind[key] = kept or None
        self._forget_empty()

    def clear(self) -> None:
        """Forget all but what is in hand."""
        self._ready.clear()
        self._delayed.clear()
        self._behind.clear()

    def _forget_empty(self) -> None:
        if self._ordering == "none":
            return
        items = [*self._ready, *self.in_hand, *(each[-1] for each in self._delayed)]
        busy = {item[0].records[item[1]].partition_key if self._ordering == "key" else "" for item in items}
        for key in [key for key in self._behind if key not in busy]:
            del self._behind[key]
