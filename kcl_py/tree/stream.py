"""The Stream: one running copy of the application, from the configuration to the last lease released.

``Stream`` is what users open; below it runs the supervision tree, rest_for_one: the ShardSupervisor, then the
Coordinator. Installs no signal handlers and configures no logging. Mirrors: ``KinesisClient.Stream`` (Elixir).
"""

import asyncio
import os
import socket
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import anyio
import structlog

from actors import (
    ActorError,
    Child,
    Clock,
    Ended,
    Event,
    GraceExceeded,
    Intensity,
    Node,
    Ref,
    Restarting,
    RestartLimitError,
    StopHookFailed,
    Strategy,
    Supervisor,
    SystemClock,
    TaskAbandoned,
    running,
)
from kcl_py.clients import Clients, connect, reach, until_answered
from kcl_py.config import Config
from kcl_py.delivery.budget import Budget
from kcl_py.delivery.retry import brief
from kcl_py.delivery.slots import Slots
from kcl_py.errors import ConfigError, KclError, LeaseTableError, MissingError
from kcl_py.executors.choice import as_it_checkpoints, on_executor
from kcl_py.leases import identity
from kcl_py.leases.fence import Pulse
from kcl_py.leases.gate import Gate
from kcl_py.leases.store import LeaseStore
from kcl_py.log import may_show_tracebacks
from kcl_py.processor import RecordProcessor, check_processor, load_processor
from kcl_py.sources.source import StreamInfo
from kcl_py.tree.coordinator import Coordinator
from kcl_py.tree.messages import Stopped, StopWorker
from kcl_py.tree.presence import Presence
from kcl_py.tree.shard_supervisor import ShardSupervisor
from kcl_py.tree.watchdog import Watchdog
from kcl_py.tree.worker import Ids, Worker

SHARDS_GRACE_S = 15.0
"""For all Shards to stop, once they have drained; more would be a processor that swallows its cancellation."""
GATE_SLOTS = 16
"""Lease writes of one worker on their way at once; half of them are kept for heartbeats."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a worker ended."""

    unfinished: int
    """Records that will come again: in processors' hands when the grace ended, or finished and not stored when a
    lease was lost during the stop."""
    has_let_go: bool = True
    """False if the lease table did not answer: leases end by expiry, and records since the checkpoints come again."""

    @property
    def is_clean(self) -> bool:
        return self.has_let_go and self.unfinished == 0


class StreamSupervisor(Supervisor):
    """The root of the tree."""

    strategy = Strategy.REST_FOR_ONE
    intensity = Intensity(restarts=3, within_s=30.0)  # a Coordinator that keeps failing is not mended by more tries

    def __init__(self, worker: Worker) -> None:
        super().__init__()
        self._worker = worker
        self._presence = Presence(worker)
        self._stopping: StopWorker | None = None

    async def on_start(self) -> None:
        worker = self._worker
        shards = await self.start_child(Child("shards", lambda: ShardSupervisor(worker), grace_s=SHARDS_GRACE_S))
        self._coordinator: Ref = await self.start_child(
            Child("coordinator", lambda: Coordinator(worker, shards, self._presence, self._stopping))
        )

    def begin_stop(self, stop: StopWorker) -> None:
        """Have the Coordinator stop the worker; one that is restarted meanwhile goes on with that."""
        self._stopping = stop
        self._coordinator.tell(stop)


