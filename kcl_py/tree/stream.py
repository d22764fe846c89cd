"""The Stream: one running copy of the application, from the configuration to the last lease released.

``Stream`` is what users open; below it runs the supervision tree, rest_for_one: the ShardSupervisor, then the
Coordinator. Installs no signal handlers and configures no logging. Mirrors: ``KinesisClient.Stream`` (Elixir).
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Literal, Self

import anyio

from actors import (
    ActorError,
    Clock,
    Ended,
    Event,
    GraceExceeded,
    Node,
    Restarting,
    RestartLimitError,
    StopHookFailed,
    SystemClock,
    TaskAbandoned,
    running,
)
from kcl_py.acceptance import check_processor, import_processor
from kcl_py.clients import Clients
from kcl_py.config import Config, RateLimit
from kcl_py.delivery.rate import Rate
from kcl_py.delivery.retry import brief
from kcl_py.errors import ConfigError, KclError
from kcl_py.executors.choice import on_executor
from kcl_py.log import may_show_tracebacks
from kcl_py.offers import Loop, Offers
from kcl_py.outcomes import Retry, Verdict
from kcl_py.processor import RecordProcessor, Records
from kcl_py.records import Record, SequenceNumber
from kcl_py.tree.control import Control
from kcl_py.tree.halts import HaltedShard
from kcl_py.tree.messages import Stopped, StopWorker
from kcl_py.tree.opening import open_worker
from kcl_py.tree.stream_supervisor import StreamSupervisor
from kcl_py.tree.watchdog import Watchdog
from kcl_py.tree.worker import Ids

AGAIN = Retry(reason="the loop asked for it again")


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


class Stream:
    """A worker: consumes its share of a stream while the ``async with`` block is open.

    Args:
        config: all options.
        processor: the class to use; None imports ``config.processor``. ``Records``: you loop over ``records()``.
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
        limit = config.delivery.rate
        self._rate = Rate(limit.records, limit.bytes)
        self._stopping_until: float | None = None
        self._is_open = False
        self._offers: Offers | None = None

    async def __aenter__(self) -> Self:
        if self._is_open:
            raise KclError("cannot open a Stream: expected a closed one, found it open; make one for each worker")
        async with AsyncExitStack() as stack:
            self._is_open, self._stopping_until = True, None
            stack.callback(self._close)
            self._worker = await open_worker(
                self._config,
                stack,
                processor=self._consumer(),
                host=self._host,
                clients=self._clients,
                clock=self._clock,
                ids=self._ids,
                rate=self._rate,
                is_left=lambda: self._offers is not None and self._offers.is_left,
            )
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
                self._leave()
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

    @property
    def rate(self) -> RateLimit:
        """How much is handed over a second at most: ``delivery.rate``, or what ``set_rate`` has said since."""
        records, size_bytes = self._rate.limits
        return RateLimit(records=records, bytes=size_bytes)

    def set_rate(self, *, records: int | None, bytes: int | None) -> None:
        """Hand over no more than this a second from now on, in the whole worker; also before it is open.

        Args:
            records: at least 1; None for as many as there are.
            bytes: the same in payload bytes.

        Raises:
            ConfigError: a limit is no whole number of at least 1.
        """
        limits: dict[str, object] = {"records": records, "bytes": bytes}
        for name, limit in limits.items():
            if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
                raise ConfigError(
                    f"cannot set the rate of {name}: expected a whole number of at least 1, or None for no limit, "
                    f"found {limit!r}"
                )
        self._rate.change(records, bytes, self._clock.monotonic())

    def records(self, *, ack: Literal["implicit", "explicit"] = "implicit") -> AsyncIterator[Record]:
        """Loop over the records of all shards that the worker holds, until it has stopped.

        For ``processor=Records``. Each record stays in ``process`` until the loop is done with it, so ``delivery``
        applies as to every processor: its order, how many at a time, retries. Leave the loop and the block, and what is
        not done comes again with the next worker.

        Args:
            ack: ``implicit``: to ask for the next record says that the one before is done. ``explicit``: only ``ack``
                does.

        Raises:
            KclError: the Stream is not open, or has another processor; or, in the loop, the worker failed.
            ValueError: ``ack`` is neither.
        """
        if ack not in ("implicit", "explicit"):
            raise ValueError(f"cannot loop over records: expected ack to be implicit or explicit, found {ack!r}")
        return Loop(self._offering(), self._until_offered, is_implicit=ack == "implicit")

    def ack(self, record: Record) -> bool:
        """Say that a record of the loop is done; False if it is not in hand: said before, or its shard was lost."""
        return self._offering().settle(record, None)

    def nack(self, record: Record, verdict: Verdict = AGAIN) -> bool:
        """Say that a record of the loop is not done; False as of ``ack``.

        Args:
            record: as the loop yielded it.
            verdict: as if ``process`` had returned or raised it.
        """
        return self._offering().settle(record, verdict)

    async def halted(self) -> HaltedShard:
        """Wait until a shard of this worker halts; return the first that has."""
        return await self._worker.halts.first()

    async def pause(self, shard_id: str | None = None, *, why: str | None = None) -> None:
        """Have nothing more of a shard, or of the whole stream, be handed to processors, here or elsewhere.

        That stays so, whoever takes a shard and whatever is restarted, until it is resumed. This returns once that is
        written: this worker's shards heed it at once, others' with their next heartbeat. What is in a processor's hands
        is finished; then ``kcl status`` says so.

        Args:
            shard_id: None for all shards that are being read, and all that follow them.
            why: for people, at most 80 characters.

        Raises:
            KclError: there is no such shard, it was read to its end, or a client holds one that knows of no pause.
        """
        await self._control("pause").pause(shard_id, why)

    async def resume(self, shard_id: str | None = None) -> None:
        """Have a shard, or the whole stream, go on, where it is paused, and where it has halted in a new ownership.

        Raises:
            KclError: there is no such shard, or it was read to its end.
        """
        await self._control("resume").resume(shard_id)

    async def seek(self, to: str | datetime | SequenceNumber, shard_id: str | None = None) -> None:
        """Have a shard, or all that are being read, be read from another place on, in a new ownership.

        Args:
            to: ``trim_horizon``, ``latest``, a time with its zone as text or ``datetime``; of a single shard also the
                sequence number of the last record that counts as finished.
            shard_id: None for all.

        Raises:
            ConfigError: ``to`` is no place, or a time to come.
            KclError: there is no such shard, it was read to its end, has no such number, another client than kcl_py
                holds one, or something else is asked of its holder.
        """
        await self._control("move").seek(to, shard_id)

    def _control(self, what: str) -> Control:
        if not self._is_open:
            raise KclError(f"cannot {what} a stream: expected an open Stream, found a closed one")
        return Control(self._worker, self._top.look)

    def tree(self) -> Node:
        """Take a snapshot of the supervision tree."""
        return self._root.tree()

    def _consumer(self) -> type[RecordProcessor]:
        given: object = self._processor
        if given is None:
            given = import_processor(self._config.processor)
        self._offers = Offers() if given is Records else None
        if self._offers is not None:
            given = self._offers.processor()
        path = self._config.processor if self._processor is None else None
        return check_processor(given, path, executor=self._config.delivery.executor)

    def _host(self, processor: type[RecordProcessor], config: Config) -> type[RecordProcessor]:
        return on_executor(processor, config)

    def _offering(self) -> Offers:
        if not self._is_open:
            raise KclError("cannot loop over records: expected the Stream to be open, found it closed")
        if self._offers is None:
            raise KclError(
                "cannot loop over records: expected a Stream with processor=kcl_py.Records, found another processor, "
                "which gets all of them"
            )
        return self._offers

    def _leave(self) -> None:
        """Stop; what waits for a loop over the records, and perhaps drains already, hears that it waits in vain."""
        self.stop(self._config.grace_s)
        if self._offers is not None and self._stopping_until is not None and not self._stopped.arrived.is_set():
            self._offers.is_left = True
            self._top.begin_stop(StopWorker(self._stopping_until, self._stopped))

    async def _until_offered(self) -> bool:
        """Wait until a record is offered to the loop; False if the worker has stopped."""
        offers, has_ended = self._offering(), False

        async def watch() -> None:
            nonlocal has_ended
            await self._until_stopped()
            has_ended = True
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            await offers.arrived()
            tasks.cancel_scope.cancel()
        if has_ended:
            await self.wait()
        return not has_ended

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
