"""Text and tables as lines of a terminal. Pure; widths are its columns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from textwrap import wrap

from rich.cells import cell_len
from rich.text import Text

from kcl_py.status import Report

GAP = "  "
"""Between columns, and between the parts of a line."""
INDENT = "  "
"""Before what is said of a row, below it."""
LEAST_WIDTH = 20
"""A screen that is still narrower shows the beginnings of lines."""

Block = list[Text]
"""A row of a table, and below it what is said of it."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    cell: Callable[[Report], str]
    """What it shows of a row."""
    is_number: bool = False


@dataclass(frozen=True, slots=True)
class Said:
    """What is said of a row, in parts that are not broken where they fit on a line."""

    style: str = ""
    parts: tuple[str, ...] = ()


def line(text: str, style: str = "") -> Text:
    """Return one line, cut at the edge of the screen; nothing in it is markup."""
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def flowed(parts: Sequence[str], width: int, most: int | None) -> list[str]:
    """Put parts on lines; one that fits on none is wrapped, to at most ``most`` lines if that is given."""
    lines: list[str] = []
    for part in parts:
        if lines and cell_len(lines[-1] + GAP + part) <= width:
            lines[-1] += GAP + part
        else:
            room = max(width, LEAST_WIDTH)
            lines += wrap(part, room, max_lines=most, placeholder=" …", break_on_hyphens=False)
    return lines


def width_of(column: Column, rows: Sequence[Report]) -> int:
    """Return how many columns of the terminal a column takes."""
    return max(cell_len(text) for text in (column.name, *map(column.cell, rows)))


def table(
    columns: Sequence[Column], rows: Sequence[Report], said: Callable[[Report], Said], width: int, most: int | None
) -> list[Block]:
    """Return a block for the head of a table, and one for each row."""
    widths = [width_of(column, rows) for column in columns]
    blocks = [[line(_joined([column.name for column in columns], columns, widths), "dim")]]
    for row in rows:
        what = said(row)
        texts = [_joined([column.cell(row) for column in columns], columns, widths)]
        texts += [INDENT + text for text in flowed(what.parts, width - len(INDENT), most)]
        blocks.append([line(text, what.style) for text in texts])
    return blocks


def _joined(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int]) -> str:
    padded = []
    for cell, column, width in zip(cells, columns, widths, strict=True):
        space = " " * (width - cell_len(cell))
        padded.append(space + cell if column.is_number else cell + space)
    return GAP.join(padded).rstrip()


def fitting(blocks: Sequence[Block], room: int | None) -> int:
    """Return how many blocks fit, the first two at any rate; one line is kept to say what is not shown."""
    if room is None or sum(map(len, blocks)) <= room:
        return len(blocks)
    ends = accumulate(map(len, blocks))
    return max(sum(end < room for end in ends), 2)
