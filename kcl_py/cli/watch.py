"""``kcl status FILE --watch``: the status again and again, with what has changed meanwhile.

On a terminal one screen that keeps up to date; elsewhere one report after the other.
"""

import asyncio
import json
import sys
from collections import deque
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from actors.clock import Clock, SystemClock
from kcl_py.changes import changes
from kcl_py.cli.looking import looking
from kcl_py.cli.output import leave_unsaid, say, while_read
from kcl_py.cli.screen import Look, screen
from kcl_py.cli.signals import leaving
from kcl_py.cli.status import on_terminal, read_status
from kcl_py.errors import AwsSetupError
from kcl_py.printable import printable
from kcl_py.status import text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

    from kcl_py.config import Config
    from kcl_py.leases.store import LeaseStore
    from kcl_py.sources.source import StreamInfo

MOST_CHANGES = 8
"""So many of the latest are shown."""
DRAW_S = 1.0
"""Between two drawings of the same look: its ages go on."""

Show = Callable[[Look], bool]
"""Shows a look; False if nobody looks any more."""


async def watch(config: "Config", *, as_json: bool) -> None:
    """Show the status until cancelled. Raises what ``kcl status`` raises, if the first look fails."""
    clock = SystemClock()
    async with looking(config) as clients:
        console = None if as_json else _console()
        if console is None:
            show = _lines if as_json else partial(_reports, clock)
            await look_on(clients.leases, config, clients.stream, clock, show)
            return
        from rich.live import Live

        with (
            while_read(),
            leaving(),
            Live(console=console, auto_refresh=False, screen=True) as live,
            closing(Board(live, clock)) as board,
        ):
            await look_on(clients.leases, config, clients.stream, clock, board.show)


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
    look: Look | None = None
    while True:
        trouble: list[str] = []
        try:
            new = await read_status(store, config, stream=stream, now_s=clock.time(), warn=trouble.append)
        except AwsSetupError as error:
            if look is None:
                raise
            look = Look(look.status, latest=look.latest, trouble=str(error), is_stale=True)
        else:
            happened = () if look is None else tuple(changes(look.status, new))
            latest.extendleft(f"{new['at'][11:19]} {one}" for one in happened)
            look = Look(new, happened, tuple(latest), "; ".join(trouble))
        if not show(look):
            return
        await clock.sleep(config.leases.tick_s)


class Board:
    """The screen of a terminal: the last look, drawn anew while the tables are read, or cannot be."""

    def __init__(self, live: "Live", clock: Clock) -> None:
        self._live, self._clock = live, clock
        self._next: asyncio.TimerHandle | None = None

    def show(self, look: Look) -> bool:
        """Draw a look from now on; False if the terminal has been closed."""
        self.close()
        console = self._live.console
        with while_read():
            self._live.update(screen(look, self._clock.time(), *console.size), refresh=True)
            if console.file.isatty():  # one that is closed is none, whatever rich is told to take it for
                self._next = asyncio.get_running_loop().call_later(DRAW_S, self.show, look)
                return True
        leave_unsaid()
        return False

    def close(self) -> None:
        """Draw no more."""
        if self._next is not None:
            self._next.cancel()


def _lines(look: Look) -> bool:
    return say(json.dumps(look.status | {"changes": look.changes, "trouble": look.trouble or None}) + "\n")


def _reports(clock: Clock, look: Look) -> bool:
    if sys.stdout.isatty():
        return say(on_terminal(look, clock.time()) + "\n")
    changed = "".join(f"{one}\n" for one in look.changes)
    return say((f"{printable(look.trouble)}\n\n" if look.trouble else "") + f"{text(look.status)}\n{changed}\n")
