"""Where the reading of a leased shard begins. Pure. In words: docs/semantics.md, "Where reading begins"."""

from kcl_py.leases.row import TRIM_HORIZON as HORIZON
from kcl_py.leases.row import LeaseRow
from kcl_py.printable import instant
from kcl_py.records import SequenceNumber
from kcl_py.sources.source import TRIM_HORIZON, Position, PositionKind


def start_position(prefix: SequenceNumber | None, row: LeaseRow) -> Position:
    """Return the position after the finished ``prefix``, or, without one, where the row says that reading begins."""
    if prefix is not None:
        return Position(PositionKind.AFTER, prefix.value)
    if row.native.start_ms is not None and row.checkpoint != HORIZON:
        return Position(PositionKind.AT_TIMESTAMP, row.native.start_ms)
    return TRIM_HORIZON


def start_text(prefix: SequenceNumber | None, row: LeaseRow) -> str:
    """Say the same for people: the finished ``prefix``, or what the row says, with the instant if it has one."""
    if prefix is not None:
        return str(prefix)
    if row.native.start_ms is not None and row.checkpoint != HORIZON:
        return f"{row.checkpoint} {instant(row.native.start_ms)}"
    return row.checkpoint
