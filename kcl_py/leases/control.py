"""What becomes of a row when its shard is paused, goes on, or goes on elsewhere: changes to show or to make. Pure.

``kcl pause``, ``kcl resume`` and ``kcl seek`` do this, and the methods of ``Stream`` with these names.
"""

from collections.abc import Collection, Mapping

from kcl_py.errors import KclError
from kcl_py.leases import by_hand, pausing
from kcl_py.leases.repositioning import Change, ask_to_begin_at, begin_at, described, place_of
from kcl_py.leases.requests import RESUME, in_words
from kcl_py.leases.row import LeaseRow, Paused, Request
from kcl_py.printable import counted, instant
from kcl_py.records import SequenceNumber
from kcl_py.sources.source import Position

HOW_ON = "kcl leases show lists what stands, kcl leases withdraw takes it back"
WHY_CHARACTERS = 80
"""How much may be said of why a shard is paused: its row stays under 1 KB."""


def one_of(rows: Mapping[str, LeaseRow], shard: str, table: str) -> LeaseRow:
    """Return the row of a shard; raises ``KclError`` if there is none."""
    if shard not in rows:
        raise KclError(
            f"cannot change {shard!r}: expected a shard with a row in {table!r}, found "
            f"{counted(len(rows), 'other')}; kcl leases show lists all"
        )
    return rows[shard]


def chosen(rows: Mapping[str, LeaseRow], shards: Collection[str], table: str, what: str) -> list[LeaseRow]:
    """Return the rows of some shards, or of all that are being read.

    Args:
        rows: the lease table.
        shards: ids; empty for the whole stream.
        table: its name, for errors.
        what: is to be done, as in ``move``.

    Raises:
        KclError: one of the shards has no row, or was read to its end.
    """
    for shard in shards:
        if one_of(rows, shard, table).has_ended:
            raise KclError(
                f"cannot {what} {shard!r}: expected a shard that is being read, found one that was read to its end; "
                "its children go on already; to read all again, use kcl leases reset"
            )
    return [row for key, row in rows.items() if (key in shards if shards else not row.has_ended)]


def is_to_be_asked(row: LeaseRow, working: Collection[str] | None) -> bool:
    """Whether a row is its holder's to write; raises ``KclError`` if that one cannot be asked now.

    Args:
        row: not one that has ended.
        working: who was seen at work; None: whoever holds the row is asked, or who takes it next.
    """
    if row.holder is None or (working is not None and row.holder not in working):
        return False
    if row.native.token is None or not row.native_is_current:
        raise KclError(
            f"cannot ask {row.holder} about {row.key!r}: expected a kcl_py worker to hold it, found another; stop it"
        )
    if (request := row.native.request) is not None:
        raise KclError(
            f"cannot ask {row.holder} about {row.key!r}: expected that nothing is asked of it, found a request to "
            f"{in_words(request)} ({request.id}); wait until it is answered; {HOW_ON}"
        )
    return True


def pause(row: LeaseRow, asked: Paused) -> list[Change]:
    """Pause a shard; nothing to do if it is paused already, and not for less than is asked now.

    Raises:
        KclError: a client holds the shard that knows of no pause, and no kcl_py worker ever has.
    """
    if row.holder is not None and not row.has_native:
        raise KclError(
            f"cannot pause {row.key!r}: expected a kcl_py worker or nobody to hold it, found {row.holder}, which would "
            "go on; stop it first"
        )
    paused = row.native.paused
    if paused is not None and (paused.is_of_stream or not asked.is_of_stream):
        return []
    what = f"{described(row)}{'' if paused is None else ', paused alone'} -> paused"
    return [Change(row.key, what, write=pausing.pause(row, asked))]


def resume(row: LeaseRow, key: str) -> list[Change]:
    """Have a shard go on: no pause, and a new ownership where it has halted; ``key`` tells the request for that."""
    native, changes = row.native, list[Change]()
    if native.paused is not None:
        what = f"paused since {instant(native.paused.at_ms)} -> goes on"
        changes.append(Change(row.key, what, write=pausing.unpause(row)))
    if native.halted is not None and native.request is None and row.holder is not None and row.native_is_current:
        what = f"halted at {native.halted.position} -> goes on, by its holder {row.holder}"
        asked = Request(key, RESUME)
        changes.append(Change(row.key, what, write=by_hand.request(row, asked), request=asked))
    return changes


def seek(
    row: LeaseRow, to: Position | SequenceNumber, key: str, *, now_ms: int, working: Collection[str] | None = None
) -> Change:
    """Have the reading of a shard go on elsewhere; see ``place_of`` and ``is_to_be_asked``, whose errors it raises."""
    place = place_of(row, to, now_ms=now_ms)
    return ask_to_begin_at(row, place, key) if is_to_be_asked(row, working) else begin_at(row, place)


def is_quiet(row: LeaseRow | None) -> bool:
    """Whether it is sure that nothing of a paused shard is in a processor's hands, nor will be."""
    if row is None or row.has_ended:
        return True
    native = row.native
    if native.paused is None:
        return False
    return row.holder is None or (row.native_is_current and native.quiet_for == native.paused.at_ms)
