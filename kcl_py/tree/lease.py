"""The Lease: the only writer of its row. Takes it, renews it, hands it over, completes or releases it.

Possession is only ever an acknowledged write of its own. One write is in flight at a time, in a task; its outcome
comes back as a message. What is to be written next is worked out anew each time from what is known. Starts, drains and
abandons the Pipeline. See docs/leases.md. Mirrors: ``KinesisClient.Stream.Shard.Lease`` (Elixir).
"""

from functools import partial

from actors import Actor, Ref
from kcl_py.leases.fence import Fence
from kcl_py.leases.possession import Possession
from kcl_py.leases.receiving import Step
from kcl_py.leases.requests import asks_to_let_go
from kcl_py.leases.row import LeaseRow
from kcl_py.leases.store import Write
from kcl_py.leases.throughput import Throughput
from kcl_py.leases.writer import Settled
from kcl_py.tree.agenda import Agenda
from kcl_py.tree.alarms import JITTER, POLL_S, Alarm, Alarms
from kcl_py.tree.asking import Checkpoint, Prepare, Transact
from kcl_py.tree.checkpoints import Checkpoints
from kcl_py.tree.claim import Claim
from kcl_py.tree.herald import Herald
from kcl_py.tree.lease_requests import ChildrenMade, Failed, Polled, make_children, poll
from kcl_py.tree.messages import (
    Abandon,
    Complete,
    Confirm,
    Confirmed,
    Drain,
    Drained,
    Halted,
    Hint,
    MemberGone,
    OpenShard,
    PipelineStarted,
    Progress,
    Release,
    Resume,
    Start,
    Why,
)
from kcl_py.tree.pen import Pen
from kcl_py.tree.steering import LookNow, Pause, Rested
from kcl_py.tree.worker import Worker


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
        self._pipeline, self._herald = pipeline, Herald(worker, row.key, opening.coordinator)
        self._key, self._claim, self._alarms = row.key, Claim(worker, opening), Alarms(self.send_after)
        self._pen = Pen(worker, partial(self.run_task, done=lambda outcome: outcome))
        self._possession = Possession(
            row, worker.pulse, failover_s=self._options.failover_s, margin_s=self._options.margin_s
        )
        self._checkpoints = Checkpoints(worker.config.checkpoint, max_ahead_s=worker.config.delivery.max_ahead.seconds)
        self._agenda = Agenda(
            self._me, worker.stream.identity, self._checkpoints, Throughput(), worker.ids.token, opening.fault
        )
        self._is_confirm_wanted = self._has_started = self._is_deleted = False
        self.state = "taking"

    async def on_start(self) -> None:
        step = self._claim.first(self._row)
        self._await() if step is Step.WAIT else self._step(step)

    async def on_message(self, message: object) -> None:
        if isinstance(message, Settled | Polled | ChildrenMade | Failed):
            self._pen.is_busy = False
        match message:
            case Checkpoint() | Prepare() | Transact():
                self._checkpoints.ask(message, self._possession.token if self._possession.is_held else None)
            case _ if self.state == "over" or (self.state == "lost" and isinstance(message, Settled)):
                return  # in the second case the Pipeline says when this is over
            case Settled():
                self._settle(message)
            case Polled():
                self._look_at_poll(message)
            case Progress() | Halted() | Complete() | MemberGone() | ChildrenMade() | Rested():
                self._agenda.note(message, self.clock.monotonic())
            case Failed(error, begun_at):
                self._retry(error, sent_at=begun_at)
            case Alarm.BEAT:
                self._agenda.is_beat_due, self._pen.is_pausing = True, False
            case Confirm():
                self._agenda.is_beat_due = self._is_confirm_wanted = True
            case Alarm.POLL:
                self._poll()
            case Alarm.STOP_WAITING:
                self._drain(Why.STOP)
            case PipelineStarted():
                self._herald.initialized()
            case Drained():
                self._note_drained(message)
            case Hint(row):
                self._agenda.is_beat_due |= self._possession.is_behind(row)
            case LookNow():
                self._agenda.is_beat_due = True
            case Release():
                self._stop_soon(message)
            case _ if message is not Alarm.DEADLINE:  # that is looked at below, as after every message
                self.unhandled(message)
        self._go_on()

    def _go_on(self) -> None:
        """Send the next write, if one is to be sent and none is in flight."""
        if not self._possession.is_held:
            return
        now = self.clock.monotonic()
        if self._fence.is_over(now):
            self._lose("its deadline passed without an acknowledged heartbeat")
        elif not self._pen.may_write:
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
        self._pen.write(write, not_after=not_after)

    def _arm_beat(self) -> None:
        is_looking_out = self._agenda.stop is not None and not self._agenda.is_draining
        period_s = POLL_S if is_looking_out else self._options.heartbeat_s
        self._alarms.set(Alarm.BEAT, period_s * self._worker.ids.jitter(1 - JITTER, 1.0))

    def _settle(self, settled: Settled) -> None:
        self._checkpoints.transactions.note_settled(settled)
        if settled.outcome == "refused":
            return
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
                self._herald.awaits(settled.row, why=self._claim.why)
                self._await()
            case "cancel handoff by receiver" if not has_succeeded:
                self._await()
            case "take" if self._claim.is_pull:
                self._await()  # another may have asked for it meanwhile
            case _ if self._possession.is_held:
                self._settle_held(settled)
            case _:
                self._give_up(settled.row)

    def _begin(self, taken: Settled) -> None:
        self._possession.begin(taken, self.clock.time())
        self.state = "held"
        self._checkpoints.begin(self._row.position)
        self._agenda.throughput.begin(self._row.throughput_kbps, self.clock.monotonic())
        self._arm_beat()
        self._arm_deadline()
        self._herald.took(self._row, self._possession.epoch, why=self._claim.how.value, previous=self._claim.previous)
        if self._agenda.fault is not None:
            return
        self._agenda.note_taken(self._row, by_read=taken.by_read)
        if not self._agenda.is_draining:
            self._start()
        self._look(is_first=True)

    def _start(self) -> None:
        """Have the Pipeline begin under the tenure as it now is."""
        self.state, self._has_started = "held", True
        if self._agenda.heeds_pause(self._row):
            self._herald.paused(self._row)
        held, paused_at_ms = self._possession, self._agenda.paused_at_ms
        self._pipeline.tell(Start(self.ref, self._row, held.fence, held.epoch, held.earlier, paused_at_ms))

    def _begin_anew(self, moved: Settled) -> None:
        """The reading was moved elsewhere, as somebody asked: the ownership before this one is over."""
        asked = self._row.native.request
        self._possession.begin_anew(moved, self._agenda.reached, self.clock.time())
        self._herald.moved(asked, self._possession.epoch)
        self._pen.note_success()
        self._agenda.begin_anew(self._row)
        self._arm_deadline()
        self._start()
        self._confirm()
        self._look(is_first=True)

    def _settle_held(self, settled: Settled) -> None:
        if settled.outcome == "lost" or settled.row is None:
            self._is_deleted = settled.row is None
            self._lose("its row has been deleted" if self._is_deleted else "another worker has taken it")
        elif settled.outcome == "again":
            self._possession.adopt(settled)
            self._agenda.is_beat_due = True
            self._note_stored()
            self._look()
            if settled.error is not None:
                self._retry(settled.error, sent_at=settled.sent_at)
        elif settled.write.operation in ("seek", "resume"):
            self._begin_anew(settled)
        elif settled.write.operation in ("transfer", "release", "complete"):
            self._finish(settled.write.operation, settled.row)
        else:
            if settled.write.operation == "refuse":
                self._herald.refused(self._row.native.request)
            self._pen.note_success()
            self._possession.acknowledge(settled)
            if settled.write.operation == "cancel handoff by holder":
                self._herald.kept("its own row has stood still for failover_s")
                self._agenda.gone = None  # should it ask again, it is alive
            self._arm_deadline()
            self._note_stored()
            self._confirm()
            self._look()

    def _note_stored(self) -> None:
        if self._checkpoints.note_stored(self._row, self.clock.monotonic()):
            self._herald.stored(self._row.position)

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
            self._herald.failed(error)
        now, pause_s = self.clock.monotonic(), self._pen.pause_s(sent_at)
        if self._possession.is_held:
            self._pen.is_pausing = True
            self._alarms.set(Alarm.BEAT, pause_s)
        elif (self.state == "awaiting" or self._claim.is_pull) and not self._agenda.is_out_of_time(now):
            self.state = "awaiting"
            self._alarms.set(Alarm.POLL, pause_s)
        else:
            self._give_up(None)

    def _step(self, step: Step) -> None:
        """Go one step further to the lease."""
        match step:
            case Step.ASK:
                self.state = "requesting"
            case Step.TAKE | Step.TAKE_EXPIRED:
                self.state = "taking"
            case Step.WAIT:
                self._alarms.set(Alarm.POLL, POLL_S)
        write = self._claim.write(step, self._row)
        if write is not None:
            self._send(write)

    def _await(self) -> None:
        self.state = "awaiting"
        self._alarms.set(Alarm.POLL, 0)

    def _poll(self) -> None:
        if self.state == "awaiting" and not self._pen.is_busy:
            self._pen.request(lambda: poll(self._worker, self._key))

    def _look_at_poll(self, polled: Polled) -> None:
        self._possession.row = polled.row or self._row
        step = self._claim.look(polled, is_stopping=self._agenda.stop is not None)
        if step is Step.LEAVE:
            self._give_up(polled.row)
        else:
            self._step(step)

    def _look(self, *, is_first: bool = False) -> None:
        """See in the row as it now is whether anything was asked for, or called off; in its first, whether to stop."""
        self._agenda.note_row(self._row, self.clock.monotonic())
        if self._has_started and self._agenda.heeds_pause(self._row):
            self._herald.paused(self._row)
            self._pipeline.tell(Pause(self._agenda.paused_at_ms))
        if not self._row.in_handoff:
            self._herald.kept("it has taken that back")
        if self._agenda.is_draining:
            return
        if self._row.in_handoff:
            self._herald.is_asked_for(self._row.owner)
            self._drain(Why.HANDOFF)
        elif self._agenda.asked(self._row) is not None and self._agenda.stop is None:
            self._drain(Why.REQUEST)
        elif is_first and self._agenda.stop is not None:
            self._drain(Why.STOP)

    def _drain(self, why: Why) -> None:
        if self._agenda.is_draining or not self._possession.is_held:
            return
        self.state = "draining"
        drain = self._agenda.begin_drain(why, self.clock.monotonic(), timeout_s=self._options.handoff_timeout_s)
        if self._agenda.fault is None:
            self._pipeline.tell(drain)

    def _note_drained(self, drained: Drained) -> None:
        if self.state == "lost":
            self._give_up(self._last_known, drained.unfinished + self._checkpoints.unstored)
        else:
            self._agenda.drained = drained

    def _resume_when_confirmed(self) -> None:
        """What was asked was called off: go on, once a heartbeat sent since then has been acknowledged."""
        if self._fence.confirmed_at >= self._agenda.called_off_at:
            self.state = "held"
            position = self._agenda.begin_again(self._row)
            if self._has_started:
                self._pipeline.tell(Resume(position, self._row.pending_after(position)))
            else:
                self._start()
        else:
            self._agenda.is_beat_due = True

    def _stop_soon(self, stop: Release) -> None:
        self._agenda.stop = stop
        if self._possession.is_held and not self._agenda.is_draining:
            self._agenda.is_beat_due = True
            self._alarms.set(Alarm.STOP_WAITING, stop.wait_until_at - self.clock.monotonic())
        elif self._agenda.is_draining:
            self._pipeline.tell(Drain(Why.STOP, stop.until_at))

    def _make_children(self) -> None:
        completion = self._agenda.completion
        known = completion.children if completion is not None else ()
        self._pen.request(partial(make_children, self._worker, self._row, self._possession.token, known))

    def _finish(self, operation: str, row: LeaseRow) -> None:
        """The row is no longer ours, in order."""
        before, is_answer = self._row, False
        self._possession.row = row
        match operation:
            case "complete":
                self._end()
                self._herald.completed(row, self._agenda.children or ())
                return
            case "transfer":
                self._herald.transferred(before.owner)
            case _:
                is_answer = asks_to_let_go(before.native.request)
                self._herald.applied(before.native.request if is_answer else None)
                self._herald.released(self._agenda.fault)
        self._give_up(row, self._agenda.unfinished, is_for_others=is_answer)

    def _lose(self, why: str) -> None:
        self._herald.lost(why)
        self._possession.end()
        self._checkpoints.refuse()
        self.state = "lost"
        if self._agenda.fault is not None or self._agenda.drained is not None:
            self._give_up(self._last_known, self._agenda.unfinished + self._checkpoints.unstored)
        else:
            self._pipeline.tell(Abandon())

    def _give_up(self, row: LeaseRow | None, unfinished: int = 0, *, is_for_others: bool = False) -> None:
        self._end()
        self._herald.gave_up(row, unfinished, is_for_others=is_for_others)

    def _end(self) -> None:
        self.state = "over"
        self._possession.end()
        self._checkpoints.refuse()
        self._alarms.cancel()

    @property
    def _fence(self) -> Fence:
        return self._possession.fence

    @property
    def _row(self) -> LeaseRow:
        return self._possession.row

    @property
    def _last_known(self) -> LeaseRow | None:
        return None if self._is_deleted else self._row

    def _arm_deadline(self) -> None:
        self._alarms.set(Alarm.DEADLINE, self._possession.deadline_at - self.clock.monotonic())
