"""Where the reading of a leased shard begins. Pure. In words: docs/semantics.md, "Where reading begins"."""

from kcl_py.delivery.earlier import SKEW_S
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


def start_faults(start: Position, now_s: float) -> list[str]:
    """Say what is wrong with where a stream is to begin, at ``now_s`` (Unix seconds) by a clock that may be off.

    AWS reads from no time to come.
    """
    if start.kind is not PositionKind.AT_TIMESTAMP or start.value <= (now_s + SKEW_S) * 1000:
        return []
    return [
        f"start: expected a time that has come, found {instant(start.value)}, and it is {instant(int(now_s * 1000))}; "
        "set latest to begin with what is put from now on"
    ]


def start_text(prefix: SequenceNumber | None, row: LeaseRow) -> str:
    """Say the same for people: the finished ``prefix``, or what the row says, with the instant if it has one."""
    if prefix is not None:
        return str(prefix)
    if row.native.start_ms is not None and row.checkpoint != HORIZON:
        return f"{row.checkpoint} {instant(row.native.start_ms)}"
    return row.checkpoint
