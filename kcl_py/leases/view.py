"""What one worker knows of the fleet: who lives, what the lease rows say, and which of them may be taken.

Pure: fed with what was read and when, in monotonic seconds; never reads or writes by itself.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from kcl_py.leases.assignment import rendezvous
from kcl_py.leases.lineage import NewLease, blocking_parents
from kcl_py.leases.row import LeaseRow, WorkerRow
from kcl_py.leases.sightings import Sightings
from kcl_py.leases.wide import Silences, changed

_AUDIT = "audit"
"""What the workers draw lots for, to list the shards."""
REMEMBERED_S = 3600
"""For how long the row of a dead worker is left in the table, for whoever wonders where it went."""

QUIET = 1 / 3 + 2 / 10
"""Part of F for which a live worker's row may look the same: a heartbeat period, and two ticks to write and see it."""


class How(StrEnum):
    """How a row is to be taken; the values are the ``why`` of ``kcl_py.lease.taken``."""

    FREE = "free"
    EXPIRED = "expired"
    OWN = "own"
    """It names this very worker, and no Lease of it runs."""
    HANDOFF = "handoff"
    """Pulled from its holder, who goes on until it has drained."""
    AWAIT = "await"
    """A pull of this worker is already in the row."""


@dataclass(frozen=True, slots=True)
class Turnover:
    """What a look at the worker table showed."""

    gone: tuple[str, ...]
    """Workers that are dead or have left."""
    has_news: bool
    """Whether the lease table should be looked at."""
    dead: tuple[WorkerRow, ...] = ()
    """Rows that no longer move."""
    changed: frozenset[str] | None = frozenset()
    """Rows that others say have changed; None if there are more than they can name."""

    def forgotten(self, now_s: int) -> list[str]:
        """Name the dead whose rows have been there long enough for people to see them; ``now_s`` is Unix time."""
        return [row.worker for row in self.dead if now_s - row.updated_s > REMEMBERED_S]


@dataclass(frozen=True, slots=True)
class Offer:
    """A row that may be taken."""

    how: How
    since_at: float
    """When that was first seen."""


