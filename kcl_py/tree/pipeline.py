"""The Pipeline: hands the records of one shard to the user's processor, and knows what is finished.

Born stopped; the Lease starts, drains and abandons it. Records go through the Dispatcher; all other hooks run one after
the other, each in a task of its own, and never beside a record. The fence is asked before each call. Never writes the
row. Mirrors: ``KinesisClient.Stream.Shard.Pipeline`` (Elixir).
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from actors import Child, Intensity, Strategy, Supervisor
from kcl_py.delivery.hook import HeldBack, OutOfTime, Quiet, Raised, Returned, TryAgain, contained
from kcl_py.delivery.ledger import Ledger
from kcl_py.leases.row import TEXT_CHARACTERS, Halt, Pending
from kcl_py.leases.start import start_position, start_text
from kcl_py.processor import RecordProcessor
from kcl_py.records import SequenceNumber
from kcl_py.sources.source import ShardInfo
from kcl_py.tree.caller import Caller
from kcl_py.tree.checkpointer import ShardCheckpointer
from kcl_py.tree.dispatcher import Dispatcher
from kcl_py.tree.dispatching import Delivering, FirstRecord, dispatcher_of
from kcl_py.tree.halts import HaltedShard
from kcl_py.tree.intake import Intake
from kcl_py.tree.messages import (
    Abandon,
    CaughtUp,
    Complete,
    Confirm,
    Confirmed,
    Drain,
    Drained,
    DropAhead,
    EndSeen,
    FetchedBatch,
    Halted,
    PipelineStarted,
    Resume,
    Start,
)
from kcl_py.tree.ownership import owned_shard, with_checkpointer, with_pending
from kcl_py.tree.producer import Producer
from kcl_py.tree.steering import Brake, Pause
from kcl_py.tree.time_limit import TimeLimit
from kcl_py.tree.work import HandOn, Moved, Stuck, Withheld, WorkEnded
from kcl_py.tree.worker import Worker

FAREWELL_S = 5.0
"""How long ``lease_lost`` may take; the shard is another worker's by then, so nothing waits for it longer."""


