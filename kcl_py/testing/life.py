"""The life of one worker in a test: started, watched until its work is done or something ends it, and stopped.

The worker is a real ``Stream``. Time passes by itself whenever all wait, so backoffs, heartbeats and expiries cost no
real time; a hook that does something else than wait keeps it from passing.
"""

from typing import Generic, TypeVar, cast

import anyio

from kcl_py.config import Config
from kcl_py.errors import KclError
from kcl_py.executors.choice import as_it_checkpoints, on_executor
from kcl_py.leases.row import Halt
from kcl_py.processor import RecordProcessor
from kcl_py.testing.progress import awaited, is_halted
from kcl_py.testing.recorder import Incident, Recorder
from kcl_py.testing.run import Run
from kcl_py.testing.stream import FakeStream
from kcl_py.tree.stream import Outcome, Stream

P = TypeVar("P", bound=RecordProcessor)

LOOK_S = 0.25
"""How often it is looked whether the work is done, in seconds of the manual clock."""
PATIENCE_S = 900.0
"""How long the work may take, in seconds of the manual clock: minutes of backoff, and expiries between them."""

SLOW_S = 0.1
"""A hook that took so long may be why the limit was passed, in seconds of real time."""


class RunTimeoutError(KclError):
    """A run did not come to its end: a hook never returned, or something that was waited for never came."""


class Life(Generic[P]):
    """One worker, from its start to its end.

    Args:
        stream: what it consumes.
        processor: the user's class.
        config: of the worker.
        script: what happens at which record.
        timeout_s: the longest the run may take, in seconds of real time.
    """

    def __init__(
        self,
        stream: FakeStream,
        processor: type[P],
        config: Config,
        *,
        script: dict[Incident, bytes],
        timeout_s: float,
    ) -> None:
        self._stream, self._config, self._timeout_s = stream, config, timeout_s
        self._processor, self._line = processor, stream.service.line()
        config = self._config = as_it_checkpoints(processor, config)
        self._table = stream.service.leases(config)
        hosted = cast("type[P]", on_executor(processor, config))
        self._recorder = Recorder(hosted, clock=stream.clock, script=script, cause=self._cause)
        on_loop = config.delivery.model_copy(update={"executor": None})  # what is observed is on one already
        self._worker = Stream(
            config.model_copy(update={"delivery": on_loop}),
            processor=self._recorder.observed(),
            clients=stream.service.clients(config, stream.name, self._line),
            clock=stream.clock,
            ids=stream.ids(),
        )
        self._ended = anyio.Event()
        self._is_over = False
        self._lost: str | None = None
        self._halted: dict[str, Halt] = {}
        self._complaint: str | None = None
        self._outcome: Outcome | None = None
        self._failure: Exception | None = None

    async def live(self) -> Run[P]:
        """Run the worker to its end and say what it did.

        Raises:
            RunTimeoutError: it did not come to its end.
            KclError: it could not start.
        """
        async with self._stream.clock.passing(), self._worker:
            try:
                with anyio.move_on_after(self._timeout_s) as limit:
                    await self._until_ended()
                if limit.cancelled_caught:
                    self._complain(f"within {self._timeout_s:g} s")
            finally:
                if not self._ended.is_set():
                    self._recorder.let_go()
                    self._worker.stop(0)
        if self._complaint is not None:
            raised = [call.error for call in self._recorder.calls if isinstance(call.error, Exception)]
            raise RunTimeoutError(self._complaint) from (raised[-1] if raised else None)
        return self._run()

    async def _until_ended(self) -> None:
        clock = self._stream.clock
        ends_at = clock.monotonic() + PATIENCE_S
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch)
            while not self._is_over and not self._has_lost() and self._left():
                if clock.monotonic() > ends_at:
                    self._complain(f"within {PATIENCE_S:g} s of its clock")
                    break
                await clock.sleep(LOOK_S)
            self._note_halts()
            self._worker.stop(0 if self._recorder.has_crashed() else self._config.grace_s)
            await self._ended.wait()

    async def _watch(self) -> None:
        try:
            self._outcome = await self._worker.wait()
        except Exception as error:  # for the user to look at
            self._failure = error
        self._is_over = True
        self._ended.set()

    def _cause(self, incident: Incident, shard_id: str) -> None:
        match incident:
            case Incident.STOP:
                self._worker.stop(self._config.grace_s)
                self._is_over = True
            case Incident.LOSE_LEASE:
                self._table.take(shard_id)
                self._lost = shard_id
            case Incident.CRASH:
                self._line.is_cut = self._is_over = True

    def _has_lost(self) -> bool:
        """Tell whether the processor has been told of the lease that was taken away."""
        return any(call.hook == "lease_lost" and call.shard_id == self._lost for call in self._recorder.calls)

    def _note_halts(self) -> None:
        """Note which shards stand still, before the worker lets go of them, which ends it."""
        for shard_id, row in self._table.rows().items():
            calls = [call for call in self._recorder.calls if call.shard_id == shard_id]
            if row.native.halted is not None and is_halted(row, calls):
                self._halted[shard_id] = row.native.halted

    def _left(self) -> list[str]:
        return awaited(self._stream, self._table.rows(), self._recorder.calls)

    def _complain(self, limit: str) -> None:
        calls, (took_s, longest) = self._recorder.calls, self._recorder.longest
        at_work = [f"{call.hook} of {call.shard_id} has not returned" for call in calls if call.is_running]
        slow = [f"{longest} took {took_s:.1f} s"] if took_s >= SLOW_S and not at_work else []
        found = "; ".join([*self._left(), *at_work, *slow]) or "it has not stopped"
        self._complaint = (
            f"cannot finish the run of {self._processor.__qualname__!r}: expected its work to be done {limit}, "
            f"found: {found}"
        )

    def _run(self) -> Run[P]:
        stream, has_crashed = self._stream, self._recorder.has_crashed()
        return Run(
            stream=stream,
            calls=tuple(self._recorder.calls),
            records={shard_id: stream.records(shard_id) for shard_id in stream.shards},
            checkpoints={key: row.checkpoint for key, row in self._table.rows().items()},
            halted={shard_id: halt.position for shard_id, halt in self._halted.items()},
            outcome=None if has_crashed else self._outcome,
            failure=None if has_crashed else self._failure,
            reasons={shard_id: halt.error for shard_id, halt in self._halted.items()},
        )
