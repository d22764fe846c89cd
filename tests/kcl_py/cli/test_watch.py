"""``kcl status --watch``: one look after the other."""

import asyncio
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


class Drawn:
    """A terminal that keeps what is drawn."""

    def __init__(self) -> None:
        self.frames: list[str] = []
        self.again = asyncio.Event()
        self.console = Console(file=StringIO(), width=80, height=24, force_terminal=True)

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
