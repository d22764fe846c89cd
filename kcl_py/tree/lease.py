"""The Lease: the only writer of its row. Takes it, renews it, hands it over, completes or releases it.

Possession is only ever an acknowledged write of its own. One write is in flight at a time, in a task; its outcome
comes back as a message. What is to be written next is worked out anew each time from what is known. Starts, drains and
abandons the Pipeline. See lease-protocol 2, 3 and 5. Mirrors: ``KinesisClient.Stream.Shard.Lease`` (Elixir).
"""

from dataclasses import dataclass, replace

from actors import Actor, OwnedTask, Ref
from kcl_py.errors import MissingError, RequestError
from kcl_py.leases import rules
from kcl_py.leases.fence import Fence
from kcl_py.leases.row import Halt, LeaseRow
from kcl_py.leases.rules import Report
from kcl_py.leases.sightings import Sightings
from kcl_py.leases.store import Write
from kcl_py.leases.tenure import Tenure, deadline
from kcl_py.leases.writer import Settled, Writer
from kcl_py.records import SequenceNumber
from kcl_py.sources.source import ShardInfo
from kcl_py.tree.checkpoints import Checkpoints
from kcl_py.tree.messages import (
    Abandon,
    Acquired,
    Awaiting,
    Checkpoint,
    CheckpointOutcome,
    Complete,
    Confirm,
    Confirmed,
    Drain,
    Drained,
    GaveUp,
    Halted,
    Hint,
    How,
    Initialized,
    MemberGone,
    PipelineStarted,
    Progress,
    Release,
    Resume,
    ShardEnded,
    Start,
    Why,
)
from kcl_py.tree.worker import Worker

POLL_S = 0.15
"""How often a receiver looks whether the holder has let go. Source: lease-protocol 5."""
JITTER = 0.1
"""Part of the heartbeat period by which it varies, so that a fleet's writes spread."""
RETRY_S = 0.3
"""Pause after a write that had no effect, such as one that was throttled."""


@dataclass(frozen=True, slots=True)
class _Beat:
    """The heartbeat is due."""


@dataclass(frozen=True, slots=True)
class _Deadline:
    """The tenure may be over."""


@dataclass(frozen=True, slots=True)
class _Poll:
    """Look whether the holder has let go."""


@dataclass(frozen=True, slots=True)
class _Polled:
    begun_at: float
    ended_at: float
    row: LeaseRow | None


@dataclass(frozen=True, slots=True)
class _Failed:
    error: RequestError


@dataclass(frozen=True, slots=True)
class _StopWaiting:
    """Nobody has pulled the shard of this stopping worker: let go of it."""


@dataclass(frozen=True, slots=True)
class _ChildrenMade:
    children: tuple[str, ...]


def _failed(error: RequestError) -> _Failed:
    """Take a failed request as an outcome; that the table is gone ends the Lease."""
    if isinstance(error, MissingError):
        raise error
    return _Failed(error)


