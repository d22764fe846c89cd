"""What a bench has timed, beside what is promised and what the Java client takes; shown as one table."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Figure:
    """One kind of duration, in seconds."""

    name: str
    times_s: Sequence[float]
    target_s: float | None = None
    """What is promised; None where nothing is."""
    java: str = "-"
    """The Java client's: measured, or in brackets what follows from its defaults."""
    twice: int | None = None
    """Records that were delivered again, in all runs."""


def show(title: str, figures: Iterable[Figure]) -> None:
    """Print them."""
    table = Table(title=title, caption="Java client: measured, or (what follows from its defaults)")
    for column in ("seconds", "times", "median", "worst", "target", "twice", "Java client"):
        table.add_column(column, justify="left" if column == "seconds" else "right")
    for figure in figures:
        target, twice = ("-" if number is None else f"{number:g}" for number in (figure.target_s, figure.twice))
        median, worst = statistics.median(figure.times_s), max(figure.times_s)
        table.add_row(
            figure.name, str(len(figure.times_s)), f"{median:.2f}", f"{worst:.2f}", target, twice, figure.java
        )
    Console().print(table)
