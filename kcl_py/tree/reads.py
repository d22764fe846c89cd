"""What the Coordinator sends to itself: alarms, and the outcomes of its requests.

Each request reads the clock around itself, so that what it shows can be judged by time.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto

import anyio

from kcl_py.errors import ConditionFailedError, LeaseTableError, MissingError, RequestError
from kcl_py.leases import rules
from kcl_py.leases.row import LeaseRow, WorkerRow
from kcl_py.sources.source import Position
from kcl_py.tree.messages import Listed, Members, Reread, Scanned
from kcl_py.tree.worker import Worker

CREATES_AT_ONCE = 16
"""As many as the lease writes of a worker: one after the other, the rows of a large stream take seconds."""


class Alarm(Enum):
    """What the Coordinator reminds itself of."""

    TICK = auto()
    """Look at the fleet and decide."""
    BEAT = auto()
    """Write the own worker row."""


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
class Created:
    """These rows were made by this worker."""

    rows: tuple[LeaseRow, ...]


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
            return await work()
        except MissingError as error:
            if what == "list":
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

    async def members(self) -> Members:
        begun_at = self._now()
        rows = await self._store.workers()
        return Members(begun_at, self._now(), rows)

    async def lease_rows(self) -> Scanned:
        begun_at = self._now()
        scan = await self._store.scan()
        return Scanned(begun_at, self._now(), scan)

    async def row(self, key: str) -> Reread:
        begun_at = self._now()
        row = await self._store.read(key)
        return Reread(begun_at, self._now(), key, row)

    async def shards(self, at: Position | None, known: frozenset[str]) -> Listed:
        return Listed(await self._worker.source.list_shards(at), known)

    async def announce(self, row: WorkerRow) -> Announced:
        await self._store.put_worker(row)
        return Announced()

    async def forget(self, worker: str) -> Forgotten:
        await self._store.delete_worker(worker)
        return Forgotten()

    async def create(self, rows: tuple[LeaseRow, ...]) -> Created:
        """Make rows, some at once; after the first failure no more are begun."""
        waiting, made, failures = iter(rows), list[LeaseRow](), list[RequestError]()

        async def work() -> None:
            for row in waiting:
                try:
                    if await self._store.create(row):
                        made.append(row)
                except RequestError as error:
                    failures.append(error)
                if failures:
                    return

        async with anyio.create_task_group() as tasks:
            for _ in range(CREATES_AT_ONCE):
                tasks.start_soon(work)
        if failures:
            raise failures[0]
        return Created(tuple(made))

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
