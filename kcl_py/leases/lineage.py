"""The graph of shards: which rows are missing, which parents a shard must wait for, and whether a range is unread.

Pure: no I/O and no clock. A shard whose parents are not all read is never begun; one whose descendant has a row is
never begun again. Sequence of a reshard: parents first. Instants are Unix milliseconds.
In words: docs/leases.md, "Which rows are made". Mirrors: the Java client's HierarchicalShardSyncer.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from kcl_py.leases.row import AT_TIMESTAMP, LATEST, TRIM_HORIZON, LeaseRow, Paused
from kcl_py.leases.rules import new_row
from kcl_py.sources.source import Listing, Position, PositionKind, ShardInfo

HASH_KEYS = 2**128
"""How many hash keys the shards of a stream share. Source: Kinesis API reference, HashKeyRange."""
LATEST_SLACK_MS = 2000
"""The stored instant for LATEST lies this much before the Date of the reply: whole seconds, and clocks differ."""


class _State(Enum):
    """What becomes of a listed shard."""

    HELD = auto()
    """It has a row that is not at its end."""
    DONE = auto()
    """It has been read: its row is at SHARD_END, or a descendant has a row, or it aged out after it had one."""
    CREATE = auto()
    """It gets a row now."""
    WAITS = auto()
    """It is to be read, and gets its row when its parents end."""
    PASSED = auto()
    """It is older than where reading begins, or so its descendants' rows say."""


@dataclass(frozen=True, slots=True)
class NewLease:
    """A row to be created."""

    shard: ShardInfo
    checkpoint: str
    """TRIM_HORIZON, LATEST or AT_TIMESTAMP."""
    start_ms: int | None = None
    """When the reading of the stream began, if at an instant: at LATEST or AT_TIMESTAMP the shard begins there."""

    def row(self, *, stream: str, counter: int = 0, paused: Paused | None = None) -> LeaseRow:
        """Make the row.

        ``counter`` is given, as the Unix second, where a row that was there is made again: epochs keep rising, and
        reading begins at TRIM_HORIZON, since nobody knows how far it was.
        """
        if counter:
            return new_row(self.shard, stream=stream, counter=counter, paused=paused)
        checkpoint, start_ms = self.checkpoint, self.start_ms
        return new_row(self.shard, stream=stream, checkpoint=checkpoint, start_ms=start_ms, paused=paused)


def discover(listing: Listing, rows: Mapping[str, LeaseRow], start: Position) -> tuple[NewLease, ...]:
    """Find the shards that need a row now, in the order of their first sequence numbers.

    Args:
        listing: all shards. While there are no rows and ``start`` is a timestamp: those of ``list_shards(start)``,
            since a listing does not tell the times of its shards.
        rows: the lease table.
        start: the configured start, for lineages that nobody has begun to read.

    Returns:
        One entry for each row to be created. A shard after one that was read begins at TRIM_HORIZON, all others at
        ``start``. Descendants of a shard that is to be read get their rows at its end.
    """
    survey = _Survey(listing, rows, start)
    after = TRIM_HORIZON, _begun_ms(rows)
    found = [shard for shard in listing.shards if survey.states[shard.shard_id] is _State.CREATE]
    return tuple(
        NewLease(shard, *(after if survey.follows(shard) else _first(start, listing, rows)))
        for shard in sorted(found, key=lambda shard: (shard.starts_at, shard.shard_id))
    )


def unread(listing: Listing, rows: Mapping[str, LeaseRow], start: Position) -> frozenset[str]:
    """Find the shards without a row that are to be read, now or after their parents; for ``blocking_parents``."""
    states = _Survey(listing, rows, start).states
    return frozenset(key for key, state in states.items() if state in (_State.CREATE, _State.WAITS))


