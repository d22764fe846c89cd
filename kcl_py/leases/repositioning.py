"""What an operator does to lease rows: begin elsewhere, begin anew, let go; or asks of those who hold them. Pure.

Each function returns the changes to be made, as a plan that can be shown first. A row that is written meanwhile by a
worker is not touched, since each write names the row as it was seen; only a request leaves the row to its holder.
Instants are Unix milliseconds.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kcl_py.leases import by_hand
from kcl_py.leases.lineage import LATEST_SLACK_MS, NewLease, discover
from kcl_py.leases.requests import RELEASE, SEEK, Place, in_words
from kcl_py.leases.row import AT_TIMESTAMP, LATEST, TRIM_HORIZON, LeaseRow, Request, WorkerRow
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
    request: Request | None = None
    """What ``write`` asks of the holder, whose answer comes later."""


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


def place_of(row: LeaseRow, to: Position | SequenceNumber, *, now_ms: int) -> Place:
    """Say how a row holds where the reading of its shard is to begin.

    Args:
        row: not one that has ended.
        to: where; a sequence number is that of the last record that counts as finished.
        now_ms: the service's time, for the newest record.
    """
    if isinstance(to, SequenceNumber):
        return Place(str(to))
    match to.kind:
        case PositionKind.AT_TIMESTAMP:
            return Place(AT_TIMESTAMP, to.value)
        case PositionKind.LATEST:
            return Place(LATEST, now_ms - LATEST_SLACK_MS)
    if len(row.parents) > 1:  # at TRIM_HORIZON it would tell that one of them is still to be read: see lineage
        return Place(AT_TIMESTAMP, 0)
    return Place(TRIM_HORIZON)


def begin_at(row: LeaseRow, place: Place) -> Change:
    """Have the reading of one shard begin elsewhere."""
    return Change(row.key, _from_to(row, place), write=by_hand.reposition(row, place))


def ask_to_begin_at(row: LeaseRow, place: Place, key: str) -> Change:
    """Ask the holder of a shard to go on elsewhere; ``key`` tells this request from others."""
    return _asked(row, _from_to(row, place), Request(key, SEEK, str(place)))


def ask_to_let_go(row: LeaseRow, key: str) -> Change:
    """Ask the holder of a shard to let go of it."""
    return _asked(row, f"held by {row.holder} -> free", Request(key, RELEASE))


def withdraw(row: LeaseRow, request: Request) -> Change:
    """Take back what is asked of the holder of a shard."""
    return Change(row.key, f"asked to {in_words(request)} -> not asked", write=by_hand.withdraw(row, request))


def begin_anew(rows: Mapping[str, LeaseRow], listing: Listing, start: Position, *, stream: str) -> tuple[Change, ...]:
    """Have the stream be read as if nobody had ever read it: each row as discovery would make it, and no other.

    A row that tells nothing else than it would tell then is left as it is.

    Rows are made first, then those that stay are moved, then others go, parents before their children: a plan that was
    cut off can be made again, and a worker that starts instead neither passes over what nobody has read nor begins
    what is left behind.
    """
    wanted = {new.shard.shard_id: new for new in discover(listing, {}, start)}
    gone = [row for key, row in sorted(rows.items()) if key not in wanted]
    removals = [Change(row.key, f"{described(row)} -> no row", removal=by_hand.remove(row)) for row in gone]
    return (*_wanted(rows, wanted, stream), *removals)


def _wanted(rows: Mapping[str, LeaseRow], wanted: Mapping[str, NewLease], stream: str) -> Iterator[Change]:
    for key, new in wanted.items():
        if key not in rows:
            made = new.row(stream=stream)
            yield Change(key, f"no row -> {described(made)}", row=made)
    for key, new in wanted.items():
        if key in rows and (change := _begun_anew(rows[key], Place(new.checkpoint, new.start_ms))) is not None:
            yield change


def _begun_anew(row: LeaseRow, place: Place) -> Change | None:
    if described(row) != place.words:
        return begin_at(row, place)
    told = _told(row)
    what = f"{place.words}, {', '.join(told)} -> {place.words}"
    return Change(row.key, what, write=by_hand.reposition(row, place)) if told else None


def _told(row: LeaseRow) -> list[str]:
    """Name what a row that is where its reading begins tells of readings before."""
    native = row.native
    told = (
        f"held by {row.holder}" if row.holder else "",
        f"asked to {in_words(native.request)}" if native.request else "",
        f"handed over as far as {native.delivered}" if native.delivered else "",
        f"begun at {instant(native.start_ms)}" if native.start_ms and row.checkpoint == TRIM_HORIZON else "",
        "halted" if native.halted else "",
        "failed" if native.fault else "",
        f"followed by {' and '.join(row.children)}" if row.children else "",
    )
    return list(filter(None, told))


def let_go(row: LeaseRow) -> Change:
    """Take the names of workers that are no more out of a row, so that nobody has to wait until it expires."""
    named = " and ".join(filter(None, (row.checkpoint_owner, row.owner)))
    return Change(row.key, f"held by {named} -> free", write=by_hand.evict(row))


def described(row: LeaseRow) -> str:
    """Say where the reading of a shard goes on."""
    if row.has_ended:
        return "read to its end"
    if row.position is not None:
        return f"after {row.position}"
    if row.native.start_ms is not None and row.checkpoint != TRIM_HORIZON:
        return Place(row.checkpoint, row.native.start_ms).words
    return row.checkpoint


def in_one_line(row: LeaseRow) -> str:
    """Say all that an operator asks of a row: where it is, whose, what keeps it there, what it is asked for."""
    native, is_current = row.native, row.native_is_current
    holder = f"held by {row.holder}" if row.holder else "" if row.has_ended else "free"
    said = (
        described(row),
        holder,
        f"asked for by {row.owner}" if row.in_handoff else "",
        f"asked to {in_words(native.request)} ({native.request.id})" if native.request is not None else "",
        f"halted at {native.halted.position}: {native.halted.error}" if native.halted and is_current else "",
        _paused(row),
        f"failed: {native.fault}" if native.fault and (is_current or row.holder is None) else "",
        f"counter {row.counter}",
        f"after {' and '.join(row.parents)}" if row.parents else "",
    )
    return f"{row.key}: {', '.join(filter(None, said))}"


def _paused(row: LeaseRow) -> str:
    paused = row.native.paused
    if paused is None or row.has_ended:
        return ""
    said = f"paused since {instant(paused.at_ms)}" + (" with the whole stream" if paused.is_of_stream else "")
    return f"{said}: {paused.why}" if paused.why else said


def _from_to(row: LeaseRow, place: Place) -> str:
    return f"{described(row)} -> {place.words}"


def _asked(row: LeaseRow, what: str, request: Request) -> Change:
    return Change(row.key, f"{what}, by its holder {row.holder}", write=by_hand.request(row, request), request=request)
