"""The Coordinator: reads and decides for the whole worker: live workers, lease rows, shards, what to open or pull.

It writes only its own worker row and rows that nobody owns. Every read and write is a task that comes back as a
message; every rule is a pure function (``leases/assignment.py``, ``leases/lineage.py``, ``leases/sightings.py``).
Restarted, it adopts the Shards that run. Mirrors: ``KinesisClient.Stream.Coordinator`` (Elixir).
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from actors import Actor, Down, Ref
from kcl_py.delivery.retry import brief, root_cause
from kcl_py.errors import ConditionFailedError, LeaseTableError, MissingError, RequestError
from kcl_py.leases import rules
from kcl_py.leases.identity import mismatch, strangers
from kcl_py.leases.lineage import blocking_parents, discover, has_hole, unread
from kcl_py.leases.row import LeaseRow, WorkerRow
from kcl_py.leases.sightings import Sightings
from kcl_py.sources.source import Listing, PositionKind
from kcl_py.tree.holding import Holding, Phase, Setbacks
from kcl_py.tree.messages import (
    Acquired,
    Adopt,
    Awaiting,
    CloseShard,
    GaveUp,
    Hint,
    How,
    Initialized,
    Listed,
    MemberGone,
    Members,
    OpenShard,
    Release,
    Reread,
    Scanned,
    ShardEnded,
    ShardRuns,
    StopWorker,
)
from kcl_py.tree.worker import Worker

AUDIT_S = 60.0
"""How often the shards are listed when nothing calls for it. Source: the Java client's shardSyncIntervalMillis."""
WAIT_TICKS = 3
"""How many ticks a stopping worker waits for others to pull its shards, while they go on."""
FAULT_PAUSE_S = 300.0
"""How long a shard that could not be run here is left to others."""
REREAD_SLACK_S = 0.02
"""A row that should have expired is read again this much later, so that the read surely began late enough."""


@dataclass(frozen=True, slots=True)
class _Tick:
    pass


@dataclass(frozen=True, slots=True)
class _Beat:
    pass


@dataclass(frozen=True, slots=True)
class _RereadDue:
    key: str


@dataclass(frozen=True, slots=True)
class _Done:
    """A write of the Coordinator's own was acknowledged."""


@dataclass(frozen=True, slots=True)
class _Created:
    rows: tuple[LeaseRow, ...]


@dataclass(frozen=True, slots=True)
class _RequestFailed:
    what: str
    error: Exception


@dataclass(frozen=True, slots=True)
class _LetGo:
    """Nothing names this worker any more."""


