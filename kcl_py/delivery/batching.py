"""Records that wait for others of their batcher and key, and batches that wait for their turn. Pure.

Instants are monotonic seconds. A batch is open until it comes to one of its batcher's limits; then it is ready, behind
the batches of its key. One of a key that fails keeps the others of its key behind it, and nobody else.
"""

from collections import deque
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import Any

from kcl_py.batchers import Batcher, Trigger
from kcl_py.delivery.lanes import Item
from kcl_py.delivery.verdicts import Trouble
from kcl_py.outcomes import ToBatch, Verdict
from kcl_py.records import Record


@dataclass(slots=True, eq=False)
class Batch:
    """Records of one batcher and one key."""

    batcher: str
    key: Hashable
    opened_at: float
    items: list[tuple[Item, Record, Any]] = field(default_factory=list)
    """Each as it was handed to ``process``, and what that has made of it."""
    size_bytes: int = 0
    trigger: Trigger = "size"
    """Why it was closed."""
    left: list[int] = field(default_factory=list)
    """Those that are not finished."""
    trouble: Trouble | None = None
    owed: Mapping[int, Verdict] = field(default_factory=dict)
    """Those that are given up, and not settled yet."""
    due_at: float = 0.0
    """When the others are due, once those are settled."""


class _Line:
    """The batches of one batcher; ``keys`` has those behind a batch of their key that is not settled."""

    def __init__(self, batcher: Batcher) -> None:
        self.limits = batcher
        self.open: dict[Hashable, Batch] = {}
        self.ready: deque[Batch] = deque()
        self.keys: dict[Hashable, deque[Batch]] = {}
        self.dropped: set[Hashable] = set()
        self.in_hand = 0

    def close(self, batch: Batch, trigger: Trigger) -> None:
        batch.trigger, batch.left = trigger, list(range(len(batch.items)))
        del self.open[batch.key]
        behind = self.keys.get(batch.key)
        if behind is None:
            self.keys[batch.key] = deque()
            self.ready.append(batch)
        else:
            behind.append(batch)

    @property
    def oldest(self) -> Batch | None:
        return next(iter(self.open.values()), None)


class Batching:
    """What the batchers of one shard hold.

    Args:
        batchers: by name.
        most_records: how many records can be read before one of them has to be finished: no batch waits for more.
        most_bytes: the same in bytes.
    """

    def __init__(self, batchers: Mapping[str, Batcher], *, most_records: int, most_bytes: int) -> None:
        self._lines = {
            name: _Line(
                replace(
                    batcher,
                    max_records=min(batcher.max_records, most_records),
                    max_bytes=min(batcher.max_bytes, most_bytes),
                )
            )
            for name, batcher in batchers.items()
        }
        self._delayed: list[tuple[float, int, Batch]] = []
        self._delays = 0

    def __bool__(self) -> bool:
        """Whether anything is not settled."""
        return any(line.open or line.keys for line in self._lines.values())

    @property
    def names(self) -> list[str]:
        return list(self._lines)

    @property
    def next_due_at(self) -> float | None:
        """When the next open batch is old enough, or the next of those that are put off is due."""
        due = [batch.opened_at + line.limits.max_age_s for line in self._lines.values() if (batch := line.oldest)]
        return min(due + [at for at, _, _ in self._delayed[:1]], default=None)

    def put(self, to: ToBatch, item: Item, record: Record, now: float) -> None:
        """Put a record into the open batch of its batcher and key, behind all others."""
        line = self._lines[to.batcher]
        if to.key in line.dropped:
            return
        size_bytes = len(record.data) if to.size_bytes is None else to.size_bytes
        batch = line.open.get(to.key)
        if batch is not None and batch.size_bytes + size_bytes > line.limits.max_bytes:
            line.close(batch, "bytes")
            batch = None
        if batch is None:
            batch = self._open(line, to, now)
        batch.items.append((item, record, to.value))
        batch.size_bytes += size_bytes
        if len(batch.items) >= line.limits.max_records:
            line.close(batch, "size")
        elif batch.size_bytes >= line.limits.max_bytes:
            line.close(batch, "bytes")
        elif to.flush:
            line.close(batch, "flush")

    def _open(self, line: _Line, to: ToBatch, now: float) -> Batch:
        if len(line.open) >= line.limits.max_keys and (oldest := line.oldest):
            line.close(oldest, "keys")
        batch = line.open[to.key] = Batch(to.batcher, to.key, now)
        return batch

    def wake(self, now: float) -> None:
        """Close the batches that are old enough, and have those that are due be ready before all others."""
        for line in self._lines.values():
            while (batch := line.oldest) and batch.opened_at + line.limits.max_age_s <= now:
                line.close(batch, "age")
        while self._delayed and self._delayed[0][0] <= now:
            batch = heappop(self._delayed)[-1]
            self._lines[batch.batcher].ready.appendleft(batch)

    def close(self, trigger: Trigger) -> None:
        """Close all open batches."""
        for line in self._lines.values():
            while batch := line.oldest:
                line.close(batch, trigger)

    def next(self) -> Batch | None:
        """Take the next batch in hand; None if none may be."""
        for line in self._lines.values():
            if line.ready and line.in_hand < line.limits.concurrency:
                line.in_hand += 1
                return line.ready.popleft()
        return None

    def put_back(self, batch: Batch) -> None:
        """Have one that was taken in hand be the next again."""
        line = self._lines[batch.batcher]
        line.in_hand -= 1
        line.ready.appendleft(batch)

    def delay(self, batch: Batch, due_at: float) -> None:
        """Put off one in hand; those of its key wait, others do not."""
        self._lines[batch.batcher].in_hand -= 1
        self._delays += 1
        heappush(self._delayed, (due_at, self._delays, batch))

    def settle(self, batch: Batch) -> None:
        """Note that one in hand is done with: the next of its key is ready."""
        line = self._lines[batch.batcher]
        line.in_hand -= 1
        behind = line.keys.get(batch.key)
        if behind:
            line.ready.append(behind.popleft())
        elif behind is not None:
            del line.keys[batch.key]

    def drop_delayed(self) -> None:
        """Forget what is put off, with all of its key that comes behind it."""
        while self._delayed:
            self._drop_key(heappop(self._delayed)[-1])

    def drop(self, batch: Batch) -> None:
        """Forget one in hand, with all of its key that comes behind it."""
        self._lines[batch.batcher].in_hand -= 1
        self._drop_key(batch)

    def _drop_key(self, batch: Batch) -> None:
        line = self._lines[batch.batcher]
        line.keys.pop(batch.key, None)
        line.open.pop(batch.key, None)
        line.dropped.add(batch.key)

    def clear(self) -> None:
        """Forget all but what is in hand."""
        for line in self._lines.values():
            line.open.clear()
            line.ready.clear()
            line.keys.clear()
        self._delayed.clear()
