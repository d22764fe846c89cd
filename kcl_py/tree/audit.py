"""What one worker knows of the shards of the stream, and when it lists them again.

Pure: fed with listings, never makes one. Each worker lists when it starts, and when rows and shards do not fit
together; without such a reason one of them does, for all, and the others far less often. Instants are monotonic
seconds.
"""

from collections.abc import Mapping

from kcl_py.config import Leases
from kcl_py.delivery.retry import backoff_s
from kcl_py.leases.lineage import NewLease, discover, has_hole, unjudged, unknown_children, unread
from kcl_py.leases.row import LeaseRow
from kcl_py.sources.source import Position
from kcl_py.tree.messages import Listed

LONGEST_S = 60.0
"""How often the shards are listed when nothing calls for it. Source: the Java client's shardSyncIntervalMillis."""
_FAILOVERS = 6
"""The same in failover times, where that is less."""
OTHERS_LIST = 60
"""So many times that pass between two listings without a reason of who does not list for all: in case that one cannot,
and to forget shards that are no more."""
_SETTLING_FAILOVERS = 3
"""So long after its end a row may be deleted: one of them for each of the age of who decided to make it, the time in
which he does, and the time that his request takes."""


class Audit:
    """The last listing, what follows from it, and when the next one is due.

    Args:
        leases: how workers share.
        start: where reading begins.
    """

    def __init__(self, leases: Leases, start: Position) -> None:
        self._leases, self._start = leases, start
        self._period_s = min(LONGEST_S, _FAILOVERS * leases.failover_s)
        self._listed: Listed | None = None
        self._unread: frozenset[str] | None = None
        self._known: frozenset[str] = frozenset()
        self._due_at = self._began_at = float("-inf")
        self._has_reason, self._in_vain = False, 0
        """Whether the last listing had a reason; and how many such in a row have found nothing to make."""

    @property
    def is_ready(self) -> bool:
        """Whether a listing has told which shards are still to be read."""
        return self._unread is not None

    @property
    def said(self) -> tuple[frozenset[str] | None, frozenset[str]]:
        """The shards without a row that are still to be read, and the rows that were known when that was found."""
        return self._unread, self._known

    @property
    def listed(self) -> Listed | None:
        """The listing whose rows are not made yet."""
        return self._listed

    def is_due(self, now: float, *, is_mine: bool) -> bool:
        """Whether to list; ``is_mine`` is True for the worker that lists for all."""
        return now >= min(self._due_at, self._began_at + self._period_s * (1 if is_mine else OTHERS_LIST))

    def begin(self, now: float) -> None:
        """Note that a listing begins."""
        self._has_reason = now >= self._due_at > float("-inf")
        self._began_at, self._due_at = now, float("inf")

    def soon(self) -> None:
        """Have the shards listed again, a heartbeat after the last listing at the earliest."""
        self._due_at = min(self._due_at, self._began_at + self._leases.heartbeat_s)

    def note_failure(self) -> None:
        """Have a listing that failed made again: a heartbeat after it began, and twice as long each time."""
        self._due_at = min(self._due_at, self._began_at + self._patience_s)
        self._in_vain += 1

    def note(self, listed: Listed) -> None:
        """Take in a listing; one whose rows are not made yet says where reading begins, and stays."""
        self._listed = self._listed or listed

    def wanted(self, listed: Listed, rows: Mapping[str, LeaseRow]) -> tuple[NewLease, ...]:
        """Work out which rows are to be made by a listing, and what else it says is still to be read."""
        self._unread, self._known = unread(listed.listing, rows, self._start), listed.known
        return discover(listed.listing, rows, self._start)

    def end(self, *, is_complete: bool) -> None:
        """Take leave of a listing: every row that it calls for is there, if it is complete, or may not be made yet."""
        self._listed = None
        self._in_vain = self._in_vain + 1 if is_complete and self._has_reason else 0

    def note_rows(self, rows: Mapping[str, LeaseRow]) -> None:
        """Take in the lease table: what has a row now is no longer to be made, and is missed if that vanishes."""
        made = (self._unread or frozenset()) & rows.keys()
        if self._unread is not None and made:
            self._unread, self._known = self._unread - made, self._known | made

    def missing(self, rows: Mapping[str, LeaseRow]) -> frozenset[str]:
        """Find the shards without a row that hold back their children."""
        return (self._unread or frozenset()) | unjudged(rows, self._known)

    @property
    def _patience_s(self) -> float:
        """How long to wait from one listing to the next, for which there is a reason."""
        return backoff_s(self._in_vain + 1, self._leases.heartbeat_s, self._period_s)

    def is_doubtful(self, rows: Mapping[str, LeaseRow], now: float) -> bool:
        """Whether rows and shards do not fit together, as far as rows alone can tell, and another listing may help.

        It is asked for a heartbeat after the last one, and while that is in vain after twice as long each time.
        """
        if now < self._began_at + self._patience_s:
            return False
        return unknown_children(rows) or has_hole(rows.values()) or bool(unjudged(rows, self._known))

    def settled_before(self, listed: Listed, now: float) -> float:
        """Return before when rows must have ended to be deleted: a listing has found nothing missing since then."""
        return min(listed.begun_at, now - _SETTLING_FAILOVERS * self._leases.failover_s)
