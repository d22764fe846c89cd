"""The status as a terminal shows it: what needs attention is on top, in the room that there is.

Pure. Widths are columns of the terminal, heights its lines, times Unix seconds.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.console import Group
from rich.text import Text

from kcl_py.cli.lines import GAP, Column, Said, fitting, flowed, line, table, width_of
from kcl_py.cli.names import shortened
from kcl_py.printable import printable
from kcl_py.status import Report, advice, aged

MOST_LINES = 3
"""Of a sentence, where the height is limited."""
CHANGE_LINES = 2
"""Of a change: what it leads to stands above, in full."""
BLANKS = 4
"""Lines that are left empty: between the parts, and the lowest."""
LEAST_ROWS = 4
"""Lines of a table that are shown however low the screen is."""
FRESH_S = 2.0
"""From then on it is said how long ago the tables were read."""
LEAST_NAME = 14
"""Names of owners are not cut below that while ids of shards can be: enough for ``web-1/1e24ad3c``."""
LEAST_ID = 10
"""Neither is cut below that."""
SHOWN_DIGITS = 11
"""Of a sequence number: the last ones, which differ; as long as ``TRIM_HORIZON`` with what stands for the others."""
WELL = (True, True)
"""How a shard's urgency begins that runs somewhere and does not stand still."""


@dataclass(frozen=True, slots=True)
class Look:
    """What was there when the tables could last be read, and what is wrong now."""

    status: Report
    changes: tuple[str, ...] = ()
    """What had happened since they were read before; empty if they cannot be read now."""
    latest: tuple[str, ...] = ()
    """The last changes with their times, the newest first."""
    trouble: str = ""
    is_stale: bool = False
    """Whether they cannot be read now; ``trouble`` says why."""


@dataclass(frozen=True, slots=True)
class Room:
    """What a part of the screen may take."""

    width: int
    lines: int | None
    """None: as many as it needs."""

    @property
    def most(self) -> int | None:
        """Lines of one sentence."""
        return None if self.lines is None else MOST_LINES

    def without(self, lines: int) -> "Room":
        return self if self.lines is None else Room(self.width, max(self.lines - lines, LEAST_ROWS))


