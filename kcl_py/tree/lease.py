"""The Lease: the only writer of its row. Takes it, renews it, hands it over, completes or releases it.

Possession is only ever an acknowledged write of its own. One write is in flight at a time, in a task; its outcome
comes back as a message. What is to be written next is worked out anew each time from what is known. Starts, drains and
abandons the Pipeline. See docs/leases.md. Mirrors: ``KinesisClient.Stream.Shard.Lease`` (Elixir).
"""

from collections.abc import Awaitable, Callable
from functools import partial

from actors import Actor, Ref, Timer
from kcl_py.delivery.retry import Backoff
from kcl_py.leases import rules
from kcl_py.leases.possession import Possession
from kcl_py.leases.receiving import Receiving, Step
from kcl_py.leases.row import LeaseRow
from kcl_py.leases.store import Write
from kcl_py.leases.throughput import Throughput
from kcl_py.leases.view import How
from kcl_py.leases.writer import Settled, Writer
from kcl_py.tree.agenda import Agenda
from kcl_py.tree.checkpoints import Checkpoints
from kcl_py.tree.lease_requests import Alarm, ChildrenMade, Failed, Polled, make_children, poll
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
    Initialized,
    MemberGone,
    OpenShard,
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
"""How often a receiver looks whether the holder has let go: a shard that moves stands still for as long."""
JITTER = 0.1
"""Part of the heartbeat period by which it varies, so that a fleet's writes spread."""
RETRY_S = 0.3
"""Pause after a request that failed, such as a write that was throttled; doubles up to half a heartbeat period."""