class Coordinator(Actor):
    """Decides which shards this worker runs.

    Args:
        worker: what the worker's actors share.
        shards: the ShardSupervisor.
    """

    def __init__(self, worker: Worker, shards: Ref) -> None:
        self._worker, self._shards = worker, shards
        leases = worker.config.leases
        self._beats, self._counters = Sightings(leases.failover_s), Sightings(leases.failover_s)
        self._missing = Sightings(leases.failover_s)
        self._members: dict[str, WorkerRow] | None = None
        self._rows: dict[str, LeaseRow] | None = None
        self._listing: Listing | None = None
        self._unread: frozenset[str] | None = None
        self._seen: dict[str, None] = {}
        self._available: dict[str, tuple[How, float]] = {}
        self._held: dict[str, Holding] = {}
        self._setbacks = Setbacks()
        self._in_flight: dict[str, None] = {}
        self._beat = self._news = 0
        self._beats_since: float | None = None
        self._initialized = self._is_ready = False
        self._scan_due_at = self._list_due_at = float("-inf")
        self._stop: StopWorker | None = None
        self._unfinished = 0
        self.state = "starting"

    # --- what comes in -----------------------------------------------------------------------------------------

    async def on_start(self) -> None:
        self._shards.tell(Adopt(self.ref))
        self.run_task(self._keep_pulse)
        self._put_me()
        self._tick()

    async def on_message(self, message: object) -> None:
        match message:
            case _Tick():
                self._tick()
            case _Beat():
                self._put_me()
            case Members():
                self._note_members(message)
            case Scanned():
                self._note_scan(message)
            case Listed(listing):
                self._note_listing(listing)
            case _RereadDue(key):
                self._reread(key)
            case Reread():
                self._note_reread(message)
            case _Created(rows):
                self._note_created(rows)
            case _Done():
                self._beats_since = self._beats_since or self.clock.monotonic()
            case _RequestFailed(what, error):
                self._in_flight.pop(what, None)
                self._worker.log.warning("kcl_py.coordinator.request_failed", request=what, error=str(error))
            case ShardRuns(key, shard, lease):
                self._note_running(key, shard, lease)
            case Acquired(row) | Awaiting(row):
                self._note_phase(row, Phase.HELD if isinstance(message, Acquired) else Phase.AWAITING)
            case Initialized():
                self._initialized = True
                self._decide()
            case ShardEnded(row, children):
                self._note_ended(row, children)
            case GaveUp(key, given_up, unfinished):
                self._note_given_up(key, given_up, unfinished)
            case Down():
                self._note_down(message)
            case StopWorker():
                self._stop_all(message)
            case _LetGo():
                assert self._stop is not None
                self._stop.stopped.resolve(self._unfinished)
            case _:
                self.unhandled(message)

    # --- reading -----------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        self.send_after(self._worker.config.leases.tick_s, _Tick())
        now = self.clock.monotonic()
        if self._worker.store.has_workers:
            self._ask("members", self._read_members)
        if now >= self._scan_due_at:
            self._scan()
        if now >= self._list_due_at:
            self._list()
        self._decide()
        self._finish_when_idle()

    def _ask(self, what: str, work: Callable[[], Awaitable[Any]]) -> None:
        """Run one request of its kind at a time; its result comes back as a message."""
        if what in self._in_flight:
            return
        self._in_flight[what] = None
        self.run_task(lambda: self._attempt(what, work), done=lambda message: message)

    async def _attempt(self, what: str, work: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await work()
        except MissingError as error:
            if what == "list":
                return _RequestFailed(what, error)
            raise LeaseTableError(
                f"cannot go on without lease table {self._worker.config.leases.table!r}: {error}; "
                "it was deleted while this worker ran, and is never made anew then"
            ) from error
        except RequestError as error:
            return _RequestFailed(what, error)

    async def _read_members(self) -> Members:
        begun_at = self.clock.monotonic()
        rows = await self._worker.store.workers()
        return Members(begun_at, self.clock.monotonic(), rows)

    def _scan(self) -> None:
        self._scan_due_at = self.clock.monotonic() + self._worker.config.leases.heartbeat_s
        self._ask("scan", self._read_rows)

    async def _read_rows(self) -> Scanned:
        begun_at = self.clock.monotonic()
        scan = await self._worker.store.scan()
        return Scanned(begun_at, self.clock.monotonic(), scan)

    def _list(self) -> None:
        if self._rows is None:
            return  # which shards to list depends on whether there are rows
        self._list_due_at = self.clock.monotonic() + AUDIT_S
        self._ask("list", self._read_shards)

    async def _read_shards(self) -> Listed:
        start = self._worker.config.start
        is_first = start.kind is PositionKind.AT_TIMESTAMP and not self._rows
        return Listed(await self._worker.source.list_shards(start if is_first else None))

    def _reread(self, key: str) -> None:
        async def read() -> Reread:
            begun_at = self.clock.monotonic()
            row = await self._worker.store.read(key)
            return Reread(begun_at, self.clock.monotonic(), key, row)

        self._ask(f"reread {key}", read)

    async def _keep_pulse(self) -> None:
        period_s = self._worker.config.leases.margin_s / 4
        while True:
            self._worker.pulse.beat(self.clock.monotonic())
            await self.clock.sleep(period_s)

    # --- this worker's own row ---------------------------------------------------------------------------------

    def _put_me(self) -> None:
        self.send_after(self._worker.config.leases.heartbeat_s, _Beat())
        self._announce()

    def _tell_news(self) -> None:
        """Have the others look at the lease table."""
        self._news += 1
        self._announce()

    def _announce(self) -> None:
        store = self._worker.store
        if not store.has_workers:
            return
        self._beat += 1
        row = self._my_row()

        async def put() -> _Done:
            await store.put_worker(row)
            return _Done()

        self.run_task(lambda: self._attempt("beat", put), done=lambda message: message)

    def _my_row(self) -> WorkerRow:
        state = "draining" if self._stop is not None else "active" if self._initialized else "starting"
        return WorkerRow(
            worker=self._worker.owner,
            beat=self._beat,
            state=state,
            held=sum(1 for holding in self._held.values() if holding.phase is Phase.HELD),
            max_leases=self._worker.config.leases.max_leases,
            news=self._news,
            updated_s=int(self.clock.time()),
        )

    # --- what was read -----------------------------------------------------------------------------------------

    def _note_members(self, members: Members) -> None:
        self._in_flight.pop("members", None)
        me, before = self._worker.owner, self._members or {}
        alive = {
            row.worker: row
            for row in sorted(members.rows, key=lambda row: row.worker)
            if row.worker == me
            or not self._beats.has_expired(row.worker, row.beat, begun_at=members.begun_at, ended_at=members.ended_at)
        }
        self._beats.keep(row.worker for row in members.rows)
        self._members = alive
        gone = [worker for worker in before if worker not in alive]
        for worker in gone:
            self._tell_leases(MemberGone(worker))
        has_news = any(
            worker != me and (worker not in before or before[worker].news != row.news) for worker, row in alive.items()
        )
        if gone or has_news:
            self._scan()

    def _note_scan(self, scanned: Scanned) -> None:
        self._in_flight.pop("scan", None)
        for sentence in scanned.scan.malformed:
            self._worker.log.warning("kcl_py.table.malformed_row", error=sentence)
        rows = {row.key: row for row in sorted(scanned.scan.rows, key=lambda row: row.key)}
        for stranger in strangers(rows.values(), self._worker.stream):
            raise mismatch(stranger, self._worker.stream, self._worker.config.leases.table)
        for key in self._seen:
            if key not in rows:
                self._missing.has_expired(key, None, begun_at=scanned.begun_at, ended_at=scanned.ended_at)
        for key, row in rows.items():
            self._missing.has_expired(key, row.counter, begun_at=scanned.begun_at, ended_at=scanned.ended_at)
            self._judge(row, scanned.begun_at, scanned.ended_at)
        self._seen.update(dict.fromkeys(rows))
        self._available = {key: value for key, value in self._available.items() if key in rows}
        self._counters.keep(rows)
        if self._rows is not None and any(self._is_unknown(child) for row in rows.values() for child in row.children):
            self._list_soon()
        self._rows = rows
        if has_hole(rows.values()):
            self._list_soon()
        if self._unread is None:
            self._list()
        self._create_missing()
        self._decide()

    def _judge(self, row: LeaseRow, begun_at: float, ended_at: float) -> None:
        """Find out whether the row may be taken, and hint at it to its Lease if there is one."""
        me, now = self._worker.owner, self.clock.monotonic()
        if row.key in self._held:
            lease = self._held[row.key].lease
            if lease is not None:
                lease.tell(Hint(row))
            self._available.pop(row.key, None)
        elif row.has_ended:
            self._available.pop(row.key, None)
        elif row.holder == me or self._is_own_earlier(row):
            self._available[row.key] = (How.OWN, float("-inf"))
        elif row.owner == me:
            self._available[row.key] = (How.AWAIT, float("-inf"))
        elif row.holder is None:
            if self._available.get(row.key, (None,))[0] is not How.FREE:
                self._available[row.key] = (How.FREE, now)
        elif self._counters.has_expired(row.key, row.counter, begun_at=begun_at, ended_at=ended_at):
            if self._available.get(row.key, (None,))[0] is not How.EXPIRED:
                self._available[row.key] = (How.EXPIRED, now)
        else:
            self._available.pop(row.key, None)
            self._reread_when_due(row.key, now)

    def _reread_when_due(self, key: str, now: float) -> None:
        expires_at = self._counters.expires_at(key)
        if expires_at is not None and now > expires_at - self._worker.config.leases.failover_s / 2:
            self.send_after(max(expires_at - now, 0) + REREAD_SLACK_S, _RereadDue(key))

    def _is_own_earlier(self, row: LeaseRow) -> bool:
        if not self._worker.config.leases.exclusive_id or row.holder is None:
            return False
        return row.holder.rpartition("/")[0] == self._worker.worker_id

    def _note_reread(self, reread: Reread) -> None:
        self._in_flight.pop(f"reread {reread.key}", None)
        if reread.row is None or self._rows is None:
            return
        self._rows[reread.key] = reread.row
        self._seen[reread.key] = None
        self._judge(reread.row, reread.begun_at, reread.ended_at)
        self._decide()

    def _note_listing(self, listing: Listing) -> None:
        self._in_flight.pop("list", None)
        self._listing = listing
        self._create_missing()
        self._decide()

    def _list_soon(self) -> None:
        """List the shards at the next tick that is a heartbeat away from the last listing."""
        period_s = self._worker.config.leases.heartbeat_s
        self._list_due_at = min(self._list_due_at, self._list_due_at - AUDIT_S + period_s)

    def _is_unknown(self, key: str) -> bool:
        return self._rows is not None and key not in self._rows

    # --- making rows -------------------------------------------------------------------------------------------

    def _create_missing(self) -> None:
        """Make the rows that discovery says are to be read, from the last listing, which is used once."""
        listing, rows = self._listing, self._rows
        if listing is None or rows is None or "create" in self._in_flight:
            return
        self._listing = None
        self._unread = unread(listing, rows, self._worker.config.start)
        now = self.clock.monotonic()
        stream = self._worker.stream.identity
        missing = [
            new.row(stream=stream, counter=int(self.clock.time()) if new.shard.shard_id in self._seen else 0)
            for new in discover(listing, rows, self._worker.config.start)
            if new.shard.shard_id not in self._seen or self._is_gone(new.shard.shard_id, now)
        ]
        for row in missing:
            if row.key in self._seen:
                self._worker.log.warning("kcl_py.lease.recreated", shard_id=row.key)
        if missing:
            self._ask("create", lambda: self._create(missing))

    def _is_gone(self, key: str, now: float) -> bool:
        """Whether a row that was there has been missing for longer than a holder could still act on it."""
        expires_at = self._missing.expires_at(key)
        return expires_at is not None and now > expires_at

    async def _create(self, rows: list[LeaseRow]) -> _Created:
        for row in rows:
            await self._worker.store.create(row)
        return _Created(tuple(rows))

    def _note_created(self, rows: tuple[LeaseRow, ...]) -> None:
        self._in_flight.pop("create", None)
        assert self._rows is not None
        now = self.clock.monotonic()
        for row in rows:
            self._seen[row.key] = None
            if self._rows.setdefault(row.key, row) is row:
                self._judge(row, now, now)
        self._decide()

    # --- deciding ----------------------------------------------------------------------------------------------

    def _decide(self) -> None:
        """Open what is to be taken or pulled now."""
        if self._rows is None or self._unread is None or self._stop is not None:
            return
        if self._members is None and self._worker.store.has_workers:
            return
        now = self.clock.monotonic()
        for key, row in self._rows.items():
            how = self._available.get(key, (None, 0.0))[0]
            if how in (How.OWN, How.AWAIT) and self._may_open(key, now):
                self._open(row, how)
        chosen = self._choose(now)
        for key in chosen.takes:
            self._open(self._rows[key], self._available[key][0])
        for key in chosen.pulls:
            self._open(self._rows[key], How.HANDOFF)
        if not self._is_ready and "create" not in self._in_flight:
            self._is_ready = True
            self._worker.log.info("kcl_py.worker.ready", shards=len(self._rows), opened=len(self._held))

    def _may_open(self, key: str, now: float) -> bool:
        return key not in self._held and self._setbacks.allows(key, now)

    def _open(self, row: LeaseRow, how: How, fault: str | None = None) -> None:
        self._held[row.key] = Holding(self.clock.monotonic(), is_pull=how in (How.HANDOFF, How.AWAIT))
        self._available.pop(row.key, None)
        self._shards.tell(OpenShard(row, how, self.ref, fault))

    def _choose(self, now: float) -> Any:
        class X: pass
        x = X(); x.pulls=[]
        x.takes=[k for k,(h,_) in self._available.items() if h in (How.FREE, How.EXPIRED) and self._may_open(k, now) and not blocking_parents(self._rows[k], self._rows, self._unread)]
        return x

    # --- the Shards of this worker -----------------------------------------------------------------------------

    def _note_running(self, key: str, shard: Ref, lease: Ref) -> None:
        holding = self._held.setdefault(key, Holding(self.clock.monotonic()))
        holding.lease = lease
        self.monitor(shard)
        if self._stop is not None:
            lease.tell(self._release(self._stop))

    def _note_phase(self, row: LeaseRow, phase: Phase) -> None:
        if self._rows is not None:
            self._rows[row.key] = row
        if row.key in self._held:
            self._held[row.key].phase = phase
        self._tell_news()

    def _note_ended(self, row: LeaseRow, children: tuple[str, ...]) -> None:
        self._close(row.key)
        self._setbacks.forget(row.key)
        if self._rows is not None:
            self._rows[row.key] = row
        for child in children:
            self._reread(child)
        if not children:
            self._list_soon()
        self._tell_news()

    def _note_given_up(self, key: str, row: LeaseRow | None, unfinished: int) -> None:
        self._close(key)
        self._unfinished += unfinished
        if row is not None and self._rows is not None:
            self._rows[key] = row
        self._setbacks.pause(key, self.clock.monotonic() + self._worker.config.leases.tick_s)
        self._tell_news()

    def _close(self, key: str) -> None:
        if key in self._held:
            self._held[key].phase = Phase.CLOSING
        self._shards.tell(CloseShard(key))

    def _note_down(self, down: Down) -> None:
        holding = self._held.pop(down.name, None)
        row = self._rows.get(down.name) if self._rows is not None else None
        now = self.clock.monotonic()
        if row is not None:
            self._judge(row, now, now)
        if down.error is not None and holding is not None and holding.phase is not Phase.CLOSING:
            self._note_failure(down.name, down.error, row, ran_s=now - holding.opened_at)
        self._finish_when_idle()

    def _note_failure(self, key: str, error: Exception, row: LeaseRow | None, *, ran_s: float) -> None:
        now, cause = self.clock.monotonic(), brief(root_cause(error))
        has_had_enough = self._setbacks.failed(key, ran_s=ran_s, now=now)
        self._worker.log.error("kcl_py.shard.failed", shard_id=key, error=cause, is_given_up=has_had_enough)
        if has_had_enough and row is not None and row.holder == self._worker.owner and self._stop is None:
            self._setbacks.pause(key, now + FAULT_PAUSE_S)
            self._open(row, How.OWN, fault=cause)

    def _tell_leases(self, message: object) -> None:
        for holding in self._held.values():
            if holding.lease is not None:
                holding.lease.tell(message)

    # --- stopping ----------------------------------------------------------------------------------------------

    def _stop_all(self, stop: StopWorker) -> None:
        is_first, self._stop = self._stop is None, stop
        self.state = "draining"
        if is_first:
            self._worker.log.info("kcl_py.worker.draining", shards=len(self._held))
            self._stop_waiting_at = min(self.clock.monotonic() + self._patience_s(), stop.until_at)
            self._tell_news()
        self._tell_leases(self._release(stop))
        self._finish_when_idle()

    def _release(self, stop: StopWorker) -> Release:
        return Release(min(self._stop_waiting_at, stop.until_at), stop.until_at)

    def _patience_s(self) -> float:
        """How long to go on and wait to be pulled from: not at all, unless somebody has room."""
        me, members = self._worker.owner, (self._members or {}).values()
        has_taker = any(
            member.worker != me
            and member.state == "active"
            and (member.max_leases is None or member.held < member.max_leases)
            for member in members
        )
        return WAIT_TICKS * self._worker.config.leases.tick_s if has_taker else 0.0

    def _finish_when_idle(self) -> None:
        if self._stop is not None and not self._held:
            self._ask("let go", self._let_go)

    async def _let_go(self) -> _LetGo:
        """Read once more, and leave no row that names this worker as its holder; then the worker's own row goes."""
        me, store = self._worker.owner, self._worker.store
        for seen in (await store.scan()).rows:
            if me not in (seen.owner, seen.checkpoint_owner):
                continue
            row = await store.read(seen.key)
            if row is not None and row.holder == me:
                with suppress(ConditionFailedError):
                    await store.write(rules.let_go(row, owner=me))
        if store.has_workers:
            await store.delete_worker(me)
        return _LetGo()
