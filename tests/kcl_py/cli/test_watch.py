"""The screen of ``kcl status --watch``: what needs attention is on it, however large the fleet is."""

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from actors.clock import SystemClock
from kcl_py.cli.watch import look_on, screen
from kcl_py.config import Config, Leases
from kcl_py.errors import ThrottledError
from kcl_py.leases.items import item_from_row
from kcl_py.leases.memory import MemoryLeaseStore
from kcl_py.leases.row import Halt, LeaseRow, Native, WorkerRow
from kcl_py.leases.store import Scan
from kcl_py.status import report

CONFIG = Config(app="demo", stream="flights", processor="m:C")
NOW_S = 1_767_258_000.0
HEIGHT = 40


def drawn(
    *rows: LeaseRow,
    workers: int = 2,
    dead: int = 0,
    latest: tuple[str, ...] = (),
    trouble: str = "",
    width: int = 160,
) -> list[str]:
    """Return the lines of the screen; the workers with the last names are dead."""
    names = [f"w{number}" for number in range(workers)]
    living = [WorkerRow(name, state="active", updated_s=int(NOW_S)) for name in names[: workers - dead]]
    silent = [WorkerRow(name, state="active", updated_s=int(NOW_S) - 99) for name in names[workers - dead :]]
    status: dict[str, Any] = report(CONFIG, rows, living + silent, NOW_S) | {"latest": list(latest)}
    console = Console(file=StringIO(), width=width, height=HEIGHT)
    console.print(screen(status, trouble, width, HEIGHT))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue().splitlines()


def test_the_screen_holds_what_is_wrong_of_a_thousand_shards() -> None:
    """It scrolls nothing away, and says how much is not shown."""
    rows = [LeaseRow(f"s-{number:04}", owner="w0", native=Native(owner="w0", lag_ms=number)) for number in range(1000)]
    rows[500] = LeaseRow("s-0500", owner="w1", native=Native(owner="w1", halted=Halt("ValueError: [no]", "1" * 56)))
    rows[501] = LeaseRow("s-0501")
    lines = drawn(
        *rows, LeaseRow("s-ended", checkpoint="SHARD_END"), workers=100, latest=("a", "b"), trouble="no answer"
    )
    assert len(lines) < HEIGHT
    shards = [line.split()[0] for line in lines if line.startswith("s-")]
    assert shards[:4] == ["s-0500", "s-0501", "s-0999", "s-0998"]
    assert f"and {1000 - len(shards)} more shards that are well" in lines
    halted = next(line for line in lines if line.startswith("s-0500"))
    assert "ValueError: [no] at …111111111111" in halted
    assert "no answer" in lines[1]
    assert any("more workers" in line for line in lines)
    assert lines[-2:] == ["a", "b"]


def test_the_screen_says_how_much_that_is_wrong_it_does_not_show() -> None:
    """Not that the rest is well; a worker that is silent comes before all that are not."""
    halted = Native(owner="w0", halted=Halt("ValueError", "1"))
    rows = [LeaseRow(f"s-{number:04}", owner="w0", native=halted) for number in range(100)]
    lines = drawn(*rows, LeaseRow("s-free"), *(LeaseRow(f"s-{n}", owner="w0") for n in range(3)), workers=100, dead=1)
    shown = sum(line.startswith("s-") for line in lines)
    assert f"and {104 - shown} more shards, {101 - shown} of which are not well" in lines
    assert next(line for line in lines if line.startswith("w")).startswith("worker")
    assert next(line for line in lines if line.startswith("w9")).split()[:2] == ["w99", "silent"]


@pytest.mark.parametrize("width", [160, 80, 40])
def test_trouble_that_is_long_leaves_room_for_the_rest(width: int) -> None:
    """As a thousand items that are no leases; on a narrow screen, too, it ends above the lowest line."""
    rows = [LeaseRow(f"s-{number:04}", owner="w0", native=Native(owner="w0")) for number in range(100)]
    lines = drawn(*rows, trouble="; ".join(["cannot read the row of 's'"] * 1000), width=width, latest=("a", "b"))
    assert len(lines) < HEIGHT
    assert sum(line.startswith("s") for line in lines) > 10