class Lease(Actor):
    """The lease of one shard.

    Args:
        worker: what the worker's actors share.
        row: the row as it was seen when the Coordinator decided.
        how: how it is to be taken.
        pipeline: delivers the shard, started already and born stopped.
        coordinator: hears what becomes of it.
        fault: set to take the row only to release it again, saying this.
    """

    def __init__(
        self, worker: Worker, *, row: LeaseRow, how: How, pipeline: Ref, coordinator: Ref, fault: str | None
    ) -> None:
        self._worker, self._row, self._how = worker, row, how
        self._pipeline, self._coordinator, self._fault = pipeline, coordinator, fault
        self._log = worker.log.bind(shard_id=row.key)
        self._writer = Writer(worker.store, worker.gate, worker.clock)
        self._fence = Fence(worker.pulse)
        self._sightings = Sightings(worker.config.leases.failover_s)
        self._previous = row.holder
        self._in_flight: str | None = None
        self._first_sent_at: float | None = None
        self._beat_is_due = False
        self._timers: dict[str, OwnedTask] = {}
        self._checkpoints = Checkpoints(worker.config.checkpoint)
        self._halt: Halt | None = None
        self._drained: Drained | None = None
        self._is_draining = False
        self._completion: Complete | None = None
        self._children: tuple[str, ...] | None = None
        self._confirm_from = float("-inf")
        self._is_confirm_wanted = False
        self._stop: Release | None = None
        self._gone: str | None = None
        self.state = "taking"

    # --- what comes in -----------------------------------------------------------------------------------------

    async def on_start(self) -> None:
        match self._how:
            case How.AWAIT:
                self._await()
            case How.HANDOFF:
                self.state = "requesting"
                self._send(rules.start_handoff(self._row, owner=self._me))
            case _:
                self._take()

    async def on_message(self, message: object) -> None:
        if self.state == "over" and not isinstance(message, Checkpoint):
            return
        match message:
            case Settled():
                self._in_flight = None
                self._settle(message)
            case _Beat() | Confirm():
                self._beat_is_due = True
                self._is_confirm_wanted |= isinstance(message, Confirm)
            case _Deadline():
                pass
            case _Poll():
                self._poll()
            case _Polled():
                self._look_at_poll(message)
            case _Failed(error):
                self._in_flight = None
                self._retry(error)
            case Progress():
                self._checkpoints.progress = message
                self._beat_is_due |= self._checkpoints.is_pressing(self.clock.monotonic())
            case PipelineStarted():
                self._coordinator.tell(Initialized(self._row.key))
            case Checkpoint():
                self._note_checkpoint(message)
            case Halted(halt):
                self._halt, self._beat_is_due = halt, True
            case Complete():
                self._completion = message
            case _ChildrenMade(children):
                self._in_flight, self._children = None, children
            case Drained():
                self._note_drained(message)
            case Hint(row):
                self._look_at_hint(row)
            case MemberGone(owner):
                self._gone = owner
            case Release():
                self._stop_soon(message)
            case _StopWaiting():
                self._drain(Why.STOP)
            case _:
                self.unhandled(message)
        self._pump()

    # --- what goes out -----------------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Send the next write, if one is to be sent and none is in flight."""
        if self._fence.tenure is None or self.state in ("over", "lost"):
            return
        now = self.clock.monotonic()
        if self._fence.is_over(now):
            self._lose("its deadline passed without an acknowledged heartbeat")
        elif self._in_flight is None:
            if self._completion is not None and self._children is None and not self._beat_is_due:
                self._make_children(self._completion)
            elif (write := self._next_write(now)) is not None:
                self._send(write)

    def _next_write(self, now: float) -> Write | None:
        row, me, token = self._row, self._me, self._token
        if row.in_handoff and row.owner == self._gone:
            return rules.cancel_handoff_by_holder(row, owner=me, token=token)
        if self._children is not None:
            return rules.complete(row, owner=me, token=token, children=self._children)
        if self._drained is not None:
            if row.in_handoff:
                return rules.transfer(row, owner=me, position=self._checkpoints.final(self._drained.prefix))
            if self._stop is not None:
                return self._release(self._drained)
            self._resume_when_confirmed()
        if self._fault is not None and not row.in_handoff:
            return rules.release(row, owner=me, token=token, fault=self._fault)
        if (asked := self._checkpoints.asked()) is not None:
            return rules.checkpoint(row, owner=me, token=token, report=self._report(asked))
        if self._beat_is_due:
            return rules.heartbeat(row, owner=me, token=token, report=self._report(self._checkpoints.due(now)))
        return None

    def _send(self, write: Write) -> None:
        self._in_flight = write.operation
        tenure = self._fence.tenure
        failover_s = self._worker.config.leases.failover_s
        not_after = tenure.deadline_at if tenure is not None else self.clock.monotonic() + failover_s
        if tenure is not None:
            self._beat_is_due = False
            self._arm_beat()
        self.run_task(lambda: self._writer.carry_out(write, not_after=not_after), done=lambda settled: settled)

    def _arm_beat(self) -> None:
        is_stopping = self._stop is not None and not self._is_draining
        period_s = POLL_S if is_stopping else self._worker.config.leases.heartbeat_s
        spread = self._worker.ids.jitter(1 - JITTER, 1.0)
        self._timer("beat", period_s * spread, _Beat())

    def _report(self, position: SequenceNumber | None) -> Report:
        progress, row = self._checkpoints.progress, self._row
        return Report(
            position=position,
            lag_ms=progress.lag_ms if progress else None,
            lag_at_ms=int(self.clock.time() * 1000) if progress else None,
            halted=self._halt,
            stream=self._worker.stream.identity if row.native.stream is None else None,
        )

    # --- what became of it -------------------------------------------------------------------------------------

    def _settle(self, settled: Settled) -> None:
        write, row = settled.write, settled.row
        if settled.outcome in ("no_effect", "unknown"):
            self._note_sent(settled)
            self._retry(settled.error)
            return
        match write.operation:
            case "take":
                self._settle_take(settled)
            case "start handoff":
                if settled.outcome == "succeeded" and row is not None:
                    self._row = row
                    self._coordinator.tell(Awaiting(row))
                    self._await()
                else:
                    self._give_up(row)
            case "cancel handoff by receiver":
                if settled.outcome == "succeeded":
                    self._give_up(row)
                else:
                    self._await()
            case _:
                self._settle_held(settled)

    def _settle_take(self, settled: Settled) -> None:
        if settled.outcome != "succeeded" or settled.row is None:
            self._give_up(settled.row)
            return
        write, self._row = settled.write, settled.row
        epoch = int(write.set[("leaseCounter",)])
        assert write.token is not None
        self._fence.tenure = Tenure(self._me, write.token, epoch, self._deadline(settled.sent_at))
        self._acknowledge(settled.sent_at)
        self._log = self._log.bind(epoch=epoch)
        self._log.info("kcl_py.lease.taken", why=self._how.value, previous=self._previous)
        self.state = "held"
        self._arm_beat()
        self._coordinator.tell(Acquired(self._row))
        if self._fault is None:
            self._pipeline.tell(Start(self.ref, self._row, self._fence, epoch))
            self._look()
            if self._stop is not None:
                self._drain(Why.STOP)

    def _settle_held(self, settled: Settled) -> None:
        write, row = settled.write, settled.row
        if settled.outcome == "lost" or row is None:
            self._lose("another worker has taken it" if row is not None else "its row has been deleted")
            return
        if settled.outcome == "again":
            self._adopt(settled)
        elif write.operation in ("transfer", "release", "complete"):
            self._finish(write.operation, row)
            return
        else:
            base = self._first_sent_at if settled.by_read and self._first_sent_at is not None else settled.sent_at
            self._first_sent_at = None
            self._row = row
            if self._checkpoints.note_stored(row.position, self.clock.monotonic()):
                self._log.debug("kcl_py.checkpoint.stored", position=str(row.position))
            self._acknowledge(base)
        self._look()

    def _adopt(self, settled: Settled) -> None:
        """The token is still mine: go on from the counter that was read."""
        assert settled.row is not None
        if settled.row.counter != self._row.counter:
            self._first_sent_at = None
        else:
            self._note_sent(settled)
        self._row = settled.row
        self._beat_is_due = True

    def _note_sent(self, settled: Settled) -> None:
        if self._first_sent_at is None:
            self._first_sent_at = settled.sent_at

    def _acknowledge(self, base: float) -> None:
        tenure = self._fence.tenure
        assert tenure is not None
        self._fence.tenure = replace(tenure, deadline_at=max(tenure.deadline_at, self._deadline(base)))
        self._fence.confirmed_at = max(self._fence.confirmed_at, base)
        now = self.clock.monotonic()
        self._timer("deadline", self._fence.tenure.deadline_at - now, _Deadline())
        if self._is_confirm_wanted:
            if self._fence.needs_confirmation(now):
                self._beat_is_due = True
            else:
                self._is_confirm_wanted = False
                self._pipeline.tell(Confirmed())

    def _deadline(self, base: float) -> float:
        leases = self._worker.config.leases
        return deadline(base, leases.failover_s, leases.margin_s)

    def _retry(self, error: Exception | None) -> None:
        if error is not None:
            self._log.warning("kcl_py.lease.request_failed", error=str(error))
        if self._fence.tenure is not None:
            self._timer("beat", RETRY_S, _Beat())
        elif self.state == "awaiting":
            self._timer("poll", RETRY_S, _Poll())
        else:
            self._give_up(None)

    # --- taking and waiting ------------------------------------------------------------------------------------

    def _take(self) -> None:
        self.state = "taking"
        now_ms = int(self.clock.time() * 1000)
        stream = self._worker.stream.identity
        self._send(rules.take(self._row, owner=self._me, token=self._worker.ids.token(), now_ms=now_ms, stream=stream))

    def _await(self) -> None:
        self.state = "awaiting"
        self._timer("poll", 0, _Poll())

    def _poll(self) -> None:
        if self.state != "awaiting" or self._in_flight is not None:
            return
        self._in_flight = "poll"
        clock, store, key = self.clock, self._worker.store, self._row.key

        async def read() -> _Polled | _Failed:
            begun_at = clock.monotonic()
            try:
                row = await store.read(key)
            except RequestError as error:
                return _failed(error)
            return _Polled(begun_at, clock.monotonic(), row)

        self.run_task(read, done=lambda outcome: outcome)

    def _look_at_poll(self, polled: _Polled) -> None:
        self._in_flight = None
        row = polled.row
        if row is None or row.owner != self._me or row.has_ended:
            self._give_up(row)
            return
        self._row = row
        if not row.in_handoff:
            self._how = How.HANDOFF
            self._take()
        elif self._sightings.has_expired(row.key, row.counter, begun_at=polled.begun_at, ended_at=polled.ended_at):
            self._how = How.EXPIRED
            self._take()
        elif self._stop is not None:
            self._send(rules.cancel_handoff_by_receiver(row, owner=self._me))
        else:
            self._timer("poll", POLL_S, _Poll())

    def _look_at_hint(self, row: LeaseRow) -> None:
        """Answer a scanned row that knows more than we do with a heartbeat, never with a belief."""
        mine = self._row
        if self._fence.tenure is None or row.counter < mine.counter:
            return
        if (row.counter, row.owner, row.checkpoint_owner) != (mine.counter, mine.owner, mine.checkpoint_owner):
            self._beat_is_due = True

    # --- holding -----------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """See in the row as it now is whether a handoff was asked for, or called off."""
        row = self._row
        if row.in_handoff:
            if not self._is_draining:
                self._log.info("kcl_py.lease.handoff_requested", by=row.owner)
                self._drain(Why.HANDOFF)
        elif self._is_draining and self._stop is None:
            self._confirm_from = self.clock.monotonic()

    def _drain(self, why: Why) -> None:
        if self._is_draining or self._fence.tenure is None:
            return
        self._is_draining, self.state = True, "draining"
        now = self.clock.monotonic()
        until_at = now + self._worker.config.leases.handoff_timeout_s if why is Why.HANDOFF else float("inf")
        if self._stop is not None:
            until_at = min(until_at, self._stop.until_at)
        self._pipeline.tell(Drain(why, until_at))

    def _note_drained(self, drained: Drained) -> None:
        if self.state == "lost":
            self._give_up(self._row, drained.unfinished)
        else:
            self._drained = drained

    def _resume_when_confirmed(self) -> None:
        """The handoff was called off: go on, once a heartbeat sent since then has been acknowledged."""
        if self._fence.confirmed_at >= self._confirm_from:
            self._is_draining, self._drained, self.state = False, None, "held"
            self._pipeline.tell(Resume())
        else:
            self._beat_is_due = True

    def _note_checkpoint(self, checkpoint: Checkpoint) -> None:
        tenure = self._fence.tenure
        if tenure is None or tenure.token != checkpoint.token:
            checkpoint.answer.resolve(CheckpointOutcome.LOST)
        else:
            self._checkpoints.ask(checkpoint)

    # --- ending ------------------------------------------------------------------------------------------------

    def _stop_soon(self, stop: Release) -> None:
        self._stop = stop
        if self._fence.tenure is not None and not self._is_draining:
            self._beat_is_due = True
            self._timer("stop", max(stop.wait_until_at - self.clock.monotonic(), 0), _StopWaiting())

    def _release(self, drained: Drained) -> Write:
        delivered = None if drained.delivered is None or drained.unfinished else str(drained.delivered)
        return rules.release(
            self._row,
            owner=self._me,
            token=self._token,
            position=self._checkpoints.final(drained.prefix),
            delivered=delivered,
        )

    def _make_children(self, completion: Complete) -> None:
        self._in_flight = "create children"
        self.run_task(lambda: self._create_children(completion.children), done=lambda outcome: outcome)

    async def _create_children(self, known: tuple[ShardInfo, ...]) -> _ChildrenMade | _Failed:
        try:
            return _ChildrenMade(await self._find_and_create(known))
        except RequestError as error:
            return _failed(error)

    async def _find_and_create(self, known: tuple[ShardInfo, ...]) -> tuple[str, ...]:
        key, store, stream = self._row.key, self._worker.store, self._worker.stream.identity
        children = known
        if not children:
            listing = await self._worker.source.list_shards()
            children = tuple(shard for shard in listing.shards if key in shard.parents)
        parent = rules.parent_is_mine(self._row, owner=self._me, token=self._token)
        for child in children:
            await store.create(rules.new_row(child, stream=stream), parent=parent)
        return tuple(child.shard_id for child in children)

    def _finish(self, operation: str, row: LeaseRow) -> None:
        """The row is no longer ours, in order."""
        receiver, self._row = self._row.owner, row
        self._checkpoints.refuse()
        unfinished = self._drained.unfinished if self._drained is not None else 0
        match operation:
            case "transfer":
                self._log.info("kcl_py.lease.transferred", to=receiver)
            case "release":
                self._log.info("kcl_py.lease.released", **({"fault": self._fault} if self._fault else {}))
            case _:
                children = self._children or ()
                self._log.info("kcl_py.lease.completed", children=list(children))
                self.state = "over"
                self._fence.tenure = None
                self._coordinator.tell(ShardEnded(row, children))
                return
        self._give_up(row, unfinished)

    def _lose(self, why: str) -> None:
        self._log.warning("kcl_py.lease.lost", why=why)
        self.state = "lost"
        self._fence.tenure = None
        self._checkpoints.refuse()
        if self._fault is not None:
            self._give_up(self._row)
        else:
            self._pipeline.tell(Abandon())

    def _give_up(self, row: LeaseRow | None, unfinished: int = 0) -> None:
        self.state = "over"
        self._fence.tenure = None
        for timer in self._timers.values():
            timer.cancel()
        self._coordinator.tell(GaveUp(self._row.key, row, unfinished))

    # --- small things ------------------------------------------------------------------------------------------

    @property
    def _me(self) -> str:
        return self._worker.owner

    @property
    def _token(self) -> str:
        assert self._fence.tenure is not None
        return self._fence.tenure.token

    def _timer(self, name: str, delay_s: float, message: object) -> None:
        if name in self._timers:
            self._timers[name].cancel()
        self._timers[name] = self.send_after(max(delay_s, 0), message)