class Stream:
    """A worker: consumes its share of a stream while the ``async with`` block is open.

    Args:
        config: all options.
        processor: the class to use; None imports ``config.processor``.
        clients: the way to the stream and the lease store; None connects as the configuration says, and closes it.
        clock: the time; the system's by default.
        ids: tokens and chance; the system's by default.

    Entering raises ``ProcessorError``, ``AwsSetupError`` and children, ``ConfigError`` on an event loop that is not
    asyncio's, and ``KclError`` while it is open; once left it can be opened again. Leaving stops the worker with
    ``config.grace_s``, also when the block is left by an exception or a cancellation.
    """

    def __init__(
        self,
        config: Config,
        *,
        processor: type[RecordProcessor] | None = None,
        clients: Clients | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
    ) -> None:
        self._config, self._clients = config, clients
        self._processor = processor
        self._clock, self._ids = clock or SystemClock(), ids or Ids()
        self._stopping_until: float | None = None
        self._is_open = False

    async def __aenter__(self) -> Self:
        if self._is_open:
            raise KclError("cannot open a Stream: expected a closed one, found it open; make one for each worker")
        async with AsyncExitStack() as stack:
            self._is_open, self._stopping_until = True, None
            stack.callback(self._close)
            self._worker = await self._set_up(stack)
            if isinstance(self._clock, SystemClock):
                stack.enter_context(Watchdog(self._config.leases.margin_s / 2, self._worker.log).watching())
            self._top = StreamSupervisor(self._worker)
            self._stopped = Stopped()
            self._root = await stack.enter_async_context(
                running(lambda: self._top, name="stream", clock=self._clock, observer=self._observe)
            )
            self._worker.log.info("kcl_py.worker.started", table=self._config.leases.table)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            with anyio.CancelScope(shield=True):
                self.stop(self._config.grace_s)
                await self._until_stopped()
        finally:
            await self._stack.aclose()

    def _close(self) -> None:
        self._is_open = False

    async def wait(self) -> Outcome:
        """Wait until the worker has stopped or failed.

        Raises:
            KclError: the worker failed with this error.
            ActorError: it gave up after an error of another kind, which is chained.
        """
        if not await self._until_stopped():
            await self._raise_failure()
        return Outcome(self._stopped.unfinished, self._stopped.has_let_go)

    def stop(self, grace_s: float) -> None:
        """Stop in order: drain, checkpoint, hand over or release. Returns at once; ``wait`` returns when it is done.

        Args:
            grace_s: how long running hooks may take, in seconds; what is unfinished then comes again elsewhere.
        """
        until_at = self._clock.monotonic() + grace_s
        if self._stopping_until is None or until_at < self._stopping_until:
            self._stopping_until = until_at
            self._top.begin_stop(StopWorker(until_at, self._stopped))

    def tree(self) -> Node:
        """Take a snapshot of the supervision tree."""
        return self._root.tree()

    async def _set_up(self, stack: AsyncExitStack) -> Worker:
        if anyio.get_cancelled_exc_class() is not asyncio.CancelledError:
            raise ConfigError("cannot open a Stream here: expected an asyncio event loop, found that of trio")
        config, clock, started_at = self._config, self._clock, self._clock.monotonic()
        given: object = self._processor
        executor = config.delivery.executor
        if given is None:
            processor = load_processor(config.processor, executor=executor)
        else:
            processor = check_processor(given, executor=executor)
        config = as_it_checkpoints(processor, config)
        worker_id = config.leases.worker_id or f"{socket.gethostname()}-{os.getpid()}-{self._ids.incarnation()}"
        owner = f"{worker_id}/{self._ids.incarnation()}"
        names = {"app": config.app, "stream": config.stream_name, "worker": owner}
        log = structlog.get_logger().bind(**names)
        with structlog.contextvars.bound_contextvars(**names):  # for what is logged below the tree
            clients = self._clients
            if clients is None:
                clients = await stack.enter_async_context(connect(config, clock=clock))
            stream = clients.stream or await reach(
                clients.source, config.stream, timeout_s=config.aws.start_timeout_s, clock=clock
            )
            await self._prepare(clients.leases, stream, log)
        leases = config.leases
        return Worker(
            config=config,
            owner=owner,
            stream=stream,
            processor=on_executor(processor, config),
            source=clients.source,
            store=clients.leases,
            clock=clock,
            ids=self._ids,
            log=log,
            gate=Gate(GATE_SLOTS),
            budget=Budget(config.fetch.budget_bytes, clock),
            slots=Slots(config.delivery.concurrency),
            pulse=Pulse(leases.margin_s / 2, clock.monotonic()),
            started_at=started_at,
        )

    async def _prepare(self, store: LeaseStore, stream: StreamInfo, log: Any) -> None:
        """Make sure of the tables, and that their rows are this stream's."""
        leases, timeout_s = self._config.leases, self._config.aws.start_timeout_s
        what = f"cannot use lease table {leases.table!r}"

        async def settle() -> None:
            await identity.settle(store, stream, table=leases.table, on_recreated=leases.on_recreated, log=log)

        try:
            took_s = await until_answered(store.ensure, what, timeout_s=timeout_s, clock=self._clock)
            if took_s is None:
                await until_answered(settle, what, timeout_s=timeout_s, clock=self._clock)
            else:
                log.info("kcl_py.table.created", table=leases.table, took_s=round(took_s, 3))
        except MissingError as error:
            raise LeaseTableError(
                f"{what}: expected it to stay while the worker starts, found {error}; start again to make it anew"
            ) from error

    async def _until_stopped(self) -> bool:
        """Wait for the end; True if it came in order."""

        async def watch() -> None:
            with suppress(Exception):  # raised by wait()
                await self._root.wait()
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            await self._stopped.arrived.wait()
            tasks.cancel_scope.cancel()
        return self._stopped.arrived.is_set()

    async def _raise_failure(self) -> None:
        try:
            await self._root.wait()
        except ActorError as gave_up:
            cause: BaseException | None = gave_up
            while cause is not None and not isinstance(cause, KclError):
                cause = cause.__cause__
            if cause is not None:
                raise cause from gave_up
            raise

    def _observe(self, event: Event) -> None:
        log = self._worker.log.bind(actor=event.path)
        match event:
            case Ended(error=RestartLimitError()):
                pass  # a supervisor gave up because of a failure that has its own line
            case Ended(error=Exception() as error):
                log.error("kcl_py.actor.failed", error=brief(error))
                if may_show_tracebacks():
                    log.debug("kcl_py.actor.traceback", exc_info=error)
            case Restarting(error=error):
                log.warning("kcl_py.actor.restarted", error=brief(error) if error else None)
            case StopHookFailed(error=error):
                log.error("kcl_py.actor.stop_failed", error=brief(error))
            case GraceExceeded(grace_s=grace_s):
                log.warning("kcl_py.actor.grace_exceeded", grace_s=grace_s)
            case TaskAbandoned(task=task, after_s=after_s):
                log.error("kcl_py.processor.abandoned", hook=task, after_s=after_s)
