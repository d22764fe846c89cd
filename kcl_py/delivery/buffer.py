"""Records read ahead and not handed over yet, cut into batches without touching a single record in Python.

Pure. Order is that of the shard; what was received before is dropped by position, not by count.
"""

from bisect import bisect_right
from collections import deque
from dataclasses import dataclass
from itertools import accumulate
from operator import attrgetter

from kcl_py.delivery.lag import Lag
from kcl_py.records import Record, SequenceNumber

_data = attrgetter("data")


@dataclass(frozen=True, slots=True)
class Cut:
    """Records for one batch, and what they came with."""

    records: list[Record]
    size_bytes: int
    lag: Lag
    """When they were read."""


def after(records: list[Record], position: SequenceNumber | None) -> list[Record]:
    """Leave out the records at or before ``position``; they are in order."""
    if position is None or records[0].position > position:
        return records
    return records[bisect_right(records, position, key=lambda record: record.position) :]


class Buffer:
    """What one shard has read ahead."""

    def __init__(self) -> None:
        self._cuts: deque[Cut] = deque()

    def __bool__(self) -> bool:
        return bool(self._cuts)

    @property
    def oldest(self) -> Cut | None:
        return self._cuts[0] if self._cuts else None

    def add(self, cut: Cut) -> None:
        self._cuts.append(cut)

    def clear(self) -> int:
        """Drop everything; return how many bytes that were."""
        size_bytes = sum(cut.size_bytes for cut in self._cuts)
        self._cuts.clear()
        return size_bytes

    def take(self, *, max_records: int, max_bytes: int) -> Cut:
        """Take out the next batch: at least one record, and no more than both limits unless that one is larger."""
        first = self._cuts.popleft()
        if len(first.records) <= max_records and first.size_bytes <= max_bytes:
            return first
        sizes = list(accumulate(map(len, map(_data, first.records[:max_records]))))
        count = max(1, bisect_right(sizes, max_bytes))
        if count >= len(first.records):
            return first
        size_bytes = sizes[count - 1]
        self._cuts.appendleft(Cut(first.records[count:], max(first.size_bytes - size_bytes, 0), first.lag))
        return Cut(first.records[:count], size_bytes, first.lag)
