"""What the Coordinator sends to itself: alarms, and the outcomes of its requests.

Each request reads the clock around itself, so that what it shows can be judged by time.
"""

from collections.abc import Awaitable, Callable, Container, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial

from kcl_py.errors import (
    ConditionFailedError,
    LeaseTableError,
    MissingError,
    RejectedError,
    RequestError,
    ThrottledError,
)
from kcl_py.leases import rules
from kcl_py.leases.assignment import rendezvous
from kcl_py.leases.completed import deletable
from kcl_py.leases.gate import Priority
from kcl_py.leases.pacing import Pace
from kcl_py.leases.row import LeaseRow, WorkerRow
from kcl_py.leases.store import MALFORMED, Write
from kcl_py.leases.together import together
from kcl_py.sources.source import Position, StreamInfo
from kcl_py.tree.messages import Listed, Members, Reread, Scanned
from kcl_py.tree.worker import Worker

REREAD_SLACK_S = 0.02
"""A row that should have expired is read again this much later, so that the read surely began late enough."""
AT_ONCE = 16
"""So many rows are read, or made, at the same time."""
PORTION = 50
"""So many rows are made before it is told which: several round trips, and few enough to heed others."""
REREADS = 10
"""How many rows are read again each tick at most while the table is read less often than usual."""


class Alarm(Enum):
    """What the Coordinator reminds itself of."""

    TICK = auto()
    """Look at the fleet and decide."""
    BEAT = auto()
    """Write the own worker row."""


@dataclass(frozen=True, slots=True)
class Decide:
    """It is time to decide again."""


@dataclass(frozen=True, slots=True)
class RereadDue:
    """The row may have expired by now."""

    key: str


@dataclass(frozen=True, slots=True)
class Announced:
    """The worker's own row was written."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The row of a dead worker was deleted."""


@dataclass(frozen=True, slots=True)
class Described:
    """The stream as it is now."""

    stream: StreamInfo


