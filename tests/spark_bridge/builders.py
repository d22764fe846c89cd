"""Small builders of offsets, segments and strands for the tests of the bridge's pure rules."""

from kcl_py.records import SequenceNumber
from spark_bridge.offsets import BEGINNING, Mark, Offset
from spark_bridge.plan import Segment, Strand


def an_offset(**marks: str) -> Offset:
    """An offset from marks as they are written."""
    return Offset({shard_id: Mark.parse(text) for shard_id, text in marks.items()})


def a_segment(shard_id: str, first: int, last: int, *, arrived_s: float = 0.0, size_bytes: int = 100) -> Segment:
    """A segment of the records ``first`` to ``last``, one for each number."""
    return Segment(
        shard_id, SequenceNumber(first), SequenceNumber(last), last - first + 1, size_bytes, arrived_s or first
    )


def a_strand(
    shard_id: str,
    *ends: int,
    base: Mark = BEGINNING,
    parents: tuple[str, ...] = (),
    has_ended: bool = False,
    children: tuple[str, ...] | None = None,
) -> Strand:
    """A strand whose segments end at ``ends``; the first begins at 1, each other behind the one before."""
    first, segments = max(base.value, 0) + 1, []
    for last in ends:
        segments.append(a_segment(shard_id, first, last))
        first = last + 1
    return Strand(parents=parents, base=base, segments=segments, has_ended=has_ended, children=children)
