"""``kcl status FILE --watch``: the status again and again, with what has changed meanwhile.

On a terminal one screen that keeps up to date, with what needs attention on top; elsewhere one report after the other.
"""

import json
import sys
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime
from textwrap import wrap
from typing import TYPE_CHECKING, Literal

from actors.clock import Clock, SystemClock
from kcl_py.changes import changes
from kcl_py.cli.looking import looking
from kcl_py.cli.output import leave_unsaid, say
from kcl_py.cli.signals import leaving
from kcl_py.cli.status import read_status
from kcl_py.errors import AwsSetupError
from kcl_py.printable import printable
from kcl_py.status import Report, text

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

    from kcl_py.config import Config
    from kcl_py.leases.store import LeaseStore
    from kcl_py.sources.source import StreamInfo

MOST_CHANGES = 8
"""So many of the latest are shown."""
FIXED_LINES = 7
"""Of the screen, beside its head, the rows of its tables and the changes."""
MOST_LINES = 3
"""Of each part of the head: who and how much, and what is wrong."""
LEAST_WIDTH = 20
"""A screen that is still narrower shows the beginnings of lines."""
WELL = (True, True)
"""How a shard's urgency begins that runs somewhere and does not stand still."""
CUT_FIRST = ("worker", "owner", "next", "takes no more", "halted or fault")
"""The columns that give way on a narrow screen; the others tell rows apart by their last letters."""
SHOWN_DIGITS = 12
"""Of a sequence number: the last ones, which differ."""

Show = Callable[[Report, str], bool]
"""Shows a report, and a sentence about what is wrong with it; False if nobody looks any more."""


async def watch(config: "Config", *, as_json: bool) -> None:
    """Show the status until cancelled. Raises what ``kcl status`` raises, if the first look fails."""
    clock = SystemClock()
    async with looking(config) as clients:
        console = None if as_json else _console()
        if console is None:
            await look_on(clients.leases, config, clients.stream, clock, _lines if as_json else _reports)
            return
        from rich.live import Live

        with leaving(), Live(console=console, auto_refresh=False, screen=True) as live:
            await look_on(
                clients.leases,
                config,
                clients.stream,
                clock,
                lambda status, trouble: _draw(live, screen(status, trouble, *console.size)),
            )


def _console() -> "Console | None":
    """Return what draws on the terminal; None if stdout is no terminal, or one that can only add lines."""
    if not sys.stdout.isatty():
        return None
    from rich.console import Console

    console = Console()
    return console if console.is_terminal and not console.is_dumb_terminal else None


async def look_on(store: "LeaseStore", config: "Config", stream: "StreamInfo | None", clock: Clock, show: Show) -> None:
    """Read both tables each tick until nobody looks; one that cannot be read now is read again."""
    latest: deque[str] = deque(maxlen=MOST_CHANGES)
    status: Report | None = None
    while True:
        trouble: list[str] = []
        try:
            new = await read_status(store, config, stream=stream, now_s=clock.time(), warn=trouble.append)
        except AwsSetupError as error:
            if status is None:
                raise
            status, trouble = status | {"changes": []}, [str(error)]
        else:
            happened = changes(status, new) if status is not None else []
            latest.extendleft(f"{new['at'][11:19]} {one}" for one in happened)
            status = new | {"changes": happened, "latest": list(latest)}
        if not show(status, "; ".join(trouble)):
            return
        await clock.sleep(config.leases.tick_s)


def _lines(status: Report, trouble: str) -> bool:
    shown = {key: value for key, value in status.items() if key != "latest"}
    return say(json.dumps(shown | {"trouble": trouble or None}) + "\n")


def _reports(status: Report, trouble: str) -> bool:
    changed = "".join(f"{one}\n" for one in status["changes"])
    return say((f"{printable(trouble)}\n\n" if trouble else "") + f"{text(status)}\n{changed}\n")


def _draw(live: "Live", drawn: "RenderableType") -> bool:
    live.update(drawn, refresh=True)
    if live.console.is_terminal:
        return True
    leave_unsaid()  # the terminal has been closed
    return False


