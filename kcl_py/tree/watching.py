"""Which rows of the lease table one worker reads singly, besides looking at the whole table. Instants are monotonic."""

from collections.abc import Iterable, Mapping

from kcl_py.leases.row import LeaseRow
from kcl_py.leases.view import Turnover, View
from kcl_py.tree.capacities import Capacities
from kcl_py.tree.holding import Holding
from kcl_py.tree.messages import Hint, Reread, Scanned
from kcl_py.tree.reads import REREADS, Reads
from kcl_py.tree.worker import Worker


class Watching:
    """Takes in what was read of the lease table, and says what else is to be read.

    While the whole table is looked at as often as the protocol says, that is rows that stand still for half of F. While
    it is not, it is what the workers' own rows say has changed, and what silent workers hold.
    """

    def __init__(self, worker: Worker, reads: Reads, view: View) -> None:
        self._worker, self._reads, self._view = worker, reads, view
        self._capacities = Capacities(worker, reads.paces["scan"], reads.paces["members"])
        self._changed: dict[str, float] = {}
        """What is to be read, and since when."""
        self._malformed: tuple[str, ...] = ()
        """What was wrong with items at the last look."""

    @property
    def _is_wide(self) -> bool:
        return self._worker.store.has_workers and self._reads.paces["scan"].is_stretched

    def note_scan(self, scanned: Scanned, held: Mapping[str, Holding]) -> dict[str, LeaseRow]:
        """Take in the whole table; return its rows in the order of their keys."""
        self._say_what_is_malformed(scanned.scan.malformed)
        rows = {row.key: row for row in sorted(scanned.scan.rows, key=lambda row: row.key)}
        changed = self._view.note_scan(rows, begun_at=scanned.begun_at, ended_at=scanned.ended_at)
        self._forget(list(self._changed), scanned.begun_at)
        for key in held:
            if key in changed or (key in rows and rows[key].in_handoff):
                _hint(rows[key], held)
        self._capacities.note(rows.values(), workers=1 + len(self._view.others()))
        return rows

    def note_reread(self, reread: Reread, held: Mapping[str, Holding]) -> None:
        """Take in single rows; those that others have made for the children of these are read next."""
        if self._view.rows is None:
            return
        rows = [row for row in reread.rows.values() if row is not None]
        for row in rows:
            self._view.note_row(row, begun_at=reread.begun_at, ended_at=reread.ended_at)
        self._forget(reread.rows, reread.begun_at)
        if len(rows) < len(reread.rows):
            self._reads.hurry()  # somebody has deleted what this worker thought was there
        if self._is_wide:
            for row in rows:
                _hint(row, held)
            known = self._view.rows
            self._note_changed((child for row in rows for child in row.children if child not in known), reread.ended_at)

    def due(self, turnover: Turnover, now: float) -> list[str]:
        """Take in what a look at the worker table showed, and name the rows to read now."""
        if not self._is_wide:
            return []
        if turnover.changed is None:
            self._reads.hurry()
        else:
            self._note_changed(turnover.changed, now)
        keys = [*self._changed, *(key for key in self._view.silent_rows(now) if key not in self._changed)]
        if self._reads.is_short:
            return keys[:REREADS] if keys and self._reads.is_due("rows") else []
        return keys

    def rereads(self, now: float) -> list[tuple[str, float]]:
        """Say which rows are to be read again, and how long from now; of a large table none, but soon all."""
        if not self._is_wide:
            return self._reads.rereads(self._view.to_reread(now), now)
        if len(self.overdue(now)) < len(self._view.overdue_rows(now - self._worker.config.leases.tick_s)):
            self._reads.hurry()
        return []

    def overdue(self, now: float) -> set[str]:
        """Name the rows that those to whom they fall have left on offer for a tick.

        Between two looks at a large table they are to be read again first: as a large fleet starts, most of what this
        worker has seen to be free is taken by then, and each try would be a write in vain.
        """
        tick_s = self._worker.config.leases.tick_s
        return self._view.overdue_rows(now - tick_s, apart_s=tick_s if self._is_wide else 0.0)

    def _say_what_is_malformed(self, sentences: tuple[str, ...]) -> None:
        """Name items that are no leases, once each, and again if they were mended between."""
        for sentence in sorted(set(sentences).difference(self._malformed)):
            self._worker.log.warning("kcl_py.table.malformed_row", error=sentence)
        self._malformed = sentences

    def _note_changed(self, keys: Iterable[str], now: float) -> None:
        self._changed.update(dict.fromkeys(sorted(keys), now))

    def _forget(self, keys: Iterable[str], begun_at: float) -> None:
        """These rows were read by a request that was sent then."""
        for key in keys:
            if self._changed.get(key, float("inf")) <= begun_at:
                del self._changed[key]


def _hint(row: LeaseRow, held: Mapping[str, Holding]) -> None:
    holding = held.get(row.key)
    if holding is not None and holding.lease is not None:
        holding.lease.tell(Hint(row))
