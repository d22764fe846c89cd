"""What people see of the demo."""

import io
from typing import Any

import pytest
from rich.console import Console

from examples.demo.carriers import CarrierFigures
from examples.demo.facts import Fact
from examples.demo.screen import Plain, Terminal, carrier_table, line, screen
from examples.demo.view import View
from tests.clocks import PromptClock


def a_shard(number: int, **fields: Any) -> dict[str, Any]:
    """Return a shard as in ``kcl status --json``."""
    name = f"shardId-{number:012d}"
    return {"shard": name, "state": "owned", "owner": "worker-1/ab", "lag_ms": 1500, **fields}


@pytest.fixture
def view() -> View:
    """Two shards of worker-1 and one that has ended; 3 of 10 flights."""
    ended = a_shard(0, state="ended", owner=None, lag_ms=99_000)
    view = View(10, put=5, shards=[ended, a_shard(1), a_shard(4, lag_ms=None)], spark="running")
    view.add([Fact("shardId-000000000001", number, f"flight {number}") for number in (1, 2, 3)], over_s=0.5)
    view.carriers = {"UA": CarrierFigures(2, 1, 12)}
    return view


def test_line_sums_up_how_things_stand(view: View) -> None:
    """The lag of a shard that has ended means nothing any more."""
    assert line(view) == ("put 5 of 10, handed over 3 (6/s), 2 shards held by worker-1, lag 1.5 s, spark 2 (running)")


def test_line_says_what_is_not_known_yet() -> None:
    """Before the first worker has come, and without Spark."""
    assert line(View(10)) == "put 0 of 10, handed over 0 (0/s), 0 shards held by nobody, lag unknown"


def shown_by(view: View, *, terminal: bool, looks: int) -> str:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=120, color_system=None)
    with screen(console, PromptClock()) as shown:
        assert isinstance(shown, Terminal if terminal else Plain)
        shown.say("something happens")
        for _ in range(looks):
            shown.show(view)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_terminal_shows_shards_owners_rates_lags_and_spark(view: View) -> None:
    """Each shard on a line of its own."""
    text = shown_by(view, terminal=True, looks=1)
    rows = [row.split() for row in text.splitlines()]
    assert "0 s  something happens" in text
    assert any(row[:6] == ["1", "owned", "worker-1", "6", "1.5", "s"] for row in rows)
    assert any(row[:2] == ["0", "ended"] for row in rows)
    assert "12.0 min" in text


def test_plain_lines_come_seldom(view: View) -> None:
    """A log of a build is no place for a line each second."""
    assert shown_by(view, terminal=False, looks=5).splitlines() == [
        "  0 s  something happens",
        f"  0 s  {line(view)}",
    ]


def test_carriers_come_by_size_with_bars_by_delay() -> None:
    """The longest bar is the longest mean delay; early departures have none."""
    figures = {"AA": CarrierFigures(1, 1, 10), "UA": CarrierFigures(5, 5, 100), "HA": CarrierFigures(2, 2, -8)}
    console = Console(file=io.StringIO(), width=120, color_system=None)
    console.print(carrier_table(figures))
    assert isinstance(console.file, io.StringIO)
    rows = [row.split() for row in console.file.getvalue().splitlines()[2:]]
    assert [row[:3] for row in rows] == [["UA", "5", "20.0"], ["HA", "2", "-4.0"], ["AA", "1", "10.0"]]
    bars = [row[4] if row[4:] else "" for row in rows]
    assert [len(bar) for bar in bars] == [24, 0, 12]