class Lease(Actor):
    """The lease of one shard.

    Args:
        worker: what the worker's actors share.
        opening: the row as it was seen, how it is to be taken, and who hears what becomes of it.
        pipeline: delivers the shard, started already and born stopped.
    """

    def __init__(self, worker: Worker, opening: OpenShard, pipeline: Ref) -> None:
        row = opening.row
        self._worker, self._options, self._me = worker, worker.config.leases, worker.owner
        self._pipeline, self._coordinator = pipeline, opening.coordinator
        self._key, self._previous = row.key, row.holder
        self._how, self._why = opening.how, opening.why or opening.how.value
        self._asked_by: str | None = None
        self._log = worker.log.bind(shard_id=row.key)
        self._writer = Writer(worker.store, worker.gate, worker.clock)
        self._possession = Possession(
            row, worker.pulse, failover_s=self._options.failover_s, margin_s=self._options.margin_s
        )
        self._fence = self._possession.fence
        self._receiving = Receiving(self._me, row, seen_at=opening.seen_at, failover_s=self._options.failover_s)
        self._checkpoints = Checkpoints(worker.config.checkpoint)
        self._agenda = Agenda(worker.owner, worker.stream.identity, self._checkpoints, Throughput(), opening.fault)
        self._is_busy = self._is_pausing = self._is_confirm_wanted = False
        self._backoff = Backoff(RETRY_S, self._options.heartbeat_s / 2, worker.ids.jitter)
        self._alarms: dict[Alarm, Timer] = {}
        self.state = "taking"

    async def on_start(self) -> None:
        match self._how:
            case How.AWAIT:
                self._await()
            case How.HANDOFF:
                self.state = "requesting"
                self._send(rules.start_handoff(self._row, owner=self._me))
            case How.OWN if self._row.owner != self._me and self._row.holder == self._me:
                self._pass_on()
            case _:
                self._take()

    async def on_message(self, message: object) -> None:
        if isinstance(message, Settled | Polled | ChildrenMade | Failed):
            self._is_busy = False
        match message:
            case Checkpoint():
                self._note_checkpoint(message)
            case _ if self.state == "over" or (self.state == "lost" and isinstance(message, Settled)):
                return  # in the second case the Pipeline says when this is over
            case Settled():
                self._settle(message)
            case Polled():
                self._look_at_poll(message)
            case ChildrenMade(children):
                self._agenda.children = children
            case Failed(error, begun_at):
                self._retry(error, sent_at=begun_at)
            case Alarm.BEAT:
                self._agenda.is_beat_due, self._is_pausing = True, False
            case Confirm():
                self._agenda.is_beat_due = self._is_confirm_wanted = True
            case Alarm.POLL:
                self._poll()
            case Alarm.STOP_WAITING:
                self._drain(Why.STOP)
            case Alarm.DEADLINE:
                pass  # looked at below, as after every message
            case Progress():
                self._checkpoints.progress = message
                self._agenda.is_beat_due |= self._checkpoints.is_pressing(self.clock.monotonic())
            case PipelineStarted():
                self._coordinator.tell(Initialized(self._key))
            case Halted(halt):
                self._agenda.halt, self._agenda.is_beat_due = halt, True
            case Complete():
                self._agenda.completion = message
            case Drained():
                self._note_drained(message)
            case Hint(row):
                self._agenda.is_beat_due |= self._possession.is_behind(row)
            case MemberGone(owner):
                self._agenda.gone = owner
            case Release():
                self._stop_soon(message)
            case _:
                self.unhandled(message)
        self._go_on()

    def _go_on(self) -> None:
        """Send the next write, if one is to be sent and none is in flight."""
        if not self._possession.is_held:
            return
        now = self.clock.monotonic()
        if self._fence.is_over(now):
            self._lose("its deadline passed without an acknowledged heartbeat")
        elif self._is_busy or self._is_pausing:
            return
        elif self._agenda.must_make_children(now):
            self._make_children()
        else:
            if self._agenda.may_resume(self._row):
                self._resume_when_confirmed()
            now_ms = int(self.clock.time() * 1000)
            write = self._agenda.next_write(self._row, self._possession.token, now=now, now_ms=now_ms)
            if write is not None:
                self._send(write)

    def _send(self, write: Write) -> None:
        if self._possession.is_held:
            not_after = self._possession.deadline_at
            self._agenda.is_beat_due = False
            self._arm_beat()
        else:
            not_after = self.clock.monotonic() + self._options.failover_s
        self._request(lambda: self._writer.carry_out(write, not_after=not_after))

    def _request(self, work: Callable[[], Awaitable[object]]) -> None:
        self._is_busy = True
        self.run_task(work, done=lambda outcome: outcome)

    def _arm_beat(self) -> None:
        is_looking_out = self._agenda.stop is not None and not self._agenda.is_draining
        period_s = POLL_S if is_looking_out else self._options.heartbeat_s
        self._set_alarm(Alarm.BEAT, period_s * self._worker.ids.jitter(1 - JITTER, 1.0))

    def _settle(self, settled: Settled) -> None:
        if settled.outcome in ("no_effect", "unknown"):
            if settled.outcome == "unknown":
                self._possession.note_sent(settled)
            self._retry(settled.error, sent_at=settled.sent_at)
            return
        has_succeeded = settled.outcome == "succeeded"
        match settled.write.operation:
            case "take" if has_succeeded:
                self._begin(settled)
            case "start handoff" if has_succeeded and settled.row is not None:
                self._possession.row = settled.row
                self._log.info("kcl_py.lease.asked_for", holder=settled.row.holder, why=self._why)
                self._coordinator.tell(Awaiting(settled.row))
                self._await()
            case "cancel handoff by receiver" if not has_succeeded:
                self._await()
            case "take" if self._how is How.HANDOFF:
                self._await()  # another may have asked for it meanwhile
            case _ if self._possession.is_held:
                self._settle_held(settled)
            case _:
                self._give_up(settled.row)

    def _begin(self, taken: Settled) -> None:
        epoch = self._possession.begin(taken)
        self._log = self._log.bind(epoch=epoch)
        self._log.info("kcl_py.lease.taken", why=self._how.value, previous=self._previous)
        self.state = "held"
        self._checkpoints.begin(self._row.position)
        self._agenda.throughput.begin(self._row.throughput_kbps, self.clock.monotonic())
        self._arm_beat()
        self._arm_deadline()
        self._coordinator.tell(Acquired(self._row))
        if self._agenda.fault is not None:
            return
        self._pipeline.tell(Start(self.ref, self._row, self._fence, epoch))
        self._look()
        if self._agenda.stop is not None:
            self._drain(Why.STOP)

    def _settle_held(self, settled: Settled) -> None:
        if settled.outcome == "lost" or settled.row is None:
            self._lose("its row has been deleted" if settled.row is None else "another worker has taken it")
        elif settled.outcome == "again":
            self._possession.adopt(settled)
            self._agenda.is_beat_due = True
            self._look()
            if settled.error is not None:
                self._retry(settled.error, sent_at=settled.sent_at)
        elif settled.write.operation in ("transfer", "release", "complete"):
            self._finish(settled.write.operation, settled.row)
        else:
            self._backoff.reset()
            self._possession.acknowledge(settled)
            if settled.write.operation == "cancel handoff by holder":
                self._keep("it is dead")
                self._agenda.gone = None  # should it ask again, it is alive
            self._arm_deadline()
            if self._checkpoints.note_stored(self._row.position, self.clock.monotonic()):
                self._log.info("kcl_py.checkpoint.stored", position=str(self._row.position))
            self._confirm()
            self._look()

    def _confirm(self) -> None:
        if not self._is_confirm_wanted:
            return
        if self._fence.needs_confirmation(self.clock.monotonic()):
            self._agenda.is_beat_due = True
        else:
            self._is_confirm_wanted = False
            self._pipeline.tell(Confirmed())

    def _retry(self, error: Exception | None, *, sent_at: float) -> None:
        if error is not None:
            self._log.warning("kcl_py.lease.request_failed", error=str(error))
        now = self.clock.monotonic()
        pause_s = sent_at + self._backoff.next_s() - now
        if self._possession.is_held:
            self._is_pausing = True
            self._set_alarm(Alarm.BEAT, pause_s)
        elif (self.state == "awaiting" or self._how is How.HANDOFF) and not self._agenda.is_out_of_time(now):
            self.state = "awaiting"
            self._set_alarm(Alarm.POLL, pause_s)
        else:
            self._give_up(None)

    def _take(self) -> None:
        self.state = "taking"
        now_ms, token = int(self.clock.time() * 1000), self._worker.ids.token()
        why = self._why if self._how is How.HANDOFF else self._how.value
        self._send(
            rules.take(self._row, owner=self._me, token=token, now_ms=now_ms, stream=self._agenda.stream, why=why)
        )

    def _pass_on(self) -> None:
        """Asked for the shard before we ever took it, or with no Pipeline of it: transfer at once."""
        self._send(rules.transfer(self._row, owner=self._me))

    def _await(self) -> None:
        self.state = "awaiting"
        self._set_alarm(Alarm.POLL, 0)

    def _poll(self) -> None:
        if self.state == "awaiting" and not self._is_busy:
            self._request(lambda: poll(self._worker, self._key))

    def _look_at_poll(self, polled: Polled) -> None:
        row, is_stopping = polled.row, self._agenda.stop is not None
        self._possession.row = row or self._row
        match self._receiving.step(row, begun_at=polled.begun_at, ended_at=polled.ended_at, is_stopping=is_stopping):
            case Step.PASS_ON:
                self._pass_on()
            case Step.LEAVE:
                self._give_up(row)
            case Step.WITHDRAW:
                self._send(rules.cancel_handoff_by_receiver(self._row, owner=self._me))
            case Step.WAIT:
                self._set_alarm(Alarm.POLL, POLL_S)
            case step:
                self._how = How.HANDOFF if step is Step.TAKE else How.EXPIRED
                self._take()

    def _look(self) -> None:
        """See in the row as it now is whether a handoff was asked for, or called off."""
        self._agenda.note_row(self._row, self.clock.monotonic())
        if not self._row.in_handoff:
            self._keep("it has taken that back")
        if self._row.in_handoff and not self._agenda.is_draining:
            self._asked_by = self._row.owner
            self._log.info("kcl_py.lease.handoff_requested", by=self._asked_by)
            self._drain(Why.HANDOFF)

    def _keep(self, why: str) -> None:
        if self._asked_by is not None:
            self._log.info("kcl_py.lease.kept", asked_by=self._asked_by, why=why)
            self._asked_by = None

    def _drain(self, why: Why) -> None:
        if self._agenda.is_draining or not self._possession.is_held:
            return
        self.state = "draining"
        drain = self._agenda.begin_drain(why, self.clock.monotonic(), timeout_s=self._options.handoff_timeout_s)
        if self._agenda.fault is None:
            self._pipeline.tell(drain)

    def _note_drained(self, drained: Drained) -> None:
        if self.state == "lost":
            self._give_up(self._row, drained.unfinished + self._checkpoints.unstored)
        else:
            self._agenda.drained = drained

    def _resume_when_confirmed(self) -> None:
        """The handoff was called off: go on, once a heartbeat sent since then has been acknowledged."""
        if self._fence.confirmed_at >= self._agenda.called_off_at:
            self.state = "held"
            self._pipeline.tell(Resume(self._agenda.begin_again(self._row)))
        else:
            self._agenda.is_beat_due = True

    def _note_checkpoint(self, checkpoint: Checkpoint) -> None:
        if self._possession.is_held and self._possession.token == checkpoint.token:
            self._checkpoints.ask(checkpoint)
        else:
            checkpoint.answer.resolve(CheckpointOutcome.LOST)

    def _stop_soon(self, stop: Release) -> None:
        self._agenda.stop = stop
        if self._possession.is_held and not self._agenda.is_draining:
            self._agenda.is_beat_due = True
            self._set_alarm(Alarm.STOP_WAITING, stop.wait_until_at - self.clock.monotonic())
        elif self._agenda.is_draining:
            self._pipeline.tell(Drain(Why.STOP, stop.until_at))

    def _make_children(self) -> None:
        completion = self._agenda.completion
        known = completion.children if completion is not None else ()
        self._request(partial(make_children, self._worker, self._row, self._possession.token, known))

    def _finish(self, operation: str, row: LeaseRow) -> None:
        """The row is no longer ours, in order."""
        receiver = self._row.owner
        self._possession.row = row
        if operation == "complete":
            children = self._agenda.children or ()
            self._log.info("kcl_py.lease.completed", children=list(children))
            self._end()
            self._coordinator.tell(ShardEnded(row, children))
            return
        if operation == "transfer":
            self._log.info("kcl_py.lease.transferred", to=receiver)
        else:
            self._log.info("kcl_py.lease.released", **({"fault": self._agenda.fault} if self._agenda.fault else {}))
        self._give_up(row, self._agenda.unfinished)

    def _lose(self, why: str) -> None:
        self._log.warning("kcl_py.lease.lost", why=why)
        self._possession.end()
        self._checkpoints.refuse()
        self.state = "lost"
        if self._agenda.fault is not None or self._agenda.drained is not None:
            self._give_up(self._row, self._agenda.unfinished + self._checkpoints.unstored)
        else:
            self._pipeline.tell(Abandon())

    def _give_up(self, row: LeaseRow | None, unfinished: int = 0) -> None:
        self._end()
        self._coordinator.tell(GaveUp(self._key, row, unfinished))

    def _end(self) -> None:
        self.state = "over"
        self._possession.end()
        self._checkpoints.refuse()
        for alarm in self._alarms.values():
            alarm.cancel()

    @property
    def _row(self) -> LeaseRow:
        return self._possession.row

    def _arm_deadline(self) -> None:
        self._set_alarm(Alarm.DEADLINE, self._possession.deadline_at - self.clock.monotonic())

    def _set_alarm(self, alarm: Alarm, delay_s: float) -> None:
        if alarm in self._alarms:
            self._alarms[alarm].cancel()
        self._alarms[alarm] = self.send_after(max(delay_s, 0), alarm)
