"""One shard: its records in order, its range of the ring, its place in the lineage.

Records are stored once, as the ``Record`` that a reader receives; a page is a slice of that list. Positions are
indices into it. Times are Unix seconds of the service's clock, kept to the millisecond as AWS does.
"""

from bisect import bisect_left, bisect_right
from typing import Any

from kcl_py.local.sequence import LAST_ORDINAL, Parts, compose, step
from kcl_py.records import Record

PAGE_BYTES = 10 * 1024 * 1024
"""The most that one GetRecords returns. Source: Kinesis API reference, GetRecords."""


class Shard:
    """A run of records; open until ``close``."""

    def __init__(
        self, index: int, hash_range: tuple[int, int], *, parents: tuple["Shard", ...] = (), opened_s: float
    ) -> None:
        self.index, self.hash_range, self.parents, self.opened_s = index, hash_range, parents, opened_s
        self.shard_id = f"shardId-{index:012d}"
        self.epoch_s: int = max([int(opened_s), *(parent.epoch_s + 1 for parent in parents)])
        """The second that its sequence numbers carry: later than the parents', however quick the reshard."""
        self.closed_s: float | None = None
        self.children: list[Shard] = []
        self.records: list[Record] = []
        self._ends: list[int] = []
        self._first_number = compose(Parts(self.epoch_s, index, 0, 0))
        self._last_ms = 0

    def append(self, data: bytes, partition_key: str, size_bytes: int, now_s: float) -> str:
        """Store a record and return its sequence number; arrival times never go back within a shard."""
        self._last_ms = max(self._last_ms, int(now_s * 1000))
        sequence_number = str(self._first_number + step(len(self.records) + 1, self._last_ms // 1000))
        self.records.append(Record(sequence_number, data, partition_key, self._last_ms / 1000))
        self._ends.append(size_bytes + (self._ends[-1] if self._ends else 0))
        return sequence_number

    def page_end(self, position: int, limit: int) -> int:
        """Return where a page from ``position`` ends: at most ``limit`` records and, but for a first one, 10 MiB."""
        before = self._ends[position - 1] if position else 0
        fitting = bisect_right(self._ends, before + PAGE_BYTES, position)
        return min(max(fitting, position + 1), position + limit, len(self.records))

    def position_at(self, time_s: float) -> int:
        """Return the position of the first record that arrived at or after ``time_s``."""
        return bisect_left(self.records, round(time_s * 1000), key=lambda record: round(record.arrived_s * 1000))

    def close(self, now_s: float) -> None:
        self.closed_s = now_s

    def first_number(self) -> str:
        """Return its StartingSequenceNumber."""
        return str(self._first_number + step(0, self.epoch_s))

    def last_number(self) -> str | None:
        """Return its EndingSequenceNumber, above every record's; None while it is open."""
        return None if self.closed_s is None else str(self._first_number + step(LAST_ORDINAL, int(self.closed_s)))

    def describe(self) -> dict[str, Any]:
        """Return the shard as ListShards shows it."""
        numbers = {"StartingSequenceNumber": self.first_number(), "EndingSequenceNumber": self.last_number()}
        links = zip(("ParentShardId", "AdjacentParentShardId"), self.parents, strict=False)
        return {
            "ShardId": self.shard_id,
            **{link: parent.shard_id for link, parent in links},
            "HashKeyRange": self._hash_key_range(),
            "SequenceNumberRange": {name: number for name, number in numbers.items() if number},
        }

    def describe_as_child(self) -> dict[str, Any]:
        """Return the shard as a parent's last GetRecords shows it."""
        parents = [parent.shard_id for parent in self.parents]
        return {"ShardId": self.shard_id, "ParentShards": parents, "HashKeyRange": self._hash_key_range()}

    def _hash_key_range(self) -> dict[str, str]:
        return {"StartingHashKey": str(self.hash_range[0]), "EndingHashKey": str(self.hash_range[1])}
