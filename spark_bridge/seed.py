"""Turn a start position into Spark's first offset, and any offset into what the embedded tree begins from.

Pure rules over a listing of shards: no I/O, no clock, no Spark. The tree's lease rows are made anew from the offset at
each start of a query, so Spark's checkpoint is the only truth. Instants are Unix milliseconds.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kcl_py.leases.row import AT_TIMESTAMP, SHARD_END, TRIM_HORIZON, LeaseRow, Native
from kcl_py.sources.source import ShardInfo
from spark_bridge.offsets import BEGINNING, END, Mark, Offset, Reach
from spark_bridge.plan import Strand

Lineage = Mapping[str, tuple[str, ...]]
"""Parents or children by shard id."""


@dataclass(frozen=True, slots=True)
class Seed:
    """What a tree begins from."""

    rows: tuple[LeaseRow, ...]
    """Lease rows; a listed shard without one is a descendant that the tree finds when its parents end."""
    strands: dict[str, Strand]
    """One for each shard of the offset."""
    lost: tuple[str, ...]
    """Shards with unread records, as far as the offset knows, that the stream no longer has; taken as ended."""


def first_offset(shards: Sequence[ShardInfo], start_ms: int) -> Offset:
    """Return the offset of a new query: the shards without a listed parent, since ``start_ms`` (0: all they hold).

    Args:
        shards: those that were open at the start position or later.
        start_ms: the start position, resolved.
    """
    listed = {shard.shard_id for shard in shards}
    roots = (shard.shard_id for shard in shards if listed.isdisjoint(shard.parents))
    return Offset(dict.fromkeys(roots, Mark(Reach.SINCE, start_ms)))


def seed(offset: Offset, shards: Sequence[ShardInfo]) -> Seed:
    """Return what a tree begins from so that it delivers exactly what follows ``offset``.

    Args:
        offset: where Spark is.
        shards: the complete listing of the stream.
    """
    parents = {shard.shard_id: shard.parents for shard in shards}
    children = _by_parent(shards)
    lost = tuple(shard_id for shard_id, mark in offset.marks.items() if shard_id not in parents and not mark.has_ended)
    ended = {shard_id for shard_id, mark in offset.marks.items() if mark.has_ended}.union(lost)
    done = _reach(offset, parents)
    later = _reach(offset, children) - done
    rows = []
    for shard in shards:
        if shard.shard_id in offset:
            rows.append(_row(shard, offset[shard.shard_id], children))
        elif shard.shard_id not in later:
            rows.append(_row(shard, END, children))
        elif not ended.isdisjoint(shard.parents):
            rows.append(_row(shard, BEGINNING, children))
    strands = {
        shard_id: Strand(
            parents=parents.get(shard_id, ()),
            base=mark,
            has_ended=shard_id in ended,
            children=children.get(shard_id, ()) if shard_id in ended else None,
        )
        for shard_id, mark in offset.marks.items()
    }
    return Seed(tuple(rows), strands, lost)


def children_of(shard_id: str, shards: Iterable[ShardInfo]) -> tuple[str, ...]:
    """Return the shards that a split or merge of ``shard_id`` made."""
    return tuple(sorted(shard.shard_id for shard in shards if shard_id in shard.parents))


def _row(shard: ShardInfo, mark: Mark, children: Lineage) -> LeaseRow:
    checkpoint, start_ms = TRIM_HORIZON, None
    after: tuple[str, ...] = ()
    if mark.has_ended:
        checkpoint, after = SHARD_END, children.get(shard.shard_id, ())
    elif mark.reach is Reach.AFTER:
        checkpoint = str(mark.value)
    elif mark != BEGINNING:
        checkpoint, start_ms = AT_TIMESTAMP, mark.value
    return LeaseRow(
        key=shard.shard_id,
        checkpoint=checkpoint,
        sub=mark.sub,
        parents=shard.parents,
        children=after,
        hash_range=shard.hash_range,
        native=Native(start_ms=start_ms),
    )


def _by_parent(shards: Sequence[ShardInfo]) -> Lineage:
    children: dict[str, tuple[str, ...]] = {}
    for shard in sorted(shards, key=lambda shard: shard.shard_id):
        for parent in shard.parents:
            children[parent] = (*children.get(parent, ()), shard.shard_id)
    return children


def _reach(offset: Offset, lineage: Lineage) -> set[str]:
    """All shards that following ``lineage`` from those of the offset leads to."""
    found: set[str] = set()
    waiting = [following for shard_id in offset for following in lineage.get(shard_id, ())]
    while waiting:
        shard_id = waiting.pop()
        if shard_id not in found:
            found.add(shard_id)
            waiting += lineage.get(shard_id, ())
    return found
