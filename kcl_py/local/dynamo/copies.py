"""Rows that follow a table's after a while: its indexes, and the replica that stale reads see.

Times are Unix seconds.
"""

from collections import deque
from collections.abc import Callable, Iterable

from kcl_py.local.dynamo.keys import Place
from kcl_py.local.dynamo.rows import Row, Rows
from kcl_py.local.dynamo.values import Item


class Copy:
    """Follows in the order of the writes.

    Args:
        place: where an item of the table belongs here; None: it has no place.
        keep: what is kept of it.
        lag_s: how long after a write it is seen here.
    """

    def __init__(
        self, place: Callable[[Item], Place | None], keep: Callable[[Row], Row], lag_s: Callable[[], float]
    ) -> None:
        self._place, self._keep, self._lag_s = place, keep, lag_s
        self._rows = Rows()
        self._due: deque[tuple[float, Place, Row | None]] = deque()

    def fill(self, rows: Iterable[Row]) -> None:
        """Take all rows of a table at once, without lag; there are none here yet."""
        self._rows.restore({place: kept for row in rows for place, kept in self._seen(row).items()})

    def follow(self, old: Row | None, new: Row | None, now_s: float) -> list[tuple[int, int]]:
        """Take over a write; returns the sizes, old and new, of each row that it changes here."""
        before, after = self._seen(old), self._seen(new)
        changed = [place for place in {**before, **after} if before.get(place) != after.get(place)]
        due_s = max(now_s + self._lag_s(), self._due[-1][0] if self._due else now_s) if changed else now_s
        for place in changed:
            if due_s <= now_s:
                self._rows.put(place, after.get(place))
            else:
                self._due.append((due_s, place, after.get(place)))
        return [(_size(before.get(place)), _size(after.get(place))) for place in changed]

    def at(self, now_s: float) -> Rows:
        """Return the rows as they are seen at this time."""
        while self._due and self._due[0][0] <= now_s:
            _, place, row = self._due.popleft()
            self._rows.put(place, row)
        return self._rows

    def _seen(self, row: Row | None) -> dict[Place, Row]:
        """Return where the row is seen here and as what, if it is."""
        place = None if row is None else self._place(row.item)
        return {} if row is None or place is None else {place: self._keep(row)}


def _size(row: Row | None) -> int:
    return 0 if row is None else row.size
