"""Writes around a prepared checkpoint, each with what it leaves behind."""

from kcl_py.leases import commits, rules
from kcl_py.leases.row import Pending
from kcl_py.records import SequenceNumber
from tests.contract.lease_rows import AT, MINE, MOVED, a_case, a_row

PENDING = Pending(SequenceNumber(1600), b"\0s")
PREPARED, REACHED = a_row(pending=PENDING), a_row(pending=Pending(AT, b"s"))
PROGRESS = rules.Report(position=AT)

COMMITS = (
    a_case(
        "prepare with a state",
        a_row(),
        commits.prepare(a_row(), **MINE, pending=PENDING),
        counter=42,
        pending=PENDING,
    ),
    a_case(
        "prepare another, without a state",
        PREPARED,
        commits.prepare(PREPARED, **MINE, pending=Pending(AT)),
        counter=42,
        pending=Pending(AT),
    ),
    a_case(
        "heartbeat below what is prepared",
        PREPARED,
        rules.heartbeat(PREPARED, **MINE, report=PROGRESS),
        counter=42,
        **MOVED,
    ),
    a_case(
        "heartbeat that reaches what is prepared",
        REACHED,
        rules.heartbeat(REACHED, **MINE, report=PROGRESS),
        counter=42,
        pending=None,
        **MOVED,
    ),
    a_case(
        "checkpoint below what is prepared",
        PREPARED,
        rules.checkpoint(PREPARED, **MINE, report=PROGRESS),
        counter=42,
        pending=None,
        **MOVED,
    ),
)
"""What goes on by itself ends a prepared checkpoint only when it has come as far; what the processor asks for does."""
