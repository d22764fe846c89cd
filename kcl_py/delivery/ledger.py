"""Which records of a shard are finished: the checkpoint is the end of the unbroken run, and this is where it is known.

Pure. Records that finish together, or in order, cost the same however many they are; only those that finish before an
earlier one are noted singly. Positions are worked out when somebody asks.
"""

from bisect import bisect_left, bisect_right
from collections import deque
from math import inf
from operator import attrgetter

from kcl_py.delivery.buffer import Cut
from kcl_py.delivery.earlier import Earlier
from kcl_py.records import Record, SequenceNumber

_data = attrgetter("data")


class Range:
    """Records taken in together."""

    __slots__ = ("apart", "counted", "counted_bytes", "cut", "next", "number", "records")

    def __init__(self, number: int, cut: Cut) -> None:
        self.number, self.cut, self.records = number, cut, cut.records
        self.next = 0
        """The first record that is not finished."""
        self.apart: set[int] = set()
        """Those that are finished, beyond it."""
        self.counted = self.counted_bytes = 0
        """How much of it has been reported as finished."""

    def is_finished(self, index: int) -> bool:
        return index < self.next or index in self.apart

    def left(self) -> list[int]:
        """The records that are not finished."""
        apart = self.apart
        return [index for index in range(self.next, len(self.records)) if index not in apart]


class Ledger:
    """The records taken in within one ownership of a shard, in sequence order.

    Args:
        prefix: the stored checkpoint that the ownership begins with; None if there is none.
    """

    def __init__(self, prefix: SequenceNumber | None = None) -> None:
        self._open: deque[Range] = deque()
        self._numbers = 0
        self._ended = self._received = self._delivered = prefix
        self._latest: Range | None = None
        self._latest_index = 0
        self._arrived_s = 0.0
        self._ended_records = self._ended_bytes = self._told_records = 0

    @property
    def prefix(self) -> SequenceNumber | None:
        """End of the unbroken run of finished records. Never goes back."""
        head = self.head
        return head.records[head.next - 1].position if head is not None and head.next else self._ended

    @property
    def delivered(self) -> SequenceNumber | None:
        """The last record handed over."""
        return self._delivered if self._latest is None else self._latest.records[self._latest_index].position

    @property
    def delivered_arrived_s(self) -> float:
        """When that one arrived, in Unix seconds; 0 if there was none."""
        return self._arrived_s if self._latest is None else self._latest.records[self._latest_index].arrived_s

    @property
    def received(self) -> SequenceNumber | None:
        """The last record taken in and not forgotten since."""
        return self._received

    def held(self) -> list[tuple[float, int, int]]:
        """What is taken in and not told of by ``news`` as finished: when it was read (monotonic), records and bytes."""
        head = self.head
        ended = self._ended_records - self._told_records + (0 if head is None else head.counted)
        return [
            (inf, ended, self._ended_bytes),  # it will be in a moment
            *(
                (each.cut.lag.at, len(each.records) - each.counted, each.cut.size_bytes - each.counted_bytes)
                for each in self._open
            ),
        ]

    def reach(self, before: Earlier) -> Earlier:
        """Return what this ownership and those before it may have had in hand."""
        return before.reaching(self.delivered, self.delivered_arrived_s)

    @property
    def head(self) -> Range | None:
        """The range that holds the first record that is not finished."""
        return self._open[0] if self._open else None

    @property
    def finished_records(self) -> int:
        """How many records the unbroken run has."""
        return self._ended_records + (self._open[0].next if self._open else 0)

    def open(self, cut: Cut) -> Range:
        """Take in records; they must come after all others."""
        first, last = cut.records[0].position, cut.records[-1].position
        if self._received is not None and first <= self._received:
            raise ValueError(f"cannot take in {first} after {self._received}: expected records in sequence order")
        self._received, self._numbers = last, self._numbers + 1
        entry = Range(self._numbers, cut)
        self._open.append(entry)
        return entry

    def deliver(self, entry: Range, index: int) -> None:
        """Note that a record is handed over."""
        latest = self._latest
        if entry is latest:
            if index > self._latest_index:
                self._latest_index = index
        elif latest is None or entry.number > latest.number:
            self._latest, self._latest_index = entry, index

    def finish(self, entry: Range) -> None:
        """Note that all records of a range are finished, in whatever order ranges finish."""
        entry.next = len(entry.records)
        entry.apart.clear()
        self._close()

    def finish_record(self, entry: Range, index: int) -> None:
        """Note that one record is finished, in whatever order records finish; a second time changes nothing."""
        if index != entry.next:
            if index > entry.next:
                entry.apart.add(index)
            return
        index += 1
        apart = entry.apart
        while index in apart:
            apart.remove(index)
            index += 1
        entry.next = index
        if index == len(entry.records):
            self._close()

    def finish_to(self, position: SequenceNumber) -> None:
        """Take it that everything up to ``position`` is finished, because the user says so."""
        for entry in list(self._open):
            to = bisect_right(entry.records, position, key=_position)
            for index in range(entry.next, to):
                self.finish_record(entry, index)
            if to < len(entry.records):
                return

    def has(self, position: SequenceNumber) -> bool:
        """Whether a record at ``position`` is taken in, in a range that is not finished."""
        for entry in self._open:
            place = bisect_left(entry.records, position, key=_position)
            if place < len(entry.records):
                return entry.records[place].position == position
        return False

    def drop_ahead(self) -> set[Range]:
        """Forget the ranges of which no record has been handed over; they can be taken in again."""
        dropped = set()
        reached = 0 if self._latest is None else self._latest.number
        while self._open and self._open[-1].number > reached:
            dropped.add(self._open.pop())
        if dropped:
            self._received = self._open[-1].records[-1].position if self._open else self._ended
        return dropped

    def news(self) -> tuple[int, int]:
        """Return how many records the unbroken run has grown by since this was asked last, and their bytes."""
        head = self.head
        if head is not None and head.counted < head.next:
            part = sum(map(len, map(_data, head.records[head.counted : head.next])))
            part = min(part, head.cut.size_bytes - head.counted_bytes)
            head.counted, head.counted_bytes = head.next, head.counted_bytes + part
            self._ended_bytes += part
        records, size_bytes = self.finished_records - self._told_records, self._ended_bytes
        self._told_records += records
        self._ended_bytes = 0
        return records, size_bytes

    def _close(self) -> None:
        while self._open and self._open[0].next == len(self._open[0].records):
            done = self._open.popleft()
            self._ended = done.records[-1].position
            self._ended_records += len(done.records)
            self._ended_bytes += done.cut.size_bytes - done.counted_bytes
            if self._latest is done:
                self._delivered, self._arrived_s = self.delivered, self.delivered_arrived_s
                self._latest = None


def _position(record: Record) -> SequenceNumber:
    return record.position
