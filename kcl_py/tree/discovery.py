"""Finds the shards that are to be read, makes their rows, and deletes those that are done with.

It asks for what it needs through its Coordinator; the answers come back here. The rules are those of
``leases/lineage.py`` and ``leases/completed.py``. Instants are monotonic seconds.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from kcl_py.leases.completed import deletable
from kcl_py.leases.pausing import still_paused
from kcl_py.leases.row import LeaseRow
from kcl_py.leases.view import View
from kcl_py.sources.source import PositionKind
from kcl_py.tree.audit import Audit
from kcl_py.tree.messages import Listed, Scanned
from kcl_py.tree.reads import Created, Reads
from kcl_py.tree.worker import Worker

Ask = Callable[[str, Callable[[], Awaitable[object]]], None]


class Discovery:
    """The rows of one stream, as one worker sees to them.

    Args:
        worker: what the worker's actors share.
        reads: its requests.
        view: the fleet and its rows.
        ask: carries out a request, one of each kind at a time.
    """

    def __init__(self, worker: Worker, reads: Reads, view: View, ask: Ask) -> None:
        self._worker, self._reads, self._view, self._ask = worker, reads, view, ask
        self._now, self._failover_s = worker.clock.monotonic, worker.config.leases.failover_s
        self.audit = Audit(worker.config.leases, worker.config.start)
        self.is_over = False
        """Whether the worker stops: then it makes and deletes no more rows than it has begun to."""

    def look(self) -> None:
        """List the shards if that is due, and make what rows there are to make."""
        if self.audit.is_due(self._now(), is_mine=self._view.is_auditor() or self._view.waits_for_no_row()):
            self._list()
        self._make_rows()

    def note_listed(self, listed: Listed) -> None:
        """Take in a listing, unless it is older than rows that were known by then."""
        if listed.listing.is_behind(listed.known):
            self.audit.soon()
        else:
            self.audit.note(listed)
            self._make_rows()

    def note_scan(self, scanned: Scanned, rows: Mapping[str, LeaseRow]) -> None:
        """Take in the lease table; where it does not fit what is known of the shards, look closer."""
        self.audit.note_rows(rows)
        if not self.audit.is_ready:
            self._list()
        elif self.audit.is_doubtful(rows, scanned.ended_at):
            if scanned.is_consistent:
                self.audit.soon()
            else:
                self._ask("look again", partial(self._reads.lease_rows, consistent=True))
        self._make_rows()

    def note_created(self, created: Created) -> bool:
        """Take in rows that were made; False if that was all."""
        for row in created.rows:
            if row.counter > 0:
                self._worker.log.warning("kcl_py.lease.recreated", shard_id=row.key)
        if not created.left or self.is_over:
            return False
        self._ask("create", partial(self._reads.create, created.left, created.until_at, created.check))
        return True

    def _list(self) -> None:
        rows = self._view.rows
        if rows is None:
            return  # which shards to list depends on whether there are rows
        self.audit.begin(self._now())
        start = self._worker.config.start
        is_first = start.kind is PositionKind.AT_TIMESTAMP and not rows
        self._ask("list", partial(self._reads.shards, start if is_first else None, frozenset(rows)))

    def _make_rows(self) -> None:
        """Make the rows that discovery says are to be read; the listing is kept until they are made.

        Those that must not be made yet are looked for again soon: until then nothing else may call for a listing.
        """
        listed, rows = self.audit.listed, self._view.rows
        if listed is None or rows is None or self._reads.is_asking("create"):
            return
        now, now_s, stream = self._now(), int(self._worker.clock.time()), self._worker.stream.identity
        wanted = self.audit.wanted(listed, rows)
        found = [new for new in wanted if self._view.may_make(new.shard.shard_id, now)]
        if len(found) < len(wanted):
            self.audit.soon()
            self._reads.hurry()
        check = None if (witness := self._view.paused_row) is None else still_paused(witness)
        missing = tuple(self._view.first_row(new, stream=stream, now_s=now_s) for new in found)
        if missing:
            self._ask("create", partial(self._reads.create, missing, now + self._failover_s, check))
            return
        self.audit.end(is_complete=not wanted)
        self._view.keep({shard.shard_id for shard in listed.listing.shards})
        if not wanted and not self.is_over and self._view.is_auditor():
            self._delete_completed(rows, self._view.ended_before(self.audit.settled_before(listed, now)))

    def _delete_completed(self, rows: Mapping[str, LeaseRow], settled: frozenset[str]) -> None:
        """Delete rows that are done with, if there seem to be any, for all workers."""
        if self._reads.may_delete and deletable(rows, settled):
            self._ask("delete completed", partial(self._reads.delete_completed, settled))