class View:
    """The fleet and its rows, as last read.

    Args:
        me: this worker, as in ``leaseOwner``.
        failover_s: how long a row or worker may stand still.
        exclusive_id: whether rows of an earlier run under the same worker id are mine at once.
    """

    def __init__(self, me: str, *, failover_s: float, exclusive_id: bool) -> None:
        self._me, self._failover_s, self._exclusive_id = me, failover_s, exclusive_id
        self._beats, self._counters = Sightings(failover_s), Sightings(failover_s)
        self._missing = Sightings(failover_s)
        self._silences = Silences(failover_s * QUIET)
        self._read_at: dict[str, float] = {}
        self._ever_seen: dict[str, None] = {}
        self._scanned_at = self._looked_at = float("inf")
        """When the lease table was first read, of the reads that follow each other; and when last."""
        self._draining_since: dict[str, float] = {}
        self.members: dict[str, WorkerRow] | None = None
        self.rows: dict[str, LeaseRow] | None = None
        self.offers: dict[str, Offer] = {}
        self.born: set[str] = set()
        """Children of shards that this worker has just read to their end."""
        self.blocked: dict[str, tuple[str, ...]] = {}
        """Shards that wait, and for which parents."""
        self.scans = 0
        """How often the lease table was read."""
        self.changes = 0
        """Raised with all that bears on who gets which shard, but for throughput."""

    def note_members(self, rows: tuple[WorkerRow, ...], *, begun_at: float, ended_at: float) -> Turnover:
        """Take in the worker table; a row counts as alive from first sight until it has stood still for F."""
        before = self.members or {}
        self.members = {
            row.worker: row
            for row in sorted(rows, key=lambda row: row.worker)
            if not self._beats.has_expired(row.worker, row.beat, begun_at=begun_at, ended_at=ended_at)
            or row.worker == self._me
        }
        self._beats.keep(row.worker for row in rows)
        self._draining_since = {
            worker: self._draining_since.get(worker, ended_at)
            for worker, row in self.members.items()
            if row.state == "draining"
        }
        if self._draining_since or _standing(before) != _standing(self.members):
            self.changes += 1  # who gets a leaver's rows depends on all beats
        gone = tuple(worker for worker in before if worker not in self.members)
        has_news = bool(gone) or any(
            worker not in before or before[worker].news != row.news
            for worker, row in self.members.items()
            if worker != self._me
        )
        self._silences.note(rows, begun_at=begun_at, ended_at=ended_at)
        dead = tuple(row for row in rows if row.worker not in self.members)
        return Turnover(gone, has_news, dead, changed(before, self.members.values(), self._me))

    def note_scan(self, rows: Mapping[str, LeaseRow], *, begun_at: float, ended_at: float) -> set[str]:
        """Take in the lease table; return the rows that are more than renewed.

        What is missing now and was missing before was not missing between, if nobody looked for long.
        """
        if not self._is_looking(begun_at):
            self._scanned_at, self._missing = ended_at, Sightings(self._failover_s)
        self._looked_at, self.scans = ended_at, self.scans + 1
        self._ever_seen.update(dict.fromkeys(rows))
        for key in self._ever_seen:
            counter = rows[key].counter if key in rows else None
            self._missing.has_expired(key, counter, begun_at=begun_at, ended_at=ended_at)
        before = self.rows or {}
        self.rows = {key: row for key, row in before.items() if key in rows}
        self.changes += len(before) - len(self.rows)
        self.offers = {key: offer for key, offer in self.offers.items() if key in rows}
        self._counters.keep(rows)
        self._silences.keep(row.holder for row in rows.values() if row.holder is not None)
        self._read_at.clear()
        changed = {row.key for row in rows.values() if self.note_row(row, begun_at=begun_at, ended_at=ended_at)}
        self.born &= self.offers.keys()
        return changed

    def _is_looking(self, now: float) -> bool:
        """Whether the lease table was read a short while ago."""
        return self._looked_at <= now <= self._looked_at + self._failover_s / 2

    def note_row(self, row: LeaseRow, *, begun_at: float, ended_at: float) -> bool:
        """Take in one row that was read, or that an acknowledged write returned; True if it is more than renewed."""
        assert self.rows is not None
        self._ever_seen[row.key] = None
        before, offer = self.rows.get(row.key), self.offers.get(row.key)
        self.rows[row.key] = row
        self._read_at[row.key] = ended_at
        how = self._how(row, begun_at, ended_at)
        if how is None:
            self.offers.pop(row.key, None)
        elif offer is None or offer.how is not how:
            self.offers[row.key] = Offer(how, ended_at)
        has_changed = before is None or _lasting(before) != _lasting(row)
        if has_changed or offer != self.offers.get(row.key):
            self.changes += 1
        return has_changed

    def _how(self, row: LeaseRow, begun_at: float, ended_at: float) -> How | None:
        if row.has_ended:
            self._counters.has_expired(row.key, row.counter, begun_at=begun_at, ended_at=ended_at)
            return None
        if row.holder == self._me or self._is_own_earlier(row):
            return How.OWN
        if row.owner == self._me:
            return How.AWAIT
        if row.holder is None:
            return How.FREE
        if self._counters.has_expired(row.key, row.counter, begun_at=begun_at, ended_at=ended_at):
            return How.EXPIRED
        return None

    def _is_own_earlier(self, row: LeaseRow) -> bool:
        mine = self._me.rpartition("/")[0]
        return self._exclusive_id and row.holder is not None and row.holder.rpartition("/")[0] == mine

    def to_reread(self, now: float) -> list[tuple[str, float]]:
        """Name the held rows that have stood still for half of F, and from when on a read finds them expired."""
        due = []
        for key, row in (self.rows or {}).items():
            expires_at = self._counters.expires_at(key)
            if expires_at is None or row.has_ended or key in self.offers:
                continue
            if now > expires_at - self._failover_s / 2:
                due.append((key, expires_at))
        return due

    def silent_rows(self, now: float) -> list[str]:
        """Name the rows of silent workers that are to be read: once since they are silent, and then to see them expire.

        So a dead worker's rows expire F after its silence was noticed, however long ago the whole table was read.
        """
        due = []
        for key, row in (self.rows or {}).items():
            if row.holder is None or row.has_ended or row.holder == self._me or key in self.offers:
                continue
            since_at, expires_at = self._silences.since_at(row.holder), self._counters.expires_at(key)
            if since_at is None or expires_at is None:
                continue
            if self._read_at[key] < since_at or now > expires_at:
                due.append(key)
        return due

    def seen_at(self, row: LeaseRow) -> float | None:
        """When the row was first seen with the counter that it has; None if that is not known."""
        return self._counters.seen_at(row.key, row.counter)

    def others(self) -> list[WorkerRow]:
        """The other live workers; where there is no worker table, whoever holds a row that still moves."""
        if self.members is not None:
            return [row for worker, row in self.members.items() if worker != self._me]
        rows = (self.rows or {}).values()
        owners = Counter(row.owner for row in rows if row.owner not in (None, self._me) and row.key not in self.offers)
        return [
            WorkerRow(str(owner), state="active", held=held, strategy="throughput")  # says nothing against it
            for owner, held in sorted(owners.items(), key=str)
        ]

    def leaves(self, worker: str | None) -> bool:
        """Whether a worker is draining."""
        return worker in self._draining_since

    def has_taker(self) -> bool:
        """Whether another worker may pull what this one lets go of."""
        return any(
            row.state != "draining" and (row.max_leases is None or row.held < row.max_leases) for row in self.others()
        )

    def on_offer(self) -> set[str]:
        """Name the rows that are free or expired."""
        return {key for key, offer in self.offers.items() if offer.how in (How.FREE, How.EXPIRED)}

    def overdue_rows(self, before: float, *, apart_s: float = 0.0) -> set[str]:
        """Name the rows that have been on offer since an instant ``before`` that one, by two reads so far apart."""
        overdue = {key: offer.since_at for key, offer in self.offers.items() if offer.since_at <= before}
        return {key for key, since_at in overdue.items() if self._read_at[key] >= since_at + apart_s}

    def overdue_workers(self, before: float) -> set[str]:
        """Name the workers that have been draining since before then."""
        return {worker for worker, since_at in self._draining_since.items() if since_at <= before}

    def may_make(self, key: str, now: float) -> bool:
        """Whether a row that is not there may be made: at once if there never was one, else after F of missing it.

        Who has just joined others cannot know whether it was deleted under its holder, and so waits as long; not when
        there are no rows and nobody says that he holds any, as when a fleet first starts.
        """
        if not self._is_looking(now):
            return False
        if key not in self._ever_seen:
            can_be_held = any(self.rows or other.held for other in self.others())
            return not can_be_held or now > self._scanned_at + self._failover_s
        expires_at = self._missing.expires_at(key)
        return key not in (self.rows or {}) and expires_at is not None and now > expires_at

    def is_auditor(self) -> bool:
        """Whether this worker lists the shards for all, and deletes rows: the winner of a hash among those who stay."""
        staying = [row.worker for row in self.others() if row.state != "draining"]
        return all(rendezvous(self._me, _AUDIT) > rendezvous(worker, _AUDIT) for worker in staying)

    def waits_for_no_row(self) -> bool:
        """Whether a shard waits for a parent without a row: only another listing can end that."""
        rows = self.rows or {}
        return any(parent not in rows for parents in self.blocked.values() for parent in parents)

    def ended_before(self, instant: float) -> frozenset[str]:
        """Name the rows that had reached their end when they were seen, before ``instant``."""
        seen = {key: self.seen_at(row) for key, row in (self.rows or {}).items() if row.has_ended}
        return frozenset(key for key, at in seen.items() if at is not None and at < instant)

    def keep(self, listed: Collection[str]) -> None:
        """Forget shards that are no longer listed and have no row: none will be made."""
        self._ever_seen = {key: None for key in self._ever_seen if key in listed or key in (self.rows or {})}
        self._missing.keep(self._ever_seen)

    def first_row(self, new: NewLease, *, stream: str, now_s: int) -> LeaseRow:
        """Make the first row of a shard; one made anew counts on from the Unix second, so epochs keep rising."""
        counter = now_s if new.shard.shard_id in self._ever_seen else 0
        witness = self.paused_row
        return new.row(stream=stream, counter=counter, paused=None if witness is None else witness.stream_pause)

    @property
    def paused_row(self) -> LeaseRow | None:
        """A row that tells that the whole stream is paused."""
        return next((row for row in (self.rows or {}).values() if row.stream_pause and not row.has_ended), None)

    def note_blocked(self, unread: frozenset[str]) -> list[tuple[str, tuple[str, ...]]]:
        """Work out which shards wait for a parent; return those that were not waiting before, with their parents."""
        assert self.rows is not None
        before, rows = self.blocked, self.rows
        waiting = {key: blocking_parents(row, rows, unread) for key, row in rows.items() if row.parents}
        self.blocked = {key: parents for key, parents in waiting.items() if parents}
        return [(key, parents) for key, parents in self.blocked.items() if key not in before]


def _lasting(row: LeaseRow) -> tuple[object, ...]:
    """What a heartbeat leaves as it is."""
    return row.owner, row.checkpoint_owner, row.native.token, row.has_ended, row.children


def _standing(members: Mapping[str, WorkerRow]) -> list[tuple[object, ...]]:
    return [(row.worker, row.state, row.max_leases, row.strategy) for row in members.values()]
