"""Streams with a history of splits and merges, and a consumer that reads them by the rows alone: an oracle."""

import random
from dataclasses import dataclass, field, replace

from kcl_py.leases.lineage import HASH_KEYS, blocking_parents, unread
from kcl_py.leases.row import SHARD_END, LeaseRow
from kcl_py.leases.rules import new_row
from kcl_py.sources.source import Listing, Position, PositionKind, ShardInfo

WIDTH = 8
"""Parts of the hash range; the smallest shard has one."""


@dataclass
class Shard:
    """A shard and the instants of its records, in milliseconds."""

    name: str
    parents: tuple[str, ...]
    parts: tuple[int, int]
    opened_ms: int
    closed_ms: int | None = None
    records: list[int] = field(default_factory=list)


@dataclass
class Stream:
    """A stream that is resharded as time goes on."""

    rng: random.Random
    now_ms: int = 1_000_000
    shards: dict[str, Shard] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    """Shards whose last record has left the stream."""

    def __post_init__(self) -> None:
        for part in range(0, WIDTH, 2):
            self._open((), (part, part + 1))

    def _open(self, parents: tuple[str, ...], parts: tuple[int, int]) -> None:
        name = f"shardId-{len(self.shards):012}"
        self.shards[name] = Shard(name, parents, parts, self.now_ms)

    def live_on(self, steps: int) -> None:
        """Put records into every open shard and reshard some, step by step."""
        for _ in range(steps):
            for shard in self._open_shards():
                shard.records.append(self.now_ms + 1)
            self.now_ms += 10
            self._reshard(self.rng.choice(self._open_shards()))
            self.now_ms += 10

    def _open_shards(self) -> list[Shard]:
        return [shard for shard in self.shards.values() if shard.closed_ms is None]

    def _reshard(self, shard: Shard) -> None:
        first, last = shard.parts
        next_one = [other for other in self._open_shards() if other.parts[0] == last + 1]
        if first < last and self.rng.random() < 0.5:
            shard.closed_ms = self.now_ms
            middle = (first + last) // 2
            self._open((shard.name,), (first, middle))
            self._open((shard.name,), (middle + 1, last))
        elif next_one:
            shard.closed_ms = next_one[0].closed_ms = self.now_ms
            self._open((shard.name, next_one[0].name), (first, next_one[0].parts[1]))

    def age_out(self) -> None:
        """Let the shard that was closed first leave the stream."""
        closed = [
            shard for shard in self.shards.values() if shard.closed_ms is not None and shard.name not in self.gone
        ]
        if closed:
            self.gone.add(min(closed, key=lambda shard: (shard.closed_ms, shard.name)).name)

    def listing(self, at: Position | None = None) -> Listing:
        """List as a source does: all, or those that were open at or after ``at``."""
        since_ms = at.value if at is not None and at.kind is PositionKind.AT_TIMESTAMP else 0
        shards = (shard for shard in self.shards.values() if shard.name not in self.gone)
        listed = [shard for shard in shards if shard.closed_ms is None or shard.closed_ms >= since_ms]
        return Listing(tuple(map(self.info, listed)), self.now_ms / 1000)

    def info(self, shard: Shard) -> ShardInfo:
        """Return what a listing says of one shard."""
        unit = HASH_KEYS // WIDTH
        hash_range = (shard.parts[0] * unit, (shard.parts[1] + 1) * unit - 1)
        return ShardInfo(shard.name, shard.parents, hash_range, shard.closed_ms is not None, starts_at=shard.opened_ms)


def read_all(stream: Stream, rows: dict[str, LeaseRow], start: Position) -> list[tuple[str, int]]:
    """Read from ``rows`` to the tips, completing shards and making rows for children; return records as handed over.

    Fails if a shard that is to be read waits for ever.
    """
    handed: list[tuple[str, int]] = []
    while True:
        missing = unread(stream.listing(), rows, start)
        ready = [
            row
            for row in rows.values()
            if not row.has_ended and row.sub == 0 and not blocking_parents(row, rows, missing)
        ]
        if not ready:
            stuck = [row.key for row in rows.values() if not row.has_ended and row.sub == 0]
            assert not stuck, f"blocked for ever: {stuck}"
            return handed
        row = stream.rng.choice(ready)
        shard = stream.shards[row.key]
        since_ms = row.native.start_ms or 0
        handed += [(shard.name, at_ms) for at_ms in shard.records if at_ms >= since_ms]
        if shard.closed_ms is None:
            rows[row.key] = replace(row, sub=1, checkpoint=str(shard.records[-1]) if shard.records else row.checkpoint)
            continue
        children = [child for child in stream.shards.values() if shard.name in child.parents]
        for child in children:
            rows.setdefault(child.name, new_row(stream.info(child), stream="s:1"))
        rows[row.key] = replace(row, checkpoint=SHARD_END, children=tuple(child.name for child in children))
