"""The screen of ``kcl status --watch``: what needs attention is on it, however large the fleet is."""

from io import StringIO
from typing import Any

from rich.console import Console

from kcl_py.cli.watch import screen
from kcl_py.config import Config
from kcl_py.leases.row import Halt, LeaseRow, Native, WorkerRow
from kcl_py.status import report

CONFIG = Config(app="demo", stream="flights", processor="m:C")
NOW_S = 1_767_258_000.0
HEIGHT = 40


def drawn(*rows: LeaseRow, workers: int = 2, latest: tuple[str, ...] = (), trouble: str = "") -> list[str]:
    """Return the lines of the screen."""
    living = [WorkerRow(f"w{number}", state="active", updated_s=int(NOW_S)) for number in range(workers)]
    status: dict[str, Any] = report(CONFIG, rows, living, NOW_S) | {"latest": list(latest)}
    console = Console(file=StringIO(), width=160, height=HEIGHT)
    console.print(screen(status, trouble, HEIGHT))
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


def test_the_screen_shows_a_handoff_with_both_workers() -> None:
    """Who has it and who gets it."""
    lines = drawn(LeaseRow("s-1", owner="w1", checkpoint_owner="w0"))
    assert next(line for line in lines if line.startswith("s-1")).split()[:4] == ["s-1", "handoff", "w0", "w1"]
