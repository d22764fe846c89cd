"""What an operator does to lease rows while no worker runs: begin elsewhere, begin anew, let go. Pure.

Each function returns the changes to be made, as a plan that can be shown first. A row that is written meanwhile by a
worker is not touched, since each write names the row as it was seen. Instants are Unix milliseconds.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kcl_py.leases import rules
from kcl_py.leases.lineage import LATEST_SLACK_MS, NewLease, discover
from kcl_py.leases.row import AT_TIMESTAMP, LATEST, TRIM_HORIZON, LeaseRow, WorkerRow
from kcl_py.leases.store import Write
from kcl_py.printable import instant
from kcl_py.records import SequenceNumber
from kcl_py.sources.source import Listing, Position, PositionKind


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one row."""

    key: str
    what: str
    """In words: from what to what."""
    write: Write | None = None
    """Of a row that stays; None for one that goes or is made."""
    removal: Write | None = None
    row: LeaseRow | None = None
    """One that is made."""


def moving(
    before: Mapping[str, LeaseRow], after: Mapping[str, LeaseRow], workers: tuple[tuple[WorkerRow, ...], ...]
) -> list[str]:
    """Name the workers that were seen at work between two looks: their row, or one that they hold, has moved."""
    beats = [{row.worker: row.beat for row in rows} for rows in workers]
    found = {worker for worker, beat in beats[1].items() if beats[0].get(worker) != beat}
    for key, row in after.items():
        if row.holder is not None and (key not in before or before[key].counter != row.counter):
            found.add(row.holder)
    return sorted(found)


def begin_at(row: LeaseRow, to: Position | SequenceNumber, *, now_ms: int) -> Change:
    """Have the reading of one shard begin elsewhere.

    Args:
        row: its row; not one that has ended.
        to: where; a sequence number is that of the last record that counts as finished.
        now_ms: the service's time, for the newest record.
    """
    if isinstance(to, SequenceNumber):
        return _moved(row, str(to), None)
    match to.kind:
        case PositionKind.AT_TIMESTAMP:
            return _moved(row, AT_TIMESTAMP, to.value)
        case PositionKind.LATEST:
            return _moved(row, LATEST, now_ms - LATEST_SLACK_MS)
    if len(row.parents) > 1:  # at TRIM_HORIZON it would tell that one of them is still to be read: see lineage
        return _moved(row, AT_TIMESTAMP, 0)
    return _moved(row, TRIM_HORIZON, None)


def begin_anew(rows: Mapping[str, LeaseRow], listing: Listing, start: Position, *, stream: str) -> tuple[Change, ...]:
    """Have the stream be read as if nobody had ever read it: each row as discovery would make it, and no other.

    Rows are made first, then those that stay are moved, then others go, parents before their children: a plan that was
    cut off can be made again, and a worker that starts instead neither passes over what nobody has read nor begins
    what is left behind.
    """
    wanted = {new.shard.shard_id: new for new in discover(listing, {}, start)}
    gone = [row for key, row in sorted(rows.items()) if key not in wanted]
    removals = [Change(row.key, f"{described(row)} -> no row", removal=rules.remove(row)) for row in gone]
    return (*_wanted(rows, wanted, stream), *removals)


def _wanted(rows: Mapping[str, LeaseRow], wanted: Mapping[str, NewLease], stream: str) -> Iterator[Change]:
    for key, new in wanted.items():
        if key not in rows:
            made = new.row(stream=stream)
            yield Change(key, f"no row -> {described(made)}", row=made)
    for key, new in wanted.items():
        if key in rows:
            yield _moved(rows[key], new.checkpoint, new.start_ms)


def let_go(row: LeaseRow) -> Change:
    """Take the names of workers that are no more out of a row, so that nobody has to wait until it expires."""
    named = " and ".join(filter(None, (row.checkpoint_owner, row.owner)))
    return Change(row.key, f"held by {named} -> free", write=rules.evict(row))


def described(row: LeaseRow) -> str:
    """Say where the reading of a shard goes on."""
    if row.position is not None:
        return f"after {row.position}"
    if row.native.start_ms is not None and row.checkpoint != TRIM_HORIZON:
        return f"{row.checkpoint} at {instant(row.native.start_ms)}"
    return row.checkpoint


def _moved(row: LeaseRow, checkpoint: str, start_ms: int | None) -> Change:
    write = rules.reposition(row, checkpoint=checkpoint, start_ms=start_ms)
    place = f"after {checkpoint}" if checkpoint.isdigit() else checkpoint
    when = "" if start_ms is None else f" at {instant(start_ms)}"
    return Change(row.key, f"{described(row)} -> {place}{when}", write=write)
