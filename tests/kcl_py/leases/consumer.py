"""A consumer of a ``Stream`` that takes one small step at a time, by the rules alone, and checks what it does."""

from dataclasses import replace

from kcl_py.config import Leases
from kcl_py.leases.completed import deletable
from kcl_py.leases.lineage import blocking_parents, discover, unread
from kcl_py.leases.row import SHARD_END, LeaseRow
from kcl_py.leases.rules import new_row
from kcl_py.sources.source import Position, PositionKind
from kcl_py.tree.audit import Audit
from kcl_py.tree.messages import Listed
from tests.kcl_py.leases.streams import Shard, Stream


class Consumer:
    """Reads, completes shards, makes rows for their children, lists shards, and deletes rows that are done with.

    Args:
        stream: what it reads; records before ``since_ms`` are not wanted.
        start: where reading begins.
    """

    def __init__(self, stream: Stream, start: Position) -> None:
        self._stream, self._start, self._rng = stream, start, stream.rng
        self._audit = Audit(Leases(), start)
        self.since_ms = {PositionKind.LATEST: stream.now_ms, PositionKind.AT_TIMESTAMP: start.value}.get(start.kind, 0)
        self.rows: dict[str, LeaseRow] = {}
        self.handed: dict[str, int] = {}
        """How many records of each shard were handed over."""
        self.made: set[str] = set()
        """Shards that ever had a row."""
        self.deleted: set[str] = set()
        self.read_once: set[tuple[str, int]] = set()
        """Records that were handed over at least once: shard and index."""
        self.look_at_shards()

    def look_at_shards(self) -> None:
        """List the shards and make the rows that are missing: each shard's once."""
        at = self._start if self._start.kind is PositionKind.AT_TIMESTAMP and not self.rows else None
        listed = Listed(self._stream.listing(at), 0.0, frozenset(self.rows))
        for new in self._audit.wanted(listed, self.rows):
            self._make(new.row(stream="s:1"))

    def _make(self, row: LeaseRow) -> None:
        assert row.key not in self.made, f"{row.key} is made again"
        self.made.add(row.key)
        self.rows[row.key] = row
        self.handed[row.key] = 0
        self._look()

    def lose_a_row(self) -> None:
        """Delete any row but the last, as an operator may; its shard, and what is before it, may have another then."""
        if len(self.rows) > 1:
            del self.rows[self._rng.choice(sorted(self.rows))]
            self.made.clear()

    def _look(self) -> None:
        self._audit.note_rows(self.rows)

    def ready(self) -> list[LeaseRow]:
        """Return the rows that can be read on."""
        missing = self._audit.missing(self.rows)
        return [
            row
            for row in self.rows.values()
            if not row.has_ended and not blocking_parents(row, self.rows, missing) and self._has_work(row)
        ]

    def _has_work(self, row: LeaseRow) -> bool:
        shard = self._stream.shards[row.key]
        return shard.closed_ms is not None or self.handed.get(row.key, 0) < len(self._wanted(shard))

    def _wanted(self, shard: Shard) -> list[int]:
        return [] if shard.name in self._stream.gone else [at for at in shard.records if at >= self.since_ms]

    def read(self) -> bool:
        """Read some records of a shard, or find its end; False if there is nothing to do."""
        ready = self.ready()
        if not ready:
            return False
        row = self._rng.choice(ready)
        shard, done = self._stream.shards[row.key], self.handed.get(row.key, 0)
        wanted = self._wanted(shard)
        if done < len(wanted):
            self._check_parents(shard)
            self.handed[row.key] = done + self._rng.randint(1, len(wanted) - done)
            self.read_once |= {(row.key, index) for index in range(done, self.handed[row.key])}
            self.rows[row.key] = replace(row, checkpoint=str(self.handed[row.key]))
        elif shard.closed_ms is not None:
            self._complete(row)
        return True

    def _check_parents(self, shard: Shard) -> None:
        for parent in shard.parents:
            wanted = self._wanted(self._stream.shards[parent])
            assert self.has_read(parent, len(wanted)), f"{shard.name} comes before the end of {parent}"

    def has_read(self, shard: str, records: int) -> bool:
        """Whether so many records of a shard were handed over, now or before its row was lost."""
        return self.read_once >= {(shard, index) for index in range(records)}

    def _complete(self, row: LeaseRow) -> None:
        children = [shard for shard in self._stream.shards.values() if row.key in shard.parents]
        for child in children:
            if child.name not in self.rows:
                self._make(new_row(self._stream.info(child), stream="s:1", start_ms=row.native.start_ms))
        self.rows[row.key] = replace(row, checkpoint=SHARD_END, children=tuple(child.name for child in children))
        self._look()

    def delete(self, *, most: int = 1) -> int:
        """Delete rows that are done with, any of those that may go first; return how many."""
        for count in range(most):
            free = [row for row in deletable(self.rows, self.rows) if not set(row.parents) & set(self.rows)]
            if not free:
                return count
            key = self._rng.choice(free).key
            del self.rows[key]
            self.deleted.add(key)
        return most

    def check(self) -> None:
        """No shard that has had a row is to be made or waited for, whatever was deleted, by a listing of now."""
        listing = self._stream.listing()
        again = {new.shard.shard_id for new in discover(listing, self.rows, self._start)} & self.made
        assert not again, f"to be made again: {again}"
        waited_for = unread(listing, self.rows, self._start) & self.made
        assert not waited_for, f"waited for: {waited_for}"

    def read_to_the_tips(self) -> None:
        """Read all that there is, deleting nothing; fails if a shard waits for ever."""
        while self.read() or self._finds_more():
            pass
        for row in self.rows.values():
            assert row.has_ended or not self._has_work(row), f"{row.key} waits for ever"

    def _finds_more(self) -> bool:
        rows = len(self.rows)
        self.look_at_shards()
        return len(self.rows) > rows or bool(self.ready())
