"""``kcl status --watch``: one look after the other."""

import asyncio
import os
import subprocess
import sys
from contextlib import closing
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from actors.clock import SystemClock
from kcl_py.cli import watch
from kcl_py.cli.screen import Look
from kcl_py.cli.watch import Board, look_on
from kcl_py.config import Config, Leases
from kcl_py.errors import ThrottledError
from kcl_py.leases.items import item_from_row
from kcl_py.leases.memory import MemoryLeaseStore
from kcl_py.leases.row import LeaseRow
from kcl_py.leases.store import Scan
from kcl_py.status import report
from tests.clocks import PromptClock


@pytest.mark.asyncio
async def test_what_has_changed_is_told_once_while_the_tables_cannot_be_read() -> None:
    """What is shown of the last look is not said to have happened again."""
    config = Config(app="demo", stream="flights", processor="m:C", leases=Leases(failover_s=3))
    store, seen = Unreliable([LeaseRow("s-1")]), list[tuple[tuple[str, ...], bool, str]]()

    def show(look: Look) -> bool:
        seen.append((look.changes, look.is_stale, look.trouble))
        store.items = dict(store.items) | {"s-2": item_from_row(LeaseRow("s-2"))}
        store.fails = len(seen) in (2, 3)
        return len(seen) < 5

    await look_on(store, config, None, SystemClock(), show)
    away = ((), True, "cannot read lease table 'demo': ThrottlingException")
    assert seen == [((), False, ""), (("s-2 has a row",), False, ""), away, away, ((), False, "")]


@pytest.mark.asyncio
async def test_the_screen_grows_older_while_the_tables_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request can take long: until then the clock goes on, and the ages."""
    monkeypatch.setattr(watch, "DRAW_S", 0.0)
    clock, live = PromptClock(1_767_258_000.0), Drawn()
    config = Config(app="demo", stream="flights", processor="m:C")
    with closing(Board(live, clock)) as board:  # type: ignore[arg-type]
        assert board.show(Look(report(config, [], [], clock.time())))
        clock.now_s += 15
        await live.again.wait()
    assert "09:00:00 UTC" in live.frames[0]
    assert "09:00:15 UTC  read 15 s ago" in live.frames[1]


CLOSING = """
import asyncio, os, pty, sys
from contextlib import asynccontextmanager
from io import BufferedWriter, FileIO, TextIOWrapper
from types import SimpleNamespace
from kcl_py.cli import watch
from kcl_py.config import Config, Leases
from kcl_py.leases.memory import MemoryLeaseStore

left = int(sys.argv[1])
ours, its = pty.openpty()

class Closing(FileIO):
    def write(self, data):
        global left
        left -= 1
        if not left:
            os.close(ours)
        return super().write(data)

@asynccontextmanager
async def looking(config):
    yield SimpleNamespace(leases=MemoryLeaseStore(), stream=None)

sys.stdout = TextIOWrapper(BufferedWriter(Closing(its, "w", closefd=False)))
watch.looking, watch.DRAW_S = looking, 0.01
config = Config(app="demo", stream="flights", processor="m:C", leases=Leases(failover_s=3))
asyncio.run(watch.watch(config, as_json=False))
"""


@pytest.mark.parametrize("write", [1, 2, 3, 4])
@pytest.mark.parametrize("colours", [{}, {"FORCE_COLOR": "1"}])
def test_watching_ends_in_peace_whenever_its_terminal_is_closed(write: int, colours: dict[str, str]) -> None:
    """In the first thing it says, the next, the first drawing, or one between two looks at the tables."""
    command = [sys.executable, "-W", "error", "-c", CLOSING, str(write)]
    env = dict(os.environ) | {"TERM": "xterm", "COLUMNS": "80", "LINES": "24"} | colours
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


class Terminal(StringIO):
    """A file that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class Drawn:
    """A terminal that keeps what is drawn."""

    def __init__(self) -> None:
        self.frames: list[str] = []
        self.again = asyncio.Event()
        self.console = Console(file=Terminal(), width=80, height=24, force_terminal=True)

    def update(self, drawn: Any, *, refresh: bool) -> None:
        with self.console.capture() as capture:
            self.console.print(drawn)
        self.frames.append(capture.get())
        if len(self.frames) > 1:
            self.again.set()


class Unreliable(MemoryLeaseStore):
    """A store that cannot be read at times."""

    fails = False

    async def scan(self, *, consistent: bool = False) -> Scan:
        if self.fails:
            raise ThrottledError("Scan", "demo", "ThrottlingException")
        return await super().scan(consistent=consistent)