def screen(look: Look, now_s: float, width: int, height: int | None = None) -> Group:
    """Draw a look, lower than ``height`` where that is at all possible; without it, all of it."""
    read_s_ago = max(0.0, now_s - datetime.fromisoformat(look.status["at"]).timestamp())
    status, room = aged(look.status, read_s_ago), Room(width, height)
    head = _head(status, now_s, read_s_ago, width) + _trouble(look, room)
    told = [line(one) for one in flowed(advice(status), width, MOST_LINES)]
    room = room.without(len(head) + len(told) + BLANKS)
    latest = [line(one, "dim") for change in look.latest for one in flowed([change], width, CHANGE_LINES)]
    latest = latest if room.lines is None else latest[: max(0, room.lines - 2 * len(told)) // 4]
    room = room.without(len(latest))
    workers = _workers(status, room if room.lines is None else room.without(room.lines * 2 // 3))
    shards = _shards(status, room.without(len(workers)))
    return Group(*head, *(one for part in (workers, [*shards, *told], latest) if part for one in (line(""), *part)))


def _head(status: Report, now_s: float, read_s_ago: float, width: int) -> list[Text]:
    who = printable(f"{status['app']} on {status['stream']}")
    now = f"{datetime.fromtimestamp(now_s, UTC):%H:%M:%S} UTC"
    read = [f"read {read_s_ago:.0f} s ago"] if read_s_ago >= FRESH_S else []
    totals = [f"{key} {_cell(value)}" for key, value in status["totals"].items()]
    return [line(one, "bold") for one in flowed([who, now, *read, *totals], width, MOST_LINES)]


def _trouble(look: Look, room: Room) -> list[Text]:
    since = f"stale since {look.status['at'][11:19]} UTC: " if look.is_stale else ""
    return [line(one, "red") for one in flowed([since + printable(look.trouble)], room.width, room.most)]


def _workers(status: Report, room: Room) -> list[Text]:
    """Draw the workers; those that are silent and hold nothing any more are only counted."""
    held = Counter(row["owner"] for row in status["shards"])
    rows = [row for row in status["workers"] if row["state"] != "silent" or held[row["worker"]]]
    rows.sort(key=lambda row: (row["state"] != "silent", row["state"] == "active"))
    names = shortened({_cell(row["worker"]) for row in rows}, room.width // 2)
    columns = (
        Column("worker", lambda row: names[_cell(row["worker"])]),
        Column("state", lambda row: _cell(row["state"])),
        Column("held", lambda row: str(held[row["worker"]]), is_number=True),
        Column("max", lambda row: _cell(row["max"]), is_number=True),
        Column("seen s ago", lambda row: _cell(row["seen_s_ago"]), is_number=True),
    )
    gone = len(status["workers"]) - len(rows)
    told = [line(_gone(gone), "dim")] if gone else []
    lines, shown = _table(rows, columns, _of_worker, room.without(len(told)))
    return [*lines, *_rest(len(rows) - shown, "workers"), *told]


def _shards(status: Report, room: Room) -> list[Text]:
    """Draw the shards that are not read to their end."""
    rows = sorted((row for row in status["shards"] if row["state"] != "ended"), key=_urgency)
    lines, shown = _table(rows, _shard_columns(rows[: room.lines], room.width), _of_shard, room)
    unwell = sum(_urgency(row)[:2] != WELL for row in rows[shown:])
    what = f"shards, {unwell} of which are not well" if unwell else "shards that are well"
    return [*lines, *_rest(len(rows) - shown, what)]


def _table(
    rows: Sequence[Report], columns: Sequence[Column], said: Callable[[Report], Said], room: Room
) -> tuple[list[Text], int]:
    """Return the lines of as many rows as there is room for, and how many these are."""
    if not rows:
        return [], 0
    first = rows[: room.lines]
    blocks = table(_filled(columns, first), first, said, room.width, room.most)
    shown = fitting(blocks, room.lines)
    return [one for block in blocks[:shown] for one in block], shown - 1


def _rest(count: int, what: str) -> list[Text]:
    return [line(f"and {count} more {what}", "dim")] if count else []


def _urgency(row: Report) -> tuple[bool, bool, bool, int, str]:
    """What stands still first, then what nobody has, what moves, and what is farthest behind."""
    is_bad = bool(row["halted"] or row["fault"])
    return not is_bad, row["state"] != "free", row["state"] != "handoff", -(row["lag_ms"] or 0), row["shard"]


def _of_worker(row: Report) -> Said:
    style = {"silent": "red", "draining": "yellow", "starting": "yellow"}.get(row["state"], "")
    return Said(style, (f"takes no more: {_cell(row['held_off'])}",) if row["held_off"] else ())


def _of_shard(row: Report) -> Said:
    parts, is_bad = [], bool(row["halted"] or row["fault"])
    if halted := row["halted"]:
        parts += [f"halted: {_cell(halted['error'])}", f"at {_cell(halted['position'])}"]
    if row["fault"]:
        parts.append(f"could not be run: {_cell(row['fault'])}")
    style = "red" if is_bad else {"handoff": "cyan", "free": "yellow"}.get(row["state"], "")
    if row["held_by"]:
        parts.append(f"held by {_cell(row['held_by'])}")
    if paused := row["paused"]:
        style = style or "yellow"
        parts += _of_pause(paused)
    if row["next_owner"] is not None:
        parts.append(f"asked for by {_cell(row['next_owner'])}")
    return Said(style, tuple(parts))


def _of_pause(paused: Report) -> list[str]:
    what = "paused" if paused["is_quiet"] else "pausing"
    said = f"{what} since {_cell(paused['since'])}" + (", with the whole stream" if paused["of"] == "stream" else "")
    return [f"{said}: {_cell(paused['why'])}" if paused["why"] else said]


def _shard_columns(rows: Sequence[Report], width: int) -> tuple[Column, ...]:
    """Return what is shown of shards: names of owners give way on a narrow screen, then ids of shards."""
    keys, owners = ({_cell(row[name]) for row in rows} for name in ("shard", "owner"))
    columns = _filled(_columns(shortened(keys, width), shortened(owners, width)), rows)
    wide = {"shard": 0, "owner": 0} | {column.name: width_of(column, rows) for column in columns}
    left = width - sum(wide.values()) - len(GAP) * (len(columns) - 1) + wide["owner"]
    lacking = max(0, min(LEAST_NAME, wide["owner"]) - left)
    ids = shortened(keys, max(LEAST_ID, wide["shard"] - lacking))
    left += wide["shard"] - max(map(len, ids.values()), default=0)
    return _columns(ids, shortened(owners, max(LEAST_ID, left)))


def _columns(keys: dict[str, str], owners: dict[str, str]) -> tuple[Column, ...]:
    return (
        Column("shard", lambda row: keys[_cell(row["shard"])]),
        Column("state", lambda row: _cell(row["state"])),
        Column("owner", lambda row: owners[_cell(row["owner"])]),
        Column("checkpoint", lambda row: _short(_cell(row["checkpoint"]))),
        Column("lag ms", lambda row: _cell(row["lag_ms"]), is_number=True),
        Column("age s", lambda row: _cell(row["lag_age_s"]), is_number=True),
        Column("kB/s", lambda row: _cell(row["throughput_kbps"]), is_number=True),
    )


def _filled(columns: Sequence[Column], rows: Sequence[Report]) -> list[Column]:
    """Leave out what says nothing of any row."""
    return [column for column in columns if any(column.cell(row) != "-" for row in rows)]


def _cell(value: object) -> str:
    return "-" if value is None else printable(str(value))


def _short(position: str) -> str:
    return f"…{position[-SHOWN_DIGITS:]}" if position.isdigit() and len(position) > SHOWN_DIGITS else position


def _gone(count: int) -> str:
    return "1 silent worker that holds nothing" if count == 1 else f"{count} silent workers that hold nothing"
