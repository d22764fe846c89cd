"""The items of a table, or of an index, in the order in which they are scanned. Sizes are bytes."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from typing import NamedTuple

from kcl_py.local.dynamo.keys import POSITIONS, Place
from kcl_py.local.dynamo.values import Item


class Row(NamedTuple):
    """An item and its size."""

    item: Item
    size: int


class Rows:
    """Rows by their places."""

    def __init__(self) -> None:
        self._rows: dict[Place, Row] = {}
        self._places: list[Place] = []

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[tuple[Place, Row]]:
        return iter([(place, self._rows[place]) for place in self._places])

    def restore(self, rows: dict[Place, Row]) -> None:
        """Take many rows at once, in place of any."""
        self._rows, self._places = rows, sorted(rows)

    def get(self, place: Place) -> Row | None:
        return self._rows.get(place)

    def put(self, place: Place, row: Row | None) -> None:
        """Store a row, or drop the one that is there."""
        if row is not None:
            if place not in self._rows:
                insort(self._places, place)
            self._rows[place] = row
        elif self._rows.pop(place, None) is not None:
            del self._places[bisect_left(self._places, place)]

    def segment(self, number: int, of: int, *, after: Place | None = None) -> Iterator[tuple[Place, Row]]:
        """Yield one of ``of`` even parts of the ring, from behind ``after`` on."""
        start = bisect_left(self._places, (number * POSITIONS // of,))
        end = bisect_left(self._places, ((number + 1) * POSITIONS // of,))
        if after is not None:
            start = max(start, bisect_right(self._places, after))
        return self._from(range(start, end))

    def partition(
        self, prefix: Place, *, after: Place | None = None, forward: bool = True
    ) -> Iterator[tuple[Place, Row]]:
        """Yield the rows of one partition, in either direction, from behind ``after`` on."""
        width = len(prefix)
        start = bisect_left(self._places, prefix)
        end = bisect_right(self._places, prefix, key=lambda place: place[:width])
        if after is not None and forward:
            start = max(start, bisect_right(self._places, after))
        elif after is not None:
            end = min(end, bisect_left(self._places, after))
        return self._from(range(start, end) if forward else range(end - 1, start - 1, -1))

    def _from(self, numbers: range) -> Iterator[tuple[Place, Row]]:
        return ((self._places[number], self._rows[self._places[number]]) for number in numbers)