def blocking_parents(row: LeaseRow, rows: Mapping[str, LeaseRow], missing: Container[str] = ()) -> tuple[str, ...]:
    """Name the parents that must end before ``row`` may be read; each link is judged alone.

    Args:
        row: the row to be begun.
        rows: the lease table.
        missing: what ``unread`` says of the last complete listing, with what is ``unjudged`` by it.
    """
    return tuple(
        parent
        for parent in row.parents
        if (parent in rows and not rows[parent].has_ended) or (parent not in rows and parent in missing)
    )


def unjudged(rows: Mapping[str, LeaseRow], known: Container[str]) -> frozenset[str]:
    """Find the parents without a row of which the last listing tells nothing.

    That is so if their children are newer than it, or if they had a row then that has vanished since. They block like
    unread ones until there is a listing that began later: it shows them, or they have aged out. Children that have
    progress have waited for them already.

    Args:
        rows: the lease table.
        known: the rows that were known when the last listing began.
    """
    links = [(row.key, parent) for row in rows.values() if not row.has_progress for parent in row.parents]
    return frozenset(
        parent for child, parent in links if parent not in rows and (child not in known or parent in known)
    )


def unknown_children(rows: Mapping[str, LeaseRow]) -> bool:
    """Tell whether a shard that has ended names a child without a row."""
    return any(child not in rows for row in rows.values() for child in row.children)


def has_hole(rows: Iterable[LeaseRow]) -> bool:
    """Tell whether some hash keys belong to no row that is still to be read; False where a row has no range."""
    ranges = [row.hash_range for row in rows if not row.has_ended]
    known = sorted(found for found in ranges if found is not None)
    if len(known) < len(ranges):
        return False
    next_key = 0
    for first, last in known:
        if first > next_key:
            return True
        next_key = max(next_key, last + 1)
    return next_key < HASH_KEYS


class _Trace(IntEnum):
    """What the rows of its descendants tell about a shard without a row."""

    NONE = 0
    FIRST = 1
    """They are at LATEST or AT_TIMESTAMP, perhaps from a first discovery that was cut short."""
    CHILD = 2
    """They are at TRIM_HORIZON, as children are made at their parent's end."""
    READ = 3
    """They have progress, which they had to wait for this shard to make."""


