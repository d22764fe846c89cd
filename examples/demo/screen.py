"""What people see: a live table on a terminal, plain lines elsewhere. Shows, and decides nothing."""

from collections.abc import Mapping
from types import TracebackType
from typing import Protocol, Self

from rich.bar import Bar
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from actors.clock import Clock
from examples.demo.carriers import CarrierFigures
from examples.demo.view import View, worker_of

PLAIN_EVERY = 5
"""Off a terminal one line stands for so many looks."""
BAR_WIDTH = 24


class Screen(Protocol):
    """Where the demo shows itself."""

    def say(self, text: str) -> None:
        """Tell of an event."""
        ...

    def show(self, view: View) -> None:
        """Show how things stand."""
        ...


class Terminal:
    """Redraws in place."""

    def __init__(self, console: Console, clock: Clock) -> None:
        self._diary = Diary(console, clock)
        self._live = Live(console=console, auto_refresh=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._live.stop()

    def say(self, text: str) -> None:
        self._diary.write(text)

    def show(self, view: View) -> None:
        tables = [table for table in (shard_table(view), live_carriers(view)) if table.row_count]
        self._live.update(Group(progress(view), Columns(tables, padding=(0, 4))), refresh=True)


class Plain:
    """Writes lines."""

    def __init__(self, console: Console, clock: Clock) -> None:
        self._diary = Diary(console, clock)
        self._looks = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Nothing is open."""

    def say(self, text: str) -> None:
        self._diary.write(text)

    def show(self, view: View) -> None:
        self._looks += 1
        if self._looks % PLAIN_EVERY == 0:
            self.say(line(view))


class Diary:
    """Lines with the seconds since it was begun."""

    def __init__(self, console: Console, clock: Clock) -> None:
        self._console, self._clock, self._begun_at = console, clock, clock.monotonic()

    def write(self, text: str) -> None:
        self._console.print(
            f"{self._clock.monotonic() - self._begun_at:3.0f} s  {text}", highlight=False, soft_wrap=True
        )


def screen(console: Console, clock: Clock) -> Terminal | Plain:
    """Return what fits the place that ``console`` writes to; it shows while its block is open."""
    return Terminal(console, clock) if console.is_terminal else Plain(console, clock)


def line(view: View) -> str:
    """Return how things stand, on one line."""
    spark = f", spark {view.stored:,} ({view.spark})" if view.spark else ""
    shards = sum(shard["state"] != "ended" for shard in view.shards)
    owners = ", ".join(sorted(view.owners)) or "nobody"
    return (
        f"put {view.put:,} of {view.total:,}, handed over {len(view.seen):,} ({sum(view.rates.values()):,.0f}/s), "
        f"{shards} shards held by {owners}, lag {_seconds(view.lag_s)}{spark}"
    )


def progress(view: View) -> RenderableType:
    """Draw how many flights are put, handed over and stored."""
    counts = {"put": view.put, "handed over": len(view.seen)} | ({"in Spark": view.stored} if view.spark else {})
    grid = Table.grid(padding=(0, 2))
    for name, count in counts.items():
        grid.add_row(name, ProgressBar(view.total, count, width=2 * BAR_WIDTH), f"{count:,}")
    return grid


def shard_table(view: View) -> Table:
    """Draw the shards."""
    table = _table("shard", "state", "owner", "records/s", "lag", title="shards")
    for shard in view.shards:
        ended = shard["state"] == "ended"
        table.add_row(
            str(int(shard["shard"].rpartition("-")[2])),
            shard["state"],
            worker_of(shard["owner"]) if shard["owner"] else "",
            f"{view.rates.get(shard['shard'], 0):,.0f}",
            "" if ended or shard["lag_ms"] is None else _seconds(shard["lag_ms"] / 1000),
        )
    return table


def live_carriers(view: View) -> Table:
    """Draw Spark's figures as they grow."""
    table = _table("carrier", "flights", "mean delay", title=f"Spark: {view.spark}")
    for carrier, figures in sorted(view.carriers.items()):
        table.add_row(carrier, f"{figures.flights:,}", _minutes(figures))
    return table


def carrier_table(carriers: Mapping[str, CarrierFigures]) -> Table:
    """Draw the final figures: the carriers with most flights first, and a bar for each one's mean delay."""
    table = _table("carrier", "flights", "mean delay", "", title="departures from New York")
    longest = max((figures.mean_delay_min or 0 for figures in carriers.values()), default=0) or 1
    for carrier, figures in sorted(carriers.items(), key=lambda item: -item[1].flights):
        bar = Bar(longest, 0, max(figures.mean_delay_min or 0, 0), width=BAR_WIDTH)
        table.add_row(carrier, f"{figures.flights:,}", _minutes(figures), bar)
    return table


def _table(*columns: str, title: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in ("flights", "mean delay", "records/s", "lag") else "left")
    return table


def _minutes(figures: CarrierFigures) -> str:
    return "" if figures.mean_delay_min is None else f"{figures.mean_delay_min:.1f} min"


def _seconds(seconds: float | None) -> str:
    return "unknown" if seconds is None else f"{seconds:.1f} s"
