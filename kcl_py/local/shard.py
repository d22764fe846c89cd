"""One shard: its records in order, its range of the ring, its place in the lineage.

Records are stored once, as the ``Record`` that a reader receives; a page is a slice of that list. Positions count all
records that the shard ever took, also those that were trimmed. Times are Unix seconds of the service's clock, kept to
the millisecond as AWS does.
"""

from bisect import bisect_left, bisect_right
from enum import StrEnum
from typing import Any

from kcl_py.local.sequence import LAST_ORDINAL, Parts, compose, step
from kcl_py.records import Record

PAGE_BYTES = 10 * 1024 * 1024
"""The most that one GetRecords returns. Source: Kinesis API reference, GetRecords."""


class EndShape(StrEnum):
    """How a closed shard tells that it was read to its end; both have been seen, a reader must take either."""

    WITH_LAST = "with_last"
    """The answer with the last records has no next iterator."""
    AFTER_LAST = "after_last"
    """One more answer comes, without records and without a next iterator."""


class Shard:
    """A run of records; open until ``close``."""

    def __init__(
        self,
        index: int,
        hash_range: tuple[int, int],
        *,
        parents: tuple["Shard", ...] = (),
        opened_s: float,
        epoch_s: int | None = None,
    ) -> None:
        self.index, self.hash_range, self.opened_s = index, hash_range, opened_s
        self.shard_id = f"shardId-{index:012d}"
        self.parent_ids = tuple(parent.shard_id for parent in parents)
        self.epoch_s: int = epoch_s or max([int(opened_s), *(parent.epoch_s + 1 for parent in parents)])
        """The second that its sequence numbers carry: later than the parents', however quick the reshard."""
        self.closed_s: float | None = None
        self.children: list[Shard] = []
        self._trimmed, self._trimmed_bytes = 0, 0
        self._records: list[Record] = []
        self._ends: list[int] = []
        self._first_number = compose(Parts(self.epoch_s, index, 0, 0))
        self._last_ms = 0

    @property
    def start(self) -> int:
        """Position of the oldest record that is kept."""
        return self._trimmed

    @property
    def end(self) -> int:
        """Position of the next record to come."""
        return self._trimmed + len(self._records)

    def append(self, data: bytes, partition_key: str, encryption: str | None, size_bytes: int, now_s: float) -> Record:
        """Store a record and return it as a reader will see it; arrival times never go back within a shard."""
        self._last_ms = max(self._last_ms, int(now_s * 1000))
        sequence_number = str(self._first_number + step(self.end + 1, self._last_ms // 1000))
        record = Record(sequence_number, data, partition_key, self._last_ms / 1000, encryption)
        self._store(record, size_bytes)
        return record

    def restore(self, position: int, record: Record) -> None:
        """Take a record back that an earlier run stored at ``position``."""
        if not self._records:
            self._trimmed = position
        self._last_ms = round(record.arrived_s * 1000)
        self._store(record, len(record.data) + len(record.partition_key.encode()))

    def take_back(self, position: int) -> None:
        """Forget the records from ``position`` on, which nobody has seen."""
        del self._records[position - self._trimmed :], self._ends[position - self._trimmed :]

    def go_on_at(self, position: int) -> None:
        """Begin at ``position`` if there is no record: what came before was trimmed."""
        if not self._records:
            self._trimmed = max(self._trimmed, position)

    def _store(self, record: Record, size_bytes: int) -> None:
        self._records.append(record)
        self._ends.append(size_bytes + (self._ends[-1] if self._ends else self._trimmed_bytes))

    def page(self, position: int, limit: int, size_bytes: int = PAGE_BYTES) -> list[Record]:
        """Return what is kept from ``position`` on: up to ``limit`` records, up to ``size_bytes`` unless it is one."""
        first = max(0, position - self._trimmed)
        fitting = bisect_right(self._ends, self._bytes_before(first) + size_bytes, first)
        return self._records[first : min(max(fitting, first + 1), first + limit)]

    def bytes_between(self, position: int, end: int) -> int:
        """Return the payloads and keys of the records from ``position`` to ``end``."""
        return self._bytes_before(end - self._trimmed) - self._bytes_before(position - self._trimmed)

    def position_at(self, time_s: float) -> int:
        """Return the position of the first record that arrived at or after ``time_s``."""
        time_ms = round(max(0.0, time_s) * 1000)
        return self._trimmed + bisect_left(self._records, time_ms, key=lambda record: round(record.arrived_s * 1000))

    def position_of(self, ordinal: int, text: str) -> int:
        """Return the position of the record whose number is ``text``, or where the next after that number will be."""
        before = ordinal - 1 - self._trimmed
        if 0 <= before < len(self._records) and self._records[before].sequence_number == text:
            return ordinal - 1
        return min(max(ordinal, self._trimmed), self.end)

    def trim(self, horizon_s: float) -> None:
        """Forget what arrived before ``horizon_s``."""
        if not self._records or self._records[0].arrived_s >= horizon_s:
            return
        gone = self.position_at(horizon_s) - self._trimmed
        self._trimmed_bytes = self._bytes_before(gone)
        self._trimmed += gone
        del self._records[:gone], self._ends[:gone]

    def close(self, now_s: float) -> None:
        self.closed_s = now_s

    def is_kept(self, horizon_s: float) -> bool:
        """Whether the stream still knows it: it is open, or was closed within the retention."""
        return self.closed_s is None or self.closed_s >= horizon_s

    def first_number(self) -> str:
        """Return its StartingSequenceNumber."""
        return str(self._first_number + step(0, self.epoch_s))

    def last_number(self) -> str | None:
        """Return its EndingSequenceNumber, above every record's; None while it is open."""
        return None if self.closed_s is None else str(self._first_number + step(LAST_ORDINAL, int(self.closed_s)))

    def number_before(self, position: int, now_s: float) -> str:
        """Return a number that says how far a reader at the tip has come: above all before it, below all to come."""
        return str(self._first_number + step(position, max(self._last_ms // 1000, int(now_s))))

    def describe(self) -> dict[str, Any]:
        """Return the shard as ListShards shows it."""
        numbers = {"StartingSequenceNumber": self.first_number(), "EndingSequenceNumber": self.last_number()}
        links = zip(("ParentShardId", "AdjacentParentShardId"), self.parent_ids, strict=False)
        return {
            "ShardId": self.shard_id,
            **dict(links),
            "HashKeyRange": self._hash_key_range(),
            "SequenceNumberRange": {name: number for name, number in numbers.items() if number},
        }

    def describe_as_child(self) -> dict[str, Any]:
        """Return the shard as a parent's last GetRecords shows it."""
        return {"ShardId": self.shard_id, "ParentShards": [*self.parent_ids], "HashKeyRange": self._hash_key_range()}

    def _bytes_before(self, index: int) -> int:
        """Return the bytes of all that ever came before the kept record at ``index``."""
        return self._ends[index - 1] if index > 0 else self._trimmed_bytes

    def _hash_key_range(self) -> dict[str, str]:
        return {"StartingHashKey": str(self.hash_range[0]), "EndingHashKey": str(self.hash_range[1])}
