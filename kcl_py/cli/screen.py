"""The status as a terminal shows it: what needs attention is on top, in the room that there is.

Pure. Widths are columns of the terminal, heights its lines, times Unix seconds.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.console import Group
from rich.text import Text

from kcl_py.cli.lines import GAP, Block, Column, Said, fitting, flowed, line, table, width_of
from kcl_py.cli.names import shortened
from kcl_py.printable import printable
from kcl_py.status import Report, aged

MOST_LINES = 3
"""Of a sentence, where the height is limited."""
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


def screen(look: Look, now_s: float, width: int, height: int | None = None) -> Group:
    """Draw a look, lower than ``height`` where that is at all possible; without it, all of it."""
    read_s_ago = max(0.0, now_s - datetime.fromisoformat(look.status["at"]).timestamp())
    status, most = aged(look.status, read_s_ago), None if height is None else MOST_LINES
    head = _head(status, now_s, read_s_ago, width) + _trouble(look, width, most)
    room = None if height is None else height - len(head) - BLANKS
    latest = [line(one, "dim") for change in look.latest for one in flowed([change], width, most)]
    latest = latest if room is None else latest[: max(room // 4, 2)]
    left = None if room is None else room - len(latest)
    workers = _workers(status, width, most, None if left is None else max(left // 3, LEAST_ROWS))
    shards = _shards(status, width, most, None if left is None else max(left - len(workers), LEAST_ROWS))
    return Group(*head, *(one for part in (workers, shards, latest) if part for one in (line(""), *part)))


def _head(status: Report, now_s: float, read_s_ago: float, width: int) -> list[Text]:
    who = printable(f"{status['app']} on {status['stream']}")
    now = f"{datetime.fromtimestamp(now_s, UTC):%H:%M:%S} UTC"
    read = [f"read {read_s_ago:.0f} s ago"] if read_s_ago >= FRESH_S else []
    totals = [f"{key} {_cell(value)}" for key, value in status["totals"].items()]
    return [line(one, "bold") for one in flowed([who, now, *read, *totals], width, MOST_LINES)]


def _trouble(look: Look, width: int, most: int | None) -> list[Text]:
    since = f"stale since {look.status['at'][11:19]} UTC: " if look.is_stale else ""
    return [line(one, "red") for one in flowed([since + printable(look.trouble)], width, most)]


def _workers(status: Report, width: int, most: int | None, room: int | None) -> list[Text]:
    """Draw the workers; those that are silent and hold nothing any more are only counted."""
    held = Counter(row["owner"] for row in status["shards"])
    rows = [row for row in status["workers"] if row["state"] != "silent" or held[row["worker"]]]
    rows.sort(key=lambda row: (row["state"] != "silent", row["state"] == "active"))
    names = shortened({_cell(row["worker"]) for row in rows}, width // 2)
    columns = (
        Column("worker", lambda row: names[_cell(row["worker"])]),
        Column("state", lambda row: _cell(row["state"])),
        Column("held", lambda row: str(held[row["worker"]]), is_number=True),
        Column("max", lambda row: _cell(row["max"]), is_number=True),
        Column("seen s ago", lambda row: _cell(row["seen_s_ago"]), is_number=True),
    )
    blocks = table(_filled(columns, rows), rows, _of_worker, width, most) if rows else []
    gone = len(status["workers"]) - len(rows)
    gone_too = [line(_gone(gone), "dim")] if gone else []
    shown = fitting(blocks, None if room is None else room - len(gone_too))
    return [*_some(blocks, shown, f"{len(blocks) - shown} more workers"), *gone_too]


def _shards(status: Report, width: int, most: int | None, room: int | None) -> list[Text]:
    """Draw the shards that are not read to their end."""
    rows = sorted((row for row in status["shards"] if row["state"] != "ended"), key=_urgency)
    blocks = table(_shard_columns(rows, width), rows, _of_shard, width, most) if rows else []
    shown = fitting(blocks, room)
    unwell = sum(_urgency(row)[:2] != WELL for row in rows[shown - 1 :]) if rows else 0
    what = f"shards, {unwell} of which are not well" if unwell else "shards that are well"
    return _some(blocks, shown, f"{len(blocks) - shown} more {what}")


def _some(blocks: Sequence[Block], shown: int, rest: str) -> list[Text]:
    lines = [one for block in blocks[:shown] for one in block]
    return [*lines, line(f"and {rest}", "dim")] if shown < len(blocks) else lines


def _urgency(row: Report) -> tuple[bool, bool, bool, int, str]:
    """What stands still first, then what nobody has, what moves, and what is farthest behind."""
    is_bad = bool(row["halted"] or row["fault"])
    return not is_bad, row["state"] != "free", row["state"] != "handoff", -(row["lag_ms"] or 0), row["shard"]


def _of_worker(row: Report) -> Said:
    style = {"silent": "red", "draining": "yellow", "starting": "yellow"}.get(row["state"], "")
    return Said(style, (f"takes no more: {_cell(row['held_off'])}",) if row["held_off"] else ())


def _of_shard(row: Report) -> Said:
    parts = []
    if halted := row["halted"]:
        parts += [f"halted: {_cell(halted['error'])}", f"at {_cell(halted['position'])}"]
    if row["fault"]:
        parts.append(f"could not be run: {_cell(row['fault'])}")
    style = "red" if parts else {"handoff": "cyan", "free": "yellow"}.get(row["state"], "")
    if row["next_owner"] is not None:
        parts.append(f"asked for by {_cell(row['next_owner'])}")
    return Said(style, tuple(parts))


def _shard_columns(rows: Sequence[Report], width: int) -> list[Column]:
    """Return what is shown of shards: names of owners give way on a narrow screen, then ids of shards."""
    keys, owners = ({_cell(row[name]) for row in rows} for name in ("shard", "owner"))
    columns = _filled(_columns(shortened(keys, width), shortened(owners, width)), rows)
    wide = {column.name: width_of(column, rows) for column in columns}
    left = width - sum(wide.values()) - len(GAP) * (len(columns) - 1) + wide.get("owner", 0)
    lacking = max(0, min(LEAST_NAME, wide.get("owner", 0)) - left)
    ids = shortened(keys, max(LEAST_ID, wide["shard"] - lacking))
    left += wide["shard"] - max(map(len, ids.values()))
    return _filled(_columns(ids, shortened(owners, max(LEAST_ID, left))), rows)


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