class Pipeline(Supervisor):
    """Delivers one shard."""

    strategy = Strategy.ONE_FOR_ALL
    intensity = Intensity(restarts=0)  # a failed reader fails the Shard; the Coordinator opens it again with backoff

    def __init__(self, worker: Worker, shard_id: str) -> None:
        super().__init__()
        self._worker, self._shard_id = worker, shard_id
        self._log = worker.log.bind(shard_id=shard_id)
        self._account = worker.budget.account(lambda: self.ref.tell(DropAhead()))
        self._intake = Intake(worker.config, self._account, worker.clock, lambda message: self._producer.tell(message))
        self._ledger = Ledger()
        self._dispatcher: Dispatcher | None = None
        self._children: tuple[ShardInfo, ...] | None = None
        self._processor: RecordProcessor | None = None
        self._caller, self._limit = Caller(worker, self), TimeLimit(self)
        self._is_draining, self._brake = False, Brake()
        self.state = "stopped"

    async def on_start(self) -> None:
        producer = Child("producer", lambda: Producer(self._worker, self._shard_id, self.ref, self._account))
        self._producer = await self.start_child(producer)

    async def on_stop(self) -> None:
        self._account.close()
        self._intake.forget()  # the traceback of what ended this may keep it in memory for long
        self._cancel_dispatcher()
        self._processor = None  # what it keeps running elsewhere ends with it

    async def on_message(self, message: object) -> None:
        match message:
            case Start():
                self._begin(message)
            case FetchedBatch():
                self._receive(message)
            case EndSeen() | CaughtUp() if not self._intake.is_current(message):
                pass
            case EndSeen(children):
                self._children = children
                self._hand_over()
            case Moved() | WorkEnded() | HandOn() | Withheld() | Stuck():
                self._dispatched(message)
            case CaughtUp():
                self._intake.note_caught_up(message)
                self._tell_progress()
            case DropAhead():
                self._drop_ahead()
            case Returned():
                self._return()
            case HeldBack():
                self._caller.ended()
                self._say_goodbye() if self._is_draining else self._caller.run()
            case Raised(error):
                self._fail(error)
            case TryAgain():
                self._caller.run()
            case Confirmed():
                self._confirmed()
            case Drain():
                self._drain(message)
            case Resume(position, pending):
                self._resume(position, pending)
            case OutOfTime():
                self._run_out_of_time()
            case Quiet():
                self._tell_drained()
            case Abandon():
                self._abandon()
            case Pause():
                self._pause_or_go_on(message)
            case _:
                self.unhandled(message)
        if (word := self._brake.word(is_idle=self._is_idle)) is not None:
            self._lease.tell(word)

    def _begin(self, start: Start) -> None:
        self._lease, self._fence, self._row, self._earlier = start.lease, start.fence, start.row, start.earlier
        self._intake.begin_anew()
        self._later = start.row.native.later
        self._brake = self._caller.brake = Brake(start.paused_at_ms)
        self._log = self._log.bind(epoch=start.epoch)
        self._first = FirstRecord(self._worker, self._log)
        self._caller.begin(self._fence, self._lease, self._log)
        self._shard = owned_shard(self._worker, self._shard_id, start)
        self._begin_after(start.row.position)

    def _begin_after(self, position: SequenceNumber | None) -> None:
        self._children = self._processor = self._dispatcher = None
        self._is_draining = False
        self._shard = replace(self._shard, position=position)
        self._ledger = Ledger(position)
        self._unfinished = 0
        self._checkpointer = ShardCheckpointer(
            self._worker, self._shard_id, self._ledger, fence=self._fence, lease=self._lease
        )
        self._shard = with_checkpointer(self._shard, self._worker, self._checkpointer)
        self.state = "initializing"
        self._caller.call("initialize", self._initialize, self._started)

    async def _initialize(self) -> None:
        if self._processor is None:
            self._processor = self._worker.processor()
        await self._processor.initialize(self._shard)

    def _started(self) -> None:
        if self._is_draining:
            return
        self._lease.tell(PipelineStarted())
        self._log.info("kcl_py.shard.started", position=start_text(self._ledger.prefix, self._row))
        assert self._processor is not None
        self._dispatcher = dispatcher_of(
            self,
            Delivering(self._worker, self._shard_id, self._fence, self._ledger, self._log),
            self._processor,
            self._checkpointer,
            self._first,
            earlier=self._earlier,
            later=self._later,
        )
        self._dispatcher.pause(is_paused=self._brake.is_on)
        self.state = "running"
        self._read_on()

    def _read_on(self) -> None:
        """Read on behind what is in hand."""
        if self._brake.is_on:
            return
        self._children = None  # the end is seen again, behind what is read again
        self._intake.open(start_position(self._ledger.received, self._row), self._ledger, epoch=self._shard.epoch)

    def _drop_ahead(self) -> None:
        """Make room for other shards; what is dropped was never handed over, and is read after what is in hand."""
        dispatcher = self._dispatcher
        if self.state != "running" or dispatcher is None:
            return
        if dropped_bytes := self._forget_ahead(dispatcher):
            self._log.info("kcl_py.fetch.ahead_dropped", size_bytes=dropped_bytes)
        if dispatcher.is_idle:
            self._read_on()

    def _forget_ahead(self, dispatcher: Dispatcher) -> int:
        return self._intake.close(self._ledger.head) + self._intake.give_back(dispatcher.drop_ahead())

    @property
    def _is_idle(self) -> bool:
        """Whether nothing of the shard is in the processor's hands."""
        if self._is_dispatching or self.state not in ("initializing", "running", "ending", "halted"):
            return False
        return self.state == "initializing" or not self._caller.is_running

    def _pause_or_go_on(self, pause: Pause) -> None:
        """Stop reading and drop what was read ahead, or read on; what is in hand goes on, what comes again waits."""
        dispatcher, self._brake = self._dispatcher, Brake(pause.at_ms)
        self._caller.brake = self._brake
        if dispatcher is not None:
            dispatcher.pause(is_paused=self._brake.is_on)
        if self._brake.is_on:
            if dispatcher is not None and self.state == "running" and self._intake.is_open:
                self._forget_ahead(dispatcher)
                self._tell_progress()
        elif self._caller.is_held_back:
            self._caller.run()
        elif self.state == "running" and not self._intake.is_open:
            self._read_on()
            self._tell_progress()
        self._hand_over()

    def _receive(self, fetched: FetchedBatch) -> None:
        has_records = self._ledger.head is not None or bool(self._intake)
        if not self._intake.receive(fetched):
            return
        self._hand_over()
        if not has_records or self._intake.is_full:
            self._tell_progress()  # from now on the shard is behind, or held up, until they are finished

    def _hand_over(self) -> None:
        """Hand over what may be; once nothing is left, and the end of the shard was seen, say that."""
        dispatcher = self._dispatcher
        if self.state != "running" or dispatcher is None or self._brake.is_on:
            return
        while self._intake and dispatcher.wants_more:
            dispatcher.take_in(self._intake.take())
        dispatcher.go_on()
        if self._children is not None:
            dispatcher.finish_up()
        if dispatcher.is_idle and not self._intake.is_open:
            self._read_on()
        elif dispatcher.is_idle and self._children is not None:
            assert self._processor is not None
            self.state = "ending"
            self._caller.call("shard_ended", partial(self._processor.shard_ended, self._checkpointer), self._complete)

    def _dispatched(self, message: Moved | WorkEnded | HandOn | Withheld | Stuck) -> None:
        dispatcher = self._dispatcher
        if dispatcher is None:
            return
        match message:
            case Stuck(reason, attempts, sequence_number) if not self._is_draining:
                self._halt(reason, attempts, sequence_number)
            case Withheld():
                self._lease.tell(Confirm())
            case HandOn():
                self._hand_over()
            case WorkEnded() | Moved():
                dispatcher.note(message)
                self._advance()
                if self._is_draining and not dispatcher.is_busy and self.state == "draining":
                    self._say_goodbye()

    def _advance(self) -> None:
        """Take note of what is finished."""
        records, size_bytes = self._ledger.news()
        self._intake.free(records, size_bytes)
        if records or (self._dispatcher is not None and self._dispatcher.has_put_off):
            self._tell_progress()
        self._hand_over()

    def _confirmed(self) -> None:
        if self._caller.is_held_back:
            self._caller.run()
        elif self._dispatcher is not None:
            self._dispatcher.confirmed()

    def _tell_progress(self) -> None:
        if self._dispatcher is not None:
            self._later, self._dispatcher.has_put_off = self._dispatcher.put_off(), False
        self._lease.tell(self._intake.progress(self._ledger, self._later))

    def _complete(self) -> None:
        self.state = "ended"
        self._lease.tell(Complete(self._ledger.prefix, self._children or ()))

    def _return(self) -> None:
        hook = self._caller.ended()
        hook.on_return()
        if self._is_draining and not hook.is_last:
            self._say_goodbye()

    def _fail(self, error: Exception) -> None:
        pause_s = self._caller.fail(error, is_last=self._is_draining)
        if self._is_draining:
            self._say_goodbye()
        elif pause_s is None:
            hook = self._caller.ended()
            self._halt(hook.last_failure, hook.attempt, str(self._ledger.prefix or self._row.checkpoint))
        else:
            self._caller.try_again(pause_s)

    def _halt(self, reason: str, attempts: int, at: str) -> None:
        self._stop_reading()
        self.state = "halted"
        self._worker.halts.note(HaltedShard(self._shard_id, reason, at), attempts, self._log)
        self._lease.tell(Halted(Halt(reason[:TEXT_CHARACTERS], at)))
        self._intake.drop(self._ledger.head)  # it comes again with another ownership
        self._tell_progress()

    def _drain(self, drain: Drain) -> None:
        if self.state in ("ended", "drained"):
            return
        self._limit.set(drain.until_at)
        if not self._is_draining:
            self._is_draining = True
            self._stop_reading(flushes=not self._brake.is_on)
            self._tell_progress()
            if not self._caller.is_running and not self._is_dispatching:
                self._say_goodbye()
        if self._is_dispatching and self._worker.is_left():
            self._say_farewell()

    @property
    def _is_dispatching(self) -> bool:
        return self._dispatcher is not None and self._dispatcher.is_busy

    def _stop_reading(self, *, flushes: bool = False) -> None:
        self._intake.close(self._ledger.head)
        if self._dispatcher is not None:
            self._dispatcher.stop(flushes=flushes)
        if self.state != "ending":
            self.state = "draining"

    def _say_goodbye(self) -> None:
        """Call the last hook of an ownership that ends in order, unless the shard has just ended."""
        if self.state == "ended":
            return
        self.state = "draining"
        self._caller.stop_trying()
        self._call_last("shutdown_requested", lambda processor: processor.shutdown_requested(self._checkpointer))

    def _say_farewell(self) -> None:
        """Cancel what runs and call the last hook of an ownership that ends before its work is done."""
        self._unfinished = 0 if self._dispatcher is None else self._dispatcher.cut_off()
        self._end_tasks()
        self._is_draining = True
        self.state = "draining"
        self._limit.set(self.clock.monotonic() + FAREWELL_S)
        self._call_last("lease_lost", lambda processor: processor.lease_lost())

    def _call_last(self, name: str, call: Callable[[RecordProcessor], Awaitable[None]]) -> None:
        processor = self._processor
        if processor is None:
            self._say_drained()
            return
        self._caller.call(name, contained(lambda: call(processor), name, self._log), self._say_drained)

    def _run_out_of_time(self) -> None:
        if self._caller.cut_off():
            self._say_drained()
        else:
            self._say_farewell()

    def _abandon(self) -> None:
        if self.state == "drained":
            self._say_drained()
        elif not self._caller.is_saying_goodbye or self._is_dispatching:
            self._stop_reading()
            self._say_farewell()
        elif self._caller.hook is not None and self._caller.hook.name == "shutdown_requested":
            self._run_out_of_time()

    def _say_drained(self) -> None:
        self._end_tasks()
        self.state = "drained"
        if not self._caller.ending:
            self._tell_drained()
            return
        self.run_task(self._caller.all_ended, done=lambda _: Quiet())

    def _tell_drained(self) -> None:
        self._lease.tell(Drained(self._ledger.prefix, self._ledger.reach(self._earlier).end, self._unfinished))

    def _end_tasks(self) -> None:
        self._caller.cancel()
        self._cancel_dispatcher()
        self._limit.clear()

    def _cancel_dispatcher(self) -> None:
        if self._dispatcher is not None:
            self._caller.ending += self._dispatcher.cancel()
            self._dispatcher = None

    def _resume(self, position: SequenceNumber | None, pending: Pending | None) -> None:
        """Begin again after a drain that was called off, with a new processor."""
        self._intake.drop(self._ledger.head)
        self._earlier = self._ledger.reach(self._earlier)
        self._shard = with_pending(self._shard, pending)
        self._begin_after(position)
        self._tell_progress()
