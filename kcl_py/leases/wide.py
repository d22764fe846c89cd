"""Watch a large lease table without reading it all the time. Pure; instants are monotonic seconds.

Between two looks at the whole table only such rows are read as something speaks for: those that a worker's own row says
have changed, and those of workers whose row stands still. In words: docs/leases.md, "Large tables".
"""

from collections.abc import Iterable, Mapping

from kcl_py.leases.row import WorkerRow

LARGE = 2_000
"""Rows up to which the whole table is read each H."""
ROWS_A_SECOND = 300.0
"""Of a larger one each worker reads so many: some 26 units a second, and 10,000 rows in 33 s."""


def period_s(rows: int) -> float:
    """Return how often to read a whole table of so many rows; 0 for as often as the protocol says."""
    return rows / ROWS_A_SECOND if rows > LARGE else 0.0


class Silences:
    """Since when which workers' rows stand still for longer than they should.

    Args:
        quiet_s: how long a live worker's row may look the same: a heartbeat, and the time until it is seen.
    """

    def __init__(self, quiet_s: float) -> None:
        self._quiet_s = quiet_s
        self._beats: dict[str, tuple[int, float]] = {}
        self._since_at: dict[str, float] = {}

    def note(self, rows: Iterable[WorkerRow], *, begun_at: float, ended_at: float) -> None:
        """Take in the worker table; who is not in it any more is silent too."""
        before, self._beats = self._beats, {}
        for row in rows:
            beat, seen_at = before.get(row.worker, (None, ended_at))
            self._beats[row.worker] = row.beat, seen_at if beat == row.beat else ended_at
            if begun_at <= self._beats[row.worker][1] + self._quiet_s:
                self._since_at.pop(row.worker, None)
            else:
                self._since_at.setdefault(row.worker, ended_at)
        for worker in before.keys() - self._beats.keys():
            self._since_at.setdefault(worker, ended_at)

    def since_at(self, worker: str) -> float | None:
        """Return since when ``worker`` is silent, or None if it is not; one that was never there always was."""
        return self._since_at.get(worker, None if worker in self._beats else float("-inf"))

    def keep(self, workers: Iterable[str]) -> None:
        """Forget those that are not in the table and that no row names either."""
        named = {*workers, *self._beats}
        self._since_at = {worker: at for worker, at in self._since_at.items() if worker in named}


def changed(before: Mapping[str, WorkerRow], rows: Iterable[WorkerRow], me: str) -> frozenset[str] | None:
    """Name the rows that the others' news are about; None if they have told of more than they can name."""
    found: set[str] = set()
    for row in rows:
        known = before[row.worker].news if row.worker in before else 0
        if row.worker == me or row.news == known:
            continue
        if not known < row.news <= known + len(row.changed):
            return None
        found.update(row.changed[-(row.news - known) :])
    return frozenset(found) - {""}