class _Survey:
    """The state of each listed shard, parents before children."""

    def __init__(self, listing: Listing, rows: Mapping[str, LeaseRow], start: Position) -> None:
        self._rows = rows
        self._shards = {shard.shard_id: shard for shard in listing.shards}
        self._gone = [row for key, row in rows.items() if key not in self._shards]
        self._has_old = start.kind is not PositionKind.LATEST or _begun_ms(rows) is not None
        self.states: dict[str, _State] = {}
        order = self._parents_first()
        self._traces = self._find_traces(order)
        for key in order:
            if key in self._shards:
                self.states[key] = self._judge(self._shards[key])

    def follows(self, shard: ShardInfo) -> bool:
        """Whether the shard begins where one that was really read ended."""
        return any(map(self._was_begun, shard.parents)) or self._inherits(shard)

    def _parents(self, key: str) -> tuple[str, ...]:
        return self._shards[key].parents if key in self._shards else self._rows[key].parents

    def _parents_first(self) -> list[str]:
        known = {**self._shards, **self._rows}
        links = {key: [parent for parent in self._parents(key) if parent in known] for key in sorted(known)}
        while True:
            try:
                return list(TopologicalSorter(links).static_order())
            except CycleError as error:  # somebody has written that into rows; the stream knows better
                ring: list[str] = error.args[1]
                parent, child = next(link for link in pairwise(ring) if link[1] not in self._shards)
                links[child].remove(parent)

    def _find_traces(self, order: list[str]) -> dict[str, _Trace]:
        traces: dict[str, _Trace] = {}
        for key in reversed(order):
            trace = max(traces.get(key, _Trace.NONE), _trace(self._rows.get(key)))
            if trace is not _Trace.NONE and key not in self._rows and self._is_lost(key, trace):
                continue  # what is told of it was told because of another leg, and says nothing of what is before it
            for parent in self._parents(key):
                traces[parent] = max(traces.get(parent, _Trace.NONE), trace)
        return traces

    def _judge(self, shard: ShardInfo) -> _State:
        row = self._rows.get(shard.shard_id)
        if row is not None:
            return _State.DONE if row.has_ended else _State.HELD
        before = {parent: self._state(parent) for parent in shard.parents}
        states = set(before.values())
        if states & {_State.HELD, _State.CREATE, _State.WAITS}:
            self._read_other_leg(before)
            return _State.WAITS
        trace = self._traces.get(shard.shard_id, _Trace.NONE)
        if trace is not _Trace.NONE and not self._is_lost(shard.shard_id, trace):
            return _State.PASSED if trace is _Trace.FIRST else _State.DONE
        if states >= {_State.DONE, _State.PASSED}:
            self._read_other_leg(before)
            return _State.WAITS
        is_lost = trace is not _Trace.NONE
        is_wanted = is_lost or self._has_old or not shard.closed or _State.DONE in states or self._inherits(shard)
        return _State.CREATE if is_wanted else _State.PASSED

    def _read_other_leg(self, before: Mapping[str, _State | None]) -> None:
        """Of a merge whose first leg is being read, the second is not older than where reading begins."""
        self.states.update({parent: _State.CREATE for parent, state in before.items() if state is _State.PASSED})

    def _state(self, key: str) -> _State | None:
        """State of a parent; None if nothing is known of it. One that has aged out counts as read to its end."""
        if key in self._shards:
            return self.states[key]
        return _State.DONE if self._was_begun(key) else None

    def _is_lost(self, key: str, trace: _Trace) -> bool:
        """Whether the shard's row vanished, or was never made beside that of the other leg of a merge.

        A row is deleted only after those of its parents, and read children; a child at its beginning has not been read.
        Of a merge such a child tells only that one leg was read, and not which.
        """
        if trace < _Trace.READ and any(parent in self._rows for parent in self._parents(key)):
            return True
        return any(
            row.checkpoint == TRIM_HORIZON and len(row.parents) > 1 for row in self._rows.values() if key in row.parents
        )

    def _was_begun(self, key: str) -> bool:
        return key in self._rows or self._traces.get(key, _Trace.NONE) >= _Trace.CHILD

    def _inherits(self, shard: ShardInfo) -> bool:
        """Whether the shard comes after one that was read and has aged out, with all shards between them."""
        listed = any(parent in self._shards for parent in shard.parents)
        return not listed and any(_overlap(shard.hash_range, row.hash_range) for row in self._gone)


def _trace(row: LeaseRow | None) -> _Trace:
    if row is None:
        return _Trace.NONE
    if row.checkpoint in (LATEST, AT_TIMESTAMP):
        return _Trace.FIRST
    return _Trace.CHILD if row.checkpoint == TRIM_HORIZON else _Trace.READ


def _first(start: Position, listing: Listing, rows: Mapping[str, LeaseRow]) -> tuple[str, int | None]:
    """Checkpoint and instant of a row where reading begins; for LATEST no later than for the rows that there are."""
    match start.kind:
        case PositionKind.LATEST:
            now_ms, begun_ms = int(listing.server_time_s * 1000) - LATEST_SLACK_MS, _begun_ms(rows)
            return LATEST, now_ms if begun_ms is None else min(now_ms, begun_ms)
        case PositionKind.AT_TIMESTAMP:
            return AT_TIMESTAMP, start.value
    return TRIM_HORIZON, None


def _begun_ms(rows: Mapping[str, LeaseRow]) -> int | None:
    """When the reading of the stream began, if it began at an instant: shards hand it on to their children."""
    return min((row.native.start_ms for row in rows.values() if row.native.start_ms is not None), default=None)


def _overlap(one: tuple[int, int] | None, other: tuple[int, int] | None) -> bool:
    return one is None or other is None or (one[0] <= other[1] and other[0] <= one[1])
