"""Decide where a micro-batch ends and which task reads what.

Pure rules over what is spooled: no I/O, no clock, no Spark. Batch ends fall on segment ends, so that Spark's log fixes
ranges that can be read again for ever. Sizes are bytes, arrival times Unix seconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from kcl_py.records import SequenceNumber
from spark_bridge.offsets import BEGINNING, END, Mark, Offset, Reach, goes_back


@dataclass(frozen=True, slots=True)
class Segment:
    """Consecutive records of one shard in one spool file."""

    shard_id: str
    first: SequenceNumber
    last: SequenceNumber
    rows: int
    size_bytes: int
    arrived_s: float
    """When Kinesis received its first record."""

    @property
    def end(self) -> Mark:
        """The shard's mark once this segment is read."""
        return Mark.after(self.last)


@dataclass(slots=True)
class Strand:
    """What is spooled of one shard and not yet released, and where the shard stands among the others."""

    parents: tuple[str, ...] = ()
    base: Mark = BEGINNING
    """Where the segments begin: everything up to here is released."""
    segments: list[Segment] = field(default_factory=list)
    """In order; each follows the one before without a gap."""
    has_ended: bool = False
    """Whether the segments reach to the end of a closed shard."""
    children: tuple[str, ...] | None = None
    """All children of an ended shard; None while they are not known."""

    @property
    def end(self) -> Mark:
        """How far Spark could read this shard now."""
        if self.has_ended:
            return END
        return self.segments[-1].end if self.segments else self.base

    def between(self, start: Mark, end: Mark) -> tuple[Segment, ...] | None:
        """Return the segments that cover ``start`` to ``end`` exactly, or None if they do not."""
        inside = tuple(segment for segment in self.segments if start < segment.end <= end)
        reached = self.end if end.has_ended else (inside[-1].end if inside else start)
        return inside if self.base <= start and reached == end else None


@dataclass(frozen=True, slots=True)
class ShardRange:
    """What one task reads of one shard: after ``start``, up to and including ``end``."""

    shard_id: str
    start: Mark
    end: Mark
    segments: tuple[Segment, ...] | None = None
    """The spooled segments that cover it; None: not known, so it is read from Kinesis."""

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.segments or ())


def plan_end(start: Offset, strands: Mapping[str, Strand], *, max_rows: int | None) -> Offset:
    """Return the end of a batch that begins at ``start``: ``start`` itself if nothing can move.

    Oldest segments first, whole ones, up to ``max_rows``; the first is taken even if it is larger. A shard enters only
    when its parents are at END in ``start``, so that a key's records never share a batch across a split. A shard is at
    END in the batch that takes its last segment; such a mark is dropped once all its children are in ``start``.
    """
    marks = dict(start.marks)
    entered = {shard_id: strand for shard_id, strand in strands.items() if may_enter(shard_id, start, strands)}
    marks.update(_oldest_first(start, entered, max_rows))
    for shard_id, strand in entered.items():
        last = strand.segments[-1].end if strand.segments else BEGINNING
        if strand.has_ended and marks.get(shard_id, BEGINNING) >= last:
            marks[shard_id] = END
    if marks == start.marks:
        return start
    return Offset({shard_id: mark for shard_id, mark in marks.items() if not _is_spent(shard_id, start, strands)})


def may_enter(shard_id: str, start: Offset, strands: Mapping[str, Strand]) -> bool:
    """Whether a batch that begins at ``start`` may hold records of this shard.

    A parent blocks while ``start`` has it not at END, or does not have it although it is being read. A parent that
    neither knows was read to its end long ago, or is older than what the query began with.
    """
    return shard_id in start or all(
        start[parent].has_ended or (parent not in start and parent not in strands)
        for parent in strands[shard_id].parents
    )


def _oldest_first(start: Offset, strands: Mapping[str, Strand], max_rows: int | None) -> dict[str, Mark]:
    waiting = {
        shard_id: [segment for segment in strand.segments if segment.end > start[shard_id]]
        for shard_id, strand in strands.items()
    }
    heads = [(segments[0].arrived_s, shard_id, 0) for shard_id, segments in waiting.items() if segments]
    heapify(heads)
    taken: dict[str, Mark] = {}
    rows = 0
    while heads:
        _, shard_id, index = heappop(heads)
        segment = waiting[shard_id][index]
        rows += segment.rows
        if max_rows is not None and rows > max_rows and taken:
            break
        taken[shard_id] = segment.end
        if index + 1 < len(waiting[shard_id]):
            heappush(heads, (waiting[shard_id][index + 1].arrived_s, shard_id, index + 1))
    return taken


def _is_spent(shard_id: str, start: Offset, strands: Mapping[str, Strand]) -> bool:
    children = strands[shard_id].children if shard_id in strands else None
    return start[shard_id].has_ended and bool(children) and all(child in start for child in children or ())


def plan_ranges(start: Offset, end: Offset, strands: Mapping[str, Strand]) -> list[ShardRange]:
    """Return what a batch reads of each shard, in order of shard ids.

    Raises:
        OffsetError: a shard would go back.
    """
    ranges = []
    for shard_id, there in end.marks.items():
        here = start[shard_id]
        if there.reach is Reach.SINCE or there == here:
            continue
        if there < here:
            raise goes_back(shard_id, here, there)
        strand = strands.get(shard_id)
        segments = None if strand is None else strand.between(here, there)
        if segments != ():
            ranges.append(ShardRange(shard_id, here, there, segments))
    return ranges


def pack(ranges: Sequence[ShardRange], *, most: int) -> list[tuple[ShardRange, ...]]:
    """Put the ranges into at most ``most`` groups of about equal bytes, one for each task; no group is empty."""
    groups: list[list[ShardRange]] = [[] for _ in range(min(most, len(ranges)))]
    heap = [(0, 0, index) for index in range(len(groups))]
    for item in sorted(ranges, key=lambda item: (-item.size_bytes, item.shard_id)):
        size_bytes, count, index = heappop(heap)
        groups[index].append(item)
        heappush(heap, (size_bytes + item.size_bytes, count + 1, index))
    return [tuple(sorted(group, key=lambda item: item.shard_id)) for group in groups]


def release(start: Offset, strands: dict[str, Strand]) -> list[Segment]:
    """Forget what Spark has finished, which is everything up to ``start``; returns the segments that are free.

    A shard at END is forgotten only when its mark has left the offset: until then its children are needed.
    """
    freed: list[Segment] = []
    for shard_id, strand in list(strands.items()):
        mark = start[shard_id]
        freed += (segment for segment in strand.segments if segment.end <= mark)
        strand.segments = [segment for segment in strand.segments if segment.end > mark]
        if strand.base.has_ended and shard_id not in start:
            del strands[shard_id]
        strand.base = max(strand.base, mark)
    return freed