def test_shards_and_checkpoints_are_told_apart_on_a_narrow_screen() -> None:
    """What gives way are the long names of owners, and what an exception says."""
    owner = f"ip-10-0-0-12.eu-west-1.compute.internal-12345-{'a' * 8}/{'b' * 8}"
    halted = Native(owner=owner, halted=Halt("ValueError: " + "long " * 30, "1" * 56))
    ids = [f"shardId-{number:012}" for number in range(12)]
    lines = drawn(*(LeaseRow(key, owner=owner, checkpoint="7" * 56, native=halted) for key in ids), width=80)
    shown = [line for line in lines if line.startswith("shardId")]
    assert [line.split()[0] for line in shown] == ids
    assert all(f"…{'7' * 12} " in line for line in shown)


def test_the_screen_shows_a_handoff_with_both_workers() -> None:
    """Who has it and who gets it."""
    lines = drawn(LeaseRow("s-1", owner="w1", checkpoint_owner="w0"))
    assert next(line for line in lines if line.startswith("s-1")).split()[:4] == ["s-1", "handoff", "w0", "w1"]


def test_the_screen_has_a_value_under_each_of_its_columns() -> None:
    """The lag with its age, and why a worker takes no more."""
    said = Native(owner="w0", lag_ms=1234, lag_at_ms=int(NOW_S * 1000) - 5600)
    rows = [LeaseRow("s-1", owner="w1", checkpoint_owner="w0", checkpoint="7", throughput_kbps=8.9, native=said)]
    rows.append(LeaseRow("s-2", native=Native(fault="broken")))
    newcomer = WorkerRow("w1", state="starting", held=1, max_leases=2, held_off="new", updated_s=int(NOW_S) - 3)
    console = Console(file=StringIO(), width=160, height=HEIGHT)
    console.print(screen(report(CONFIG, rows, [newcomer], NOW_S) | {"latest": []}, "", 160, HEIGHT))
    assert isinstance(console.file, StringIO)
    shown = {line.split()[0]: line.split() for line in console.file.getvalue().splitlines() if line.strip()}
    assert shown["w1"] == ["w1", "starting", "1", "2", "3.0", "new"]
    assert shown["s-1"] == ["s-1", "handoff", "w0", "w1", "7", "1234", "5.6", "8.9", "-"]
    assert shown["s-2"] == ["s-2", "free", "-", "-", "TRIM_HORIZON", "-", "-", "-", "broken"]


@pytest.mark.parametrize("text", [r"\[/red]", r"\[/]", "[/red]", "[bold]", r"[red]\[", ":warning:", "\\"])
def test_the_screen_shows_text_from_outside_as_it_is(text: str) -> None:
    """Nothing in it is markup, so that an exception's words cannot end the watching."""
    rows = (
        LeaseRow("s-1", owner=text, native=Native(owner=text, halted=Halt(text, "1"))),
        LeaseRow("s-2", native=Native(fault=text)),
    )
    lines = drawn(*rows, trouble=text, latest=(text,))
    halted, faulty = (next(line.split() for line in lines if line.startswith(key)) for key in ("s-1", "s-2"))
    assert halted[:3] + halted[-3:] == ["s-1", "owned", text, text, "at", "1"]
    assert faulty[-1] == lines[1].strip() == lines[-1].strip() == text


@pytest.mark.asyncio
async def test_what_has_changed_is_told_once_while_the_tables_cannot_be_read() -> None:
    """What is shown of the last look is not said to have happened again."""
    config = Config(app="demo", stream="flights", processor="m:C", leases=Leases(failover_s=3))
    store, seen = Unreliable([LeaseRow("s-1")]), list[tuple[list[str], bool]]()

    def show(status: dict[str, Any], trouble: str) -> bool:
        seen.append((status["changes"], bool(trouble)))
        store.items = dict(store.items) | {"s-2": item_from_row(LeaseRow("s-2"))}
        store.fails = len(seen) in (2, 3)
        return len(seen) < 5

    await look_on(store, config, None, SystemClock(), show)
    assert seen == [([], False), (["s-2 has a row"], False), ([], True), ([], True), ([], False)]


class Unreliable(MemoryLeaseStore):
    """A store that cannot be read at times."""

    fails = False

    async def scan(self, *, consistent: bool = False) -> Scan:
        if self.fails:
            raise ThrottledError("Scan", "demo", "ThrottlingException")
        return await super().scan(consistent=consistent)