def screen(status: Report, trouble: str, width: int, height: int) -> "RenderableType":
    """Draw a report that has ``latest`` changes, no higher than ``height`` lines where that is at all possible."""
    from rich.console import Group
    from rich.text import Text

    totals = "  ".join(f"{key} {_cell(value)}" for key, value in status["totals"].items())
    at = datetime.fromisoformat(status["at"]).strftime("%H:%M:%S")
    head = _wrapped(f"{status['app']} on {status['stream']}  {at} UTC  {totals}", width, style="bold")
    head += _wrapped(printable(trouble), width, style="red")
    latest = [Text(one, style="dim", no_wrap=True) for one in status["latest"]]
    left = height - FIXED_LINES - len(latest) - len(head)
    workers = sorted(status["workers"], key=lambda row: (row["state"] != "silent", row["state"] == "active"))
    workers = workers[: max(left // 3, 3)]
    shards = sorted((row for row in status["shards"] if row["state"] != "ended"), key=_urgency)
    shown = shards[: max(left - len(workers), 3)]
    unwell = sum(_urgency(row)[:2] != WELL for row in shards[len(shown) :])
    what = f"shards, {unwell} of which are not well" if unwell else "shards that are well"
    parts: list[RenderableType] = [*head]
    parts += [_workers(workers), Text(_more(len(status["workers"]) - len(workers), "workers"), style="dim")]
    parts += [_shards(shown), Text(_more(len(shards) - len(shown), what), style="dim"), *latest]
    return Group(*parts)


def _wrapped(text: str, width: int, *, style: str) -> "list[Text]":
    """Return the lines of a text, and only so many that it leaves room for the rest."""
    from rich.text import Text

    lines = wrap(text, max(width, LEAST_WIDTH), max_lines=MOST_LINES, placeholder=" …")
    return [Text(line, style=style, no_wrap=True, overflow="crop") for line in lines]


def _urgency(row: Report) -> tuple[bool, bool, bool, int, str]:
    """What stands still first, then what nobody has, what moves, and what is farthest behind."""
    is_bad = bool(row["halted"] or row["fault"])
    return not is_bad, row["state"] != "free", row["state"] != "handoff", -(row["lag_ms"] or 0), row["shard"]


def _workers(rows: Sequence[Report]) -> "Table":
    table = _table("worker", "state", "held", "max", "seen s ago", "takes no more")
    for row in rows:
        style = {"silent": "red", "draining": "yellow", "starting": "yellow"}.get(row["state"], "")
        cells = (row["worker"], row["state"], row["held"], row["max"], row["seen_s_ago"], row["held_off"])
        _add(table, *cells, style=style)
    return table


def _shards(rows: Sequence[Report]) -> "Table":
    table = _table("shard", "state", "owner", "next", "checkpoint", "lag ms", "age s", "kB/s", "halted or fault")
    for row in rows:
        halted = row["halted"] and f"{row['halted']['error']} at {_short(row['halted']['position'])}"
        is_bad = bool(halted or row["fault"])
        style = "red" if is_bad else {"handoff": "cyan", "free": "yellow"}.get(row["state"], "")
        cells = (row["shard"], row["state"], row["owner"], row["next_owner"], _short(row["checkpoint"]))
        figures = (row["lag_ms"], row["lag_age_s"], row["throughput_kbps"])
        _add(table, *cells, *figures, halted or row["fault"], style=style)
    return table


def _table(*columns: str) -> "Table":
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in columns:
        justify: Literal["left", "right"] = "right" if name in ("held", "lag ms", "age s", "kB/s") else "left"
        table.add_column(Text(name, no_wrap=True, overflow="ellipsis"), no_wrap=name not in CUT_FIRST, justify=justify)
    return table


def _add(table: "Table", *values: object, style: str) -> None:
    from rich.text import Text  # a plain string would be read as markup

    table.add_row(*(Text(_cell(value), no_wrap=True, overflow="ellipsis") for value in values), style=style)


def _cell(value: object) -> str:
    return "-" if value is None else printable(str(value))


def _short(position: str) -> str:
    return f"…{position[-SHOWN_DIGITS:]}" if position.isdigit() and len(position) > SHOWN_DIGITS else position


def _more(count: int, what: str) -> str:
    return f"and {count} more {what}" if count > 0 else ""
