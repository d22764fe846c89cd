"""The Coordinator: reads and decides for the whole worker: live workers, lease rows, shards, what to open or pull.

It writes only its own worker row and rows that nobody owns. Every request is a task that comes back as a message;
every rule is a pure function or object (``leases/view.py``, ``leases/assignment.py``, ``leases/lineage.py``).
Restarted, it adopts the Shards that run. Mirrors: ``KinesisClient.Stream.Coordinator`` (Elixir).
"""

from collections.abc import Awaitable, Callable, Container
from functools import partial
from typing import Any

from actors import Actor, Down, Ref
from kcl_py.delivery.retry import brief, root_cause
from kcl_py.leases.identity import check_same, mismatch, strangers
from kcl_py.leases.row import TEXT_CHARACTERS, LeaseRow
from kcl_py.leases.view import How, View
from kcl_py.tree.decisions import Decisions
from kcl_py.tree.discovery import Discovery
from kcl_py.tree.holding import Holding, Phase, Setbacks
from kcl_py.tree.messages import (
    CAPACITY,
    Acquired,
    Adopt,
    Awaiting,
    CloseShard,
    GaveUp,
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
from kcl_py.tree.outlook import Outlook
from kcl_py.tree.presence import Presence
from kcl_py.tree.reads import (
    Alarm,
    Announced,
    Created,
    Decide,
    Deleted,
    Described,
    Forgotten,
    LetGo,
    Reads,
    RequestFailed,
    RereadDue,
)
from kcl_py.tree.steering import LookNow
from kcl_py.tree.watching import Watching
from kcl_py.tree.worker import Worker

WAIT_TICKS = 3
"""How many ticks a stopping worker waits for others to pull its shards, while they go on."""
FAULT_PAUSE_S = 300.0
"""How long a shard that could not be run here is left to others."""
DECIDE_EVERY_S = 0.05
"""Between two decisions about many rows: while shards are taken by the hundred, every message brings something new."""
MANY_SHARDS = 100
"""About fewer a decision costs less than to wait for it."""

_DECISIVE = (Alarm, Members, Scanned, Listed, Created, Reread, Decide, Down, StopWorker)
"""After these the Coordinator decides again, now or soon; others tell of what it has decided already."""


class Coordinator(Actor):
    """Decides which shards this worker runs.

    Args:
        worker: what the worker's actors share.
        shards: the ShardSupervisor.
        presence: what others see of this worker; outlives a Coordinator.
        stop: set if the worker stops already: an earlier incarnation has failed meanwhile.
    """

    capacity = CAPACITY

    def __init__(self, worker: Worker, shards: Ref, presence: Presence, stop: StopWorker | None = None) -> None:
        self._worker, self._shards, self._presence = worker, shards, presence
        self._leases = worker.config.leases
        self._reads = Reads(worker)
        self._view = View(worker.owner, failover_s=self._leases.failover_s, exclusive_id=self._leases.exclusive_id)
        self._watching = Watching(worker, self._reads, self._view)
        self._discovery = Discovery(worker, self._reads, self._view, self._ask)
        self._held: dict[str, Holding] = {}
        self._setbacks = Setbacks()
        self._decisions = Decisions(worker.log, patience_s=self._leases.failover_s)
        self._outlook = Outlook(self._view, self._discovery.audit, self._leases, worker.log)
        self._is_ready = self._is_deciding = self._must_look = False
        self._decided_at = float("-inf")
        self._stop: StopWorker | None = None
        self._stop_first = stop
        self.state = "starting"

    async def on_start(self) -> None:
        check_same(self._worker.stream, self._presence.stream)
        self._shards.tell(Adopt(self.ref))
        self.run_task(self._keep_pulse)
        self._keep_beating()  # first, so that workers which start together see each other
        self._tick()
        if self._stop_first is not None:
            self._stop_all(self._stop_first)

    async def on_message(self, message: object) -> None:
        match message:
            case Alarm.TICK:
                self._tick()
            case Alarm.BEAT:
                self._keep_beating()
            case Members():
                self._note_members(message)
            case Scanned():
                self._note_scan(message)
            case Listed():
                self._discovery.note_listed(message)
            case RereadDue(key):
                self._ask(f"rows {key}", partial(self._reads.rows, (key,)))
            case Reread():
                self._watching.note_reread(message, self._held)
            case Created():
                self._note_created(message)
            case Announced():
                self._note_announced()
            case Described(stream):
                self._presence.stream = stream
                check_same(self._worker.stream, stream)
            case Forgotten() | Deleted():
                pass
            case LookNow(keys):
                self._tell_leases(message, keys)
            case RequestFailed(what, error):
                self._decisions.note_failure(what, error, self.clock.monotonic())
                if what == "list":
                    self._discovery.audit.note_failure()
                if what == "let go" and self._stop is not None and self.clock.monotonic() >= self._stop.until_at:
                    self._say_stopped(has_let_go=False)
            case ShardRuns(key, shard, lease):
                self._note_running(key, shard, lease)
            case Acquired(row):
                self._note_phase(row, Phase.HELD)
            case Awaiting(row):
                self._note_phase(row, Phase.AWAITING)
            case Initialized():
                self._note_initialized()
            case ShardEnded(row, children):
                self._note_ended(row, children)
            case GaveUp():
                self._note_given_up(message)
            case Down():
                self._note_down(message)
            case StopWorker():
                self._stop_all(message)
            case LetGo():
                self._say_stopped()
            case Decide():
                self._is_deciding, self._decided_at = False, float("-inf")  # it is time, whatever sums of seconds say
            case _:
                self.unhandled(message)
        if isinstance(message, _DECISIVE):
            self._decide_in_time()

    def _tick(self) -> None:
        self.send_after(self._leases.tick_s, Alarm.TICK)
        now = self.clock.monotonic()
        if self._worker.store.has_workers and self._reads.is_due("members"):
            self._look()
        self._scan(has_news=False)
        self._discovery.look()
        for key, wait_s in self._watching.rereads(now):
            if key not in self._held:
                self.send_after(wait_s, RereadDue(key))

    def _look(self) -> None:
        """Read the worker table; what is being said to the others is said first."""
        self._must_look = self._reads.is_asking("announce")
        if not self._must_look:
            self._ask("members", self._reads.members)

    def _ask(self, what: str, work: Callable[[], Awaitable[Any]]) -> None:
        """Run one request of its kind at a time; its result comes back as a message."""
        if self._reads.begin(what):
            self.run_task(partial(self._reads.carry_out, what, work), done=lambda message: message)

    def _scan(self, *, has_news: bool = True) -> None:
        if self._reads.is_due("scan", has_news=has_news):
            self._ask("scan", self._reads.lease_rows)

    async def _keep_pulse(self) -> None:
        period_s = self._leases.margin_s / 4
        while True:
            self._worker.pulse.beat(self.clock.monotonic())
            await self.clock.sleep(period_s)

    def _keep_beating(self) -> None:
        self.send_after(self._leases.heartbeat_s, Alarm.BEAT)
        self._announce()

    def _tell_news(self, key: str = "") -> None:
        """Have the others look at the lease table, or at a row of it."""
        self._presence.tell(key)
        self._announce()

    def _announce(self) -> None:
        """Write the own worker row; while a write is on its way, once more after it."""
        if self.state in ("leaving", "stopped"):
            return
        if not self._worker.store.has_workers:
            self._presence.note_written(self.clock.monotonic())
            return
        self._presence.has_unsaid = self._reads.is_asking("announce")
        if not self._presence.has_unsaid:
            self._presence.beat()
            self._ask("announce", partial(self._reads.announce, self._presence.row(self._held.values())))

    def _note_announced(self) -> None:
        self._presence.note_written(self.clock.monotonic())
        if self._must_look:
            self._look()
        if self._presence.has_unsaid:
            self._announce()
        if self._stop is not None:
            self._decide_in_time()

    def _note_members(self, members: Members) -> None:
        turnover = self._view.note_members(members.rows, begun_at=members.begun_at, ended_at=members.ended_at)
        for worker in turnover.gone:
            self._tell_leases(MemberGone(worker))
        if turnover.has_news:
            self._scan()
        for worker in turnover.forgotten(int(self.clock.time())):
            self._ask(f"forget {worker}", partial(self._reads.forget, worker))
        if keys := self._watching.due(turnover, members.ended_at):
            self._ask("rows", partial(self._reads.rows, keys))

    def _note_scan(self, scanned: Scanned) -> None:
        for stranger in strangers(scanned.scan.rows, self._worker.stream):
            raise mismatch(stranger, self._worker.stream, self._leases.table)
        rows = self._watching.note_scan(scanned, self._held)
        self._setbacks.keep(rows)
        self._worker.keep_quotas(rows)
        self._discovery.note_scan(scanned, rows)

    def _note_created(self, created: Created) -> None:
        for row in created.rows:
            self._note_row(row)
        if not self._discovery.note_created(created):
            self._scan()

    def _decide_in_time(self) -> None:
        """Decide now; soon, if plans take time and it has decided a moment ago."""
        now = self.clock.monotonic()
        wait_s = self._decided_at + DECIDE_EVERY_S - now
        shards = len(self._view.rows or ()) + len(self._discovery.audit.said[0] or ())
        if wait_s <= 0 or self._stop is not None or shards <= MANY_SHARDS:
            self._decided_at = now
            self._decide()
        elif not self._is_deciding:
            self._is_deciding = True
            self.send_after(wait_s, Decide())

    def _decide(self) -> None:
        """Open what is to be taken or pulled now; once the worker stops, see whether it is done."""
        view = self._view
        if self._stop is not None:
            if not self._held and self.state != "stopped" and not self._reads.is_asking("announce"):
                self.state = "leaving"  # no write of the own row may come after its deletion
                self._ask("let go", self._reads.let_go)
            return
        if (
            view.rows is None
            or not self._discovery.audit.is_ready
            or (view.members is None and self._worker.store.has_workers)
        ):
            return
        now = self.clock.monotonic()
        for key, offer in list(view.offers.items()):
            if offer.how in (How.OWN, How.AWAIT) and key not in self._held and self._setbacks.allows(key, now):
                self._open(view.rows[key], offer.how)
        me, may_pull = self._presence.row(self._held.values()), self._presence.seconds(now) >= self._leases.failover_s
        overdue = self._watching.overdue(now)
        chosen = self._outlook.plan(me, self._held.keys(), overdue, self._setbacks, now, may_pull=may_pull)
        self._decisions.note(chosen, now)
        self._presence.held_off = chosen.held_off
        for key in chosen.takes:
            self._open(view.rows[key], view.offers[key].how)
        for key in chosen.pulls:
            self._open(view.rows[key], How.HANDOFF, why="leaver" if view.leaves(view.rows[key].owner) else "balance")
        if not self._is_ready and not self._reads.is_asking("create"):
            self._is_ready, self.state = True, "running"
            self._worker.log.info("kcl_py.worker.ready", shards=len(view.rows), opened=len(self._held))

    def _open(self, row: LeaseRow, how: How, *, why: str = "", fault: str | None = None) -> None:
        self._held[row.key] = Holding(self.clock.monotonic())
        self._shards.tell(OpenShard(row, how, self.ref, self._view.seen_at(row), fault, why))

    def _note_running(self, key: str, shard: Ref, lease: Ref) -> None:
        holding = self._held.setdefault(key, Holding(self.clock.monotonic(), Phase.HELD))  # one that is adopted
        holding.lease = lease
        self.monitor(shard)
        if self._stop is not None:
            lease.tell(self._release(self._stop))

    def _note_phase(self, row: LeaseRow, phase: Phase) -> None:
        self._note_row(row)
        if row.key in self._held:
            self._held[row.key].phase = phase
        self._tell_news(row.key)

    def _note_row(self, row: LeaseRow | None) -> None:
        if row is not None and self._view.rows is not None:
            now = self.clock.monotonic()
            self._view.note_row(row, begun_at=now, ended_at=now)

    def _note_initialized(self) -> None:
        """From the first one on this worker may have more than one shard; others may have come meanwhile."""
        if not self._presence.is_initialized:
            self._presence.is_initialized, self._decided_at = True, float("-inf")
            if self._worker.store.has_workers:
                self._look()
            else:
                self._decide_in_time()

    def _note_ended(self, row: LeaseRow, children: tuple[str, ...]) -> None:
        self._note_row(row)
        self._setbacks.forget(row.key)
        self._view.born.update(children)
        for child in children:
            self._ask(f"rows {child}", partial(self._reads.rows, (child,)))
        if not children:
            self._discovery.audit.soon()
        self._close(row.key)

    def _note_given_up(self, given_up: GaveUp) -> None:
        self._note_row(given_up.row)
        if given_up.row is None:
            self._reads.hurry()  # it may be gone
        if self._stop is not None:
            self._stop.stopped.unfinished += given_up.unfinished
        is_left = given_up.is_for_others and self._view.has_taker()
        pause_s = self._leases.failover_s if is_left else self._leases.tick_s
        self._setbacks.pause(given_up.key, self.clock.monotonic() + pause_s)
        self._close(given_up.key)

    def _close(self, key: str) -> None:
        if key in self._held:
            self._held[key].phase = Phase.CLOSING
        self._shards.tell(CloseShard(key))
        self._tell_news(key)

    def _note_down(self, down: Down) -> None:
        holding = self._held.pop(down.name, None)
        if down.error is not None and holding is not None and holding.phase is not Phase.CLOSING:
            self._note_failure(down.name, down.error, ran_s=self.clock.monotonic() - holding.opened_at)

    def _note_failure(self, key: str, error: Exception, *, ran_s: float) -> None:
        now = self.clock.monotonic()
        cause = brief(root_cause(error))
        has_had_enough = self._setbacks.failed(key, ran_s=ran_s, now=now)
        self._worker.log.error("kcl_py.shard.failed", shard_id=key, error=cause, is_given_up=has_had_enough)
        self._ask("describe", self._reads.stream)
        row = self._view.rows.get(key) if self._view.rows is not None else None
        if has_had_enough and row is not None and row.holder == self._worker.owner and self._stop is None:
            self._setbacks.pause(key, now + FAULT_PAUSE_S)
            self._open(row, How.OWN, fault=cause[:TEXT_CHARACTERS])

    def _tell_leases(self, message: object, keys: Container[str] | None = None) -> None:
        for key, holding in self._held.items():
            if holding.lease is not None and (keys is None or key in keys):
                holding.lease.tell(message)

    def _stop_all(self, stop: StopWorker) -> None:
        is_first, self._stop = self._stop is None, stop
        self._presence.is_draining = self._discovery.is_over = True
        self.state = "draining"
        if is_first:
            self._worker.log.info("kcl_py.worker.draining", shards=len(self._held))
            patience_s = WAIT_TICKS * self._leases.tick_s if self._view.has_taker() else 0.0
            self._stop_waiting_at = self.clock.monotonic() + patience_s
            self._tell_news()
        self._tell_leases(self._release(stop))

    def _release(self, stop: StopWorker) -> Release:
        return Release(min(self._stop_waiting_at, stop.until_at), stop.until_at)

    def _say_stopped(self, *, has_let_go: bool = True) -> None:
        assert self._stop is not None
        self.state = "stopped"
        unfinished = self._stop.stopped.unfinished
        self._worker.log.info("kcl_py.worker.stopped", clean=has_let_go and not unfinished, unfinished=unfinished)
        self._stop.stopped.resolve(has_let_go=has_let_go)