@dataclass(frozen=True, slots=True)
class Created:
    """These rows were made by this worker."""

    rows: tuple[LeaseRow, ...]
    left: tuple[LeaseRow, ...]
    """Still to be made."""
    until_at: float
    """Until when that may be."""
    check: Write | None = None
    """What must be so meanwhile."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """Rows of shards that are done with were deleted."""


@dataclass(frozen=True, slots=True)
class LetGo:
    """Nothing names this worker any more."""


@dataclass(frozen=True, slots=True)
class RequestFailed:
    """A request failed; the next tick tries again."""

    what: str
    error: RequestError


class Reads:
    """Requests of one worker to the lease store and the source; errors are those of the two."""

    def __init__(self, worker: Worker) -> None:
        self._worker, self._store, self._now = worker, worker.store, worker.clock.monotonic
        self._asked: set[str] = set()
        leases, jitter = worker.config.leases, worker.ids.jitter
        self.paces = {
            "scan": Pace(leases.heartbeat_s, jitter),
            "members": Pace(leases.tick_s, jitter),
            "rows": Pace(leases.tick_s, jitter),
        }
        """How often the two tables are read as a whole, and rows singly."""
        self.may_delete = True
        """Whether AWS lets this worker delete lease rows, as far as is known."""

    def is_due(self, what: str, *, has_news: bool = False) -> bool:
        """Whether a table is to be read now; if so, that counts as its beginning."""
        now, pace = self._now(), self.paces[what]
        is_due = pace.is_due(now, has_news=has_news)
        if is_due:
            pace.begin(now)
        return is_due

    def hurry(self) -> None:
        """Have the whole lease table read soon, however large it is."""
        self.paces["scan"].hurry()

    @property
    def is_short(self) -> bool:
        """Whether the lease table refuses reads, or cannot carry them."""
        return self.paces["scan"].is_short or self.paces["rows"].is_short

    def rereads(self, due: list[tuple[str, float]], now: float) -> list[tuple[str, float]]:
        """Say which rows are to be read again, and how long from now: only a few while the table refuses reads.

        Args:
            due: keys, and when each row would have expired.
            now: the present.
        """
        if self.is_short:
            due = sorted(due, key=lambda one: one[1])[:REREADS] if due and self.is_due("rows") else []
        return [(key, max(expires_at - now, 0) + REREAD_SLACK_S) for key, expires_at in due]

    def is_asking(self, what: str) -> bool:
        """Whether a request of that kind is on its way."""
        return what in self._asked

    def begin(self, what: str) -> bool:
        """Note that a request of that kind is to be carried out; False if one is on its way."""
        if what in self._asked:
            return False
        self._asked.add(what)
        return True

    async def carry_out(self, what: str, work: Callable[[], Awaitable[object]]) -> object:
        """Return what the request returns, or how it failed.

        Raises:
            LeaseTableError: the lease table or the worker table is gone.
        """
        try:
            return await self._paced(what, work)
        except MissingError as error:
            if what in ("list", "describe"):
                return RequestFailed(what, error)
            leases = self._worker.config.leases
            is_of_workers = what in ("members", "announce") or what.startswith("forget ")
            table = f"worker table {leases.workers_table!r}" if is_of_workers else f"lease table {leases.table!r}"
            raise LeaseTableError(
                f"cannot go on without {table}: {error}; "
                "it was deleted while this worker ran, and is never made anew then"
            ) from error
        except RequestError as error:
            return RequestFailed(what, error)
        finally:
            self._asked.discard(what)

    async def _paced(self, what: str, work: Callable[[], Awaitable[object]]) -> object:
        pace = self.paces.get(what.partition(" ")[0])
        if pace is None:
            return await work()
        try:
            outcome = await work()
        except ThrottledError:
            pace.refused()
            raise
        pace.answered()
        return outcome

    async def members(self) -> Members:
        begun_at = self._now()
        rows = await self._store.workers()
        return Members(begun_at, self._now(), rows)

    async def lease_rows(self, *, consistent: bool = False) -> Scanned:
        begun_at = self._now()
        scan = await self._store.scan(consistent=consistent)
        return Scanned(begun_at, self._now(), scan, consistent)

    async def rows(self, keys: Sequence[str]) -> Reread:
        """Read these rows; one that is no lease counts as missing, and keeps nobody from the others."""
        begun_at, rows = self._now(), dict.fromkeys(keys)

        async def read(key: str) -> None:
            try:
                rows[key] = await self._store.read(key)
            except RejectedError as error:
                if error.code != MALFORMED:
                    raise

        await together((partial(read, key) for key in keys), min(len(keys), AT_ONCE))
        return Reread(begun_at, self._now(), rows)

    async def shards(self, at: Position | None, known: frozenset[str]) -> Listed:
        begun_at = self._now()
        return Listed(await self._worker.source.list_shards(at), begun_at, known)

    async def stream(self) -> Described:
        return Described(await self._worker.source.describe())

    async def announce(self, row: WorkerRow) -> Announced:
        await self._store.put_worker(row)
        return Announced()

    async def forget(self, worker: str) -> Forgotten:
        await self._store.delete_worker(worker)
        return Forgotten()

    async def create(self, rows: tuple[LeaseRow, ...], until_at: float, check: Write | None = None) -> Created:
        """Make some of ``rows`` until then: later they may have been made, read to their end and deleted.

        Where they are made as those of a paused stream, ``check`` says in which row that stands: if it has gone on
        meanwhile, none is made.

        Workers that start together begin at different rows: each that another was first to make is a write in vain.
        What is there by now is left out of the rest.
        """
        me, made = self._worker.owner, list[LeaseRow]()
        ordered = sorted(rows, key=lambda row: rendezvous(me, row.key)) if len(rows) > PORTION else rows

        async def create(row: LeaseRow) -> None:
            with suppress(ConditionFailedError):
                if self._now() < until_at and await self._store.create(row, parent=check):
                    made.append(row)

        await together([partial(create, row) for row in ordered[:PORTION]], AT_ONCE)
        left = tuple(ordered[PORTION:])
        if left and len(made) < PORTION:
            there = {row.key for row in (await self._store.scan()).rows}
            left = tuple(row for row in left if row.key not in there)
        return Created(tuple(made), left, until_at, check)

    async def delete_completed(self, settled: Container[str]) -> Deleted:
        """Delete the rows that are done with, as a consistent look at all of them shows, until one is not as it was."""
        scan = await self._store.scan(consistent=True)
        if scan.malformed:
            return Deleted()  # one of those may be a parent
        for row in deletable({row.key: row for row in scan.rows}, settled):
            try:
                async with self._worker.gate.slot(Priority.DELETE):
                    await self._store.delete(rules.delete_completed(row))
            except ConditionFailedError:
                break
            except RejectedError:
                self.may_delete = False
                raise
            self._worker.log.info("kcl_py.lease.deleted", shard_id=row.key)
        return Deleted()

    async def let_go(self) -> LetGo:
        """Look once more, and leave no row that names this worker as its holder; then the worker's own row goes."""
        me = self._worker.owner
        for seen in (await self._store.scan(consistent=True)).rows:
            if me not in (seen.owner, seen.checkpoint_owner):
                continue
            row = await self._store.read(seen.key)
            if row is not None and row.holder == me:
                with suppress(ConditionFailedError):
                    await self._store.write(rules.let_go(row, owner=me))
        if self._store.has_workers:
            await self._store.delete_worker(me)
        return LetGo()
