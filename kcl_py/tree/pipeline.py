"""The Pipeline: hands the records of one shard to the user's processor, one batch after the other.

Born stopped; the Lease starts, drains and abandons it. A hook runs in a task of its own, never two at a time. To
return is to be finished; to raise is to be tried again, then the shard halts and holds its place. The fence is asked
before each hand-over. Never writes the row. Mirrors: ``KinesisClient.Stream.Shard.Pipeline`` (Elixir).
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from actors import Child, Intensity, OwnedTask, Strategy, Supervisor, Timer
from kcl_py.delivery.hook import Delivery, HeldBack, Hook, OutOfTime, Quiet, Raised, Returned, TryAgain, contained
from kcl_py.delivery.ledger import Ledger
from kcl_py.leases.row import TEXT_CHARACTERS, Halt
from kcl_py.leases.start import start_position, start_text
from kcl_py.log import may_show_tracebacks
from kcl_py.processor import OwnedShard, RecordProcessor
from kcl_py.records import Record, RecordBatch, SequenceNumber
from kcl_py.sources.source import ShardInfo
from kcl_py.tree.checkpointer import ShardCheckpointer
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
    Progress,
    Resume,
    Start,
)
from kcl_py.tree.producer import Producer
from kcl_py.tree.steering import Brake, Pause
from kcl_py.tree.worker import Worker

FAREWELL_S = 5.0
"""How long ``lease_lost`` may take; the shard is another worker's by then, so nothing waits for it longer."""
ABANDON_S = 1.0
"""How long a hook may take to end once it is cancelled; then it is left behind, so that nothing else waits for it."""


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
        self._batch: Delivery | None = None
        self._children: tuple[ShardInfo, ...] | None = None
        self._processor: RecordProcessor | None = None
        self._hook: Hook | None = None
        self._running: OwnedTask | None = None
        self._ending: OwnedTask | None = None
        self._pause: Timer | None = None
        self._limit: Timer | None = None
        self._limit_at = float("inf")
        self._is_draining = self._is_held_back = False
        self._brake = Brake()
        self.state = "stopped"

    async def on_start(self) -> None:
        self._producer = await self.start_child(
            Child("producer", lambda: Producer(self._worker, self._shard_id, self.ref, self._account))
        )

    async def on_stop(self) -> None:
        self._account.close()
        self._intake.forget()  # the traceback of what ended this may keep it in memory for long
        self._batch = None

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
            case CaughtUp():
                self._intake.note_caught_up(message)
                self._tell_progress()
            case DropAhead():
                self._drop_ahead()
            case Returned():
                self._return()
            case HeldBack():
                self._running = None
                self._hold_back()
            case Raised(error):
                self._running = None
                self._fail(error)
            case TryAgain():
                self._pause = None
                self._run_hook()
            case Confirmed():
                if self._is_held_back:
                    self._run_hook()
            case Drain():
                self._drain(message)
            case Resume(position):
                self._resume(position)
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
        self._lease, self._fence, self._row = start.lease, start.fence, start.row
        self._intake.begin_anew()
        self._brake = Brake(start.paused_at_ms)
        self._log, self._is_first = self._log.bind(epoch=start.epoch), True
        self._shard = OwnedShard(
            self._worker.stream.name, self._shard_id, start.epoch, start.row.position, start.row.parents
        )
        self._begin_after(start.row.position)

    def _begin_after(self, position: SequenceNumber | None) -> None:
        self._batch = self._children = self._processor = None
        self._is_draining = False
        self._shard = replace(self._shard, position=position)
        self._ledger = Ledger(position)
        self._unfinished = 0
        self._checkpointer = ShardCheckpointer(
            self._worker, self._shard_id, self._ledger, self._in_hand, fence=self._fence, lease=self._lease
        )
        self.state = "initializing"
        self._call("initialize", self._initialize, self._started)

    def _in_hand(self) -> Sequence[Record]:
        return () if self._batch is None else self._batch.cut.records

    async def _initialize(self) -> None:
        if self._processor is None:
            self._processor = self._worker.processor()
        await self._processor.initialize(self._shard)

    def _started(self) -> None:
        if self._is_draining:
            return
        self._lease.tell(PipelineStarted())
        self._log.info("kcl_py.shard.started", position=start_text(self._ledger.prefix, self._row))
        self.state = "running"
        self._read_on()

    def _read_on(self) -> None:
        """Read from the end of what is finished; only while no batch is in hand."""
        if self._brake.is_on:
            return
        self._children = None  # the end is seen again, behind what is read again
        prefix = self._ledger.prefix
        self._intake.open(start_position(prefix, self._row), prefix, epoch=self._shard.epoch)

    def _drop_ahead(self) -> None:
        """Make room for other shards; what is dropped was never handed over, and is read after the batch in hand."""
        if self.state != "running":
            return
        if dropped_bytes := self._intake.close():
            self._log.info("kcl_py.fetch.ahead_dropped", size_bytes=dropped_bytes)
        if self._batch is None:
            self._read_on()

    @property
    def _is_idle(self) -> bool:
        """Whether nothing of the shard is in the processor's hands."""
        is_calling = self._running is not None and self.state != "initializing"
        return self.state in ("initializing", "running", "ending", "halted") and not is_calling

    def _pause_or_go_on(self, pause: Pause) -> None:
        """Stop reading and drop what was read ahead, or read on; what is in hand goes on, what comes again waits."""
        self._brake = Brake(pause.at_ms)
        if self._brake.is_on:
            if self.state == "running" and self._intake.is_open:
                self._intake.close()
                self._tell_progress()
        elif self._is_held_back:
            self._run_hook()
        elif self.state == "running" and self._batch is None and not self._intake.is_open:
            self._read_on()

    def _receive(self, fetched: FetchedBatch) -> None:
        has_records = self._batch is not None or bool(self._intake)
        if not self._intake.receive(fetched):
            return
        self._hand_over()
        if not has_records:
            self._tell_progress()  # from now on the shard is behind, until they are finished

    def _hand_over(self) -> None:
        """Start the next hook, if no batch is in hand, be it running, waiting or held back."""
        if self.state != "running" or self._batch is not None:
            return
        if self._brake.is_on:
            return
        if self._intake:
            self._batch = Delivery(self._intake.take())
            self._call("process_records", self._process, self._finish)
        elif self._children is not None:
            self.state = "ending"
            self._call("shard_ended", self._end, self._complete)

    async def _process(self) -> None:
        assert self._batch is not None
        assert self._processor is not None
        assert self._hook is not None
        records = self._batch.hand_over(self._ledger)
        if not records:
            return  # the processor has checkpointed all of it before it failed
        if self._is_first:
            self._is_first = False
            since_start_s = round(self.clock.monotonic() - self._worker.started_at, 3)
            self._log.info("kcl_py.shard.first_record", since_start_s=since_start_s)
        lag_ms = self._batch.cut.lag.lag_ms
        name, redelivery = self._worker.stream.name, self._hook.redelivery
        batch = RecordBatch(name, self._shard_id, list(records), lag_ms, redelivery)  # the list is theirs to change
        await self._processor.process_records(batch, self._checkpointer)

    def _finish(self) -> None:
        assert self._batch is not None
        assert self._batch.entry is not None
        self._ledger.finish(self._batch.entry)
        self._batch = None
        self._intake.finish()
        if self.state == "running" and not self._intake.is_open:
            self._read_on()
        self._tell_progress()
        self._hand_over()

    def _tell_progress(self) -> None:
        ledger, intake = self._ledger, self._intake
        self._lease.tell(
            Progress(ledger.prefix, ledger.delivered, intake.lag(), ledger.finished_records, intake.finished_bytes)
        )

    async def _end(self) -> None:
        assert self._processor is not None
        await self._processor.shard_ended(self._checkpointer)

    def _complete(self) -> None:
        self.state = "ended"
        self._lease.tell(Complete(self._ledger.prefix, self._children or ()))

    def _call(self, name: str, call: Callable[[], Awaitable[None]], on_return: Callable[[], None]) -> None:
        self._hook = Hook(name, call, on_return)
        self._run_hook()

    def _run_hook(self) -> None:
        """Call the hook in hand, unless the fence holds it back: then the Lease confirms, or finds that all is over."""
        assert self._hook is not None
        hook, ending = self._hook, self._ending
        is_paused = self._brake.holds_back(hook.name)
        self._is_held_back = is_paused or not self._may_call(hook)
        if is_paused:
            return
        if self._is_held_back:
            self._lease.tell(Confirm())
        else:
            work = hook.work(self._worker.processor, lambda: self._may_call(hook), ending)
            self._running = self.run_task(work, done=lambda outcome: outcome, failed=Raised, abandon_s=ABANDON_S)
            self._ending = None

    def _may_call(self, hook: Hook) -> bool:
        now = self.clock.monotonic()
        if hook.is_last:
            return hook.name == "lease_lost" or not self._fence.is_over(now)
        return self._fence.allows(now)

    def _hold_back(self) -> None:
        if self._is_draining:
            self._say_goodbye()
        else:
            self._run_hook()

    def _return(self) -> None:
        assert self._hook is not None
        self._running = None
        hook = self._hook
        hook.on_return()
        if self._is_draining and not hook.is_last:
            self._say_goodbye()

    def _fail(self, error: Exception) -> None:
        assert self._hook is not None
        hook = self._hook
        pause_s = hook.fail(error, self._worker.config.delivery, self._worker.ids.jitter, is_last=self._is_draining)
        self._log.warning(
            "kcl_py.batch.failed", attempt=hook.attempt, retry_in_s=pause_s, error=hook.last_failure, hook=hook.name
        )
        if may_show_tracebacks():
            self._log.debug("kcl_py.batch.traceback", exc_info=error)
        if self._is_draining:
            self._say_goodbye()
        elif pause_s is None:
            self._halt(hook)
        else:
            hook.attempt += 1
            self._pause = self.send_after(pause_s, TryAgain())

    def _halt(self, hook: Hook) -> None:
        self._stop_reading()
        self.state = "halted"
        at = str(self._ledger.prefix or self._row.checkpoint)
        if self._batch is not None:
            at = self._batch.place(self._ledger)
        self._log.error(
            "kcl_py.shard.halted",
            error=hook.last_failure,
            position=at,
            attempts=hook.attempt,
            how_to_resume="mend the cause and restart this worker, or, if it lies elsewhere, use kcl resume FILE "
            f"--shard {self._shard_id}: the shard then goes on from its checkpoint; where a record is the cause, "
            "'A halted shard' in docs/leases.md tells how to find and pass over it",
        )
        self._lease.tell(Halted(Halt(hook.last_failure[:TEXT_CHARACTERS], at)))
        self._batch = None  # it comes again with another ownership
        self._intake.drop()
        self._tell_progress()

    def _drain(self, drain: Drain) -> None:
        if self.state in ("ended", "drained"):
            return
        self._set_limit(drain.until_at)
        if not self._is_draining:
            self._is_draining = True
            self._stop_reading()
            if self._running is None:
                self._say_goodbye()

    def _set_limit(self, until_at: float) -> None:
        """Set when the drain ends at the latest; a limit only ever comes nearer."""
        if until_at < self._limit_at:
            if self._limit is not None:
                self._limit.cancel()
            self._limit_at = until_at
            self._limit = self.send_after(max(until_at - self.clock.monotonic(), 0), OutOfTime())

    def _stop_reading(self) -> None:
        self._intake.close()
        if self.state != "ending":
            self.state = "draining"

    def _say_goodbye(self) -> None:
        """Call the last hook of an ownership that ends in order, unless the shard has just ended."""
        if self.state == "ended":
            return
        self.state = "draining"
        if self._pause is not None:
            self._pause.cancel()
        self._call_last("shutdown_requested", lambda processor: processor.shutdown_requested(self._checkpointer))

    def _say_farewell(self) -> None:
        """Cancel what runs and call the last hook of an ownership that ends before its work is done."""
        is_calling = self._running is not None and self._hook is not None and self._hook.has_begun
        self._unfinished = len(self._batch.left(self._ledger)) if is_calling and self._batch is not None else 0
        self._end_tasks()
        self._is_draining = True
        self.state = "draining"
        self._set_limit(self.clock.monotonic() + FAREWELL_S)
        self._call_last("lease_lost", lambda processor: processor.lease_lost())

    def _call_last(self, name: str, call: Callable[[RecordProcessor], Awaitable[None]]) -> None:
        processor = self._processor
        if processor is None:
            self._say_drained()
            return
        self._call(name, contained(lambda: call(processor), name, self._log), self._say_drained)

    def _run_out_of_time(self) -> None:
        assert self._hook is not None
        if self._hook.name == "lease_lost" or (self._hook.name == "shutdown_requested" and self._hook.has_begun):
            self._log.warning("kcl_py.processor.cut_off", hook=self._hook.name)
            self._say_drained()
        else:
            self._say_farewell()

    def _abandon(self) -> None:
        if self.state == "drained":
            self._say_drained()
        elif self._hook is None or not self._hook.is_last:
            self._stop_reading()
            self._say_farewell()
        elif self._hook.name == "shutdown_requested":
            self._run_out_of_time()

    def _say_drained(self) -> None:
        self._end_tasks()
        self.state = "drained"
        if self._ending is None:
            self._tell_drained()
        else:
            self.run_task(self._ending.ended, done=lambda _: Quiet())

    def _tell_drained(self) -> None:
        self._lease.tell(Drained(self._ledger.prefix, self._ledger.delivered, self._unfinished))

    def _end_tasks(self) -> None:
        for task in (self._running, self._pause, self._limit):
            if task is not None:
                task.cancel()
        self._ending = self._running or self._ending
        self._is_held_back = False
        self._running = self._pause = self._limit = None
        self._limit_at = float("inf")

    def _resume(self, position: SequenceNumber | None) -> None:
        """Begin again after a drain that was called off, with a new processor."""
        self._intake.drop()
        self._begin_after(position)
        self._tell_progress()
