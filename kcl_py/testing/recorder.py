"""Stands between the tree and a user's processor: notes each call of a hook, and lets happen what a test has scripted.

It is the user's own class that is made and called. While a hook runs the manual clock is held: hooks take what time
they take, unless they wait for that clock or for a checkpoint.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from enum import Enum, auto
from typing import Generic, TypeVar

import anyio

from actors.testing import ManualClock, settle
from actors.unruly import was_cut_off
from kcl_py.batchers import Batched
from kcl_py.chain import surrounded
from kcl_py.errors import KclError
from kcl_py.executors.hosted import Hosted
from kcl_py.outcomes import BatchOutcome, RecordOutcome
from kcl_py.processor import (
    Checkpointer,
    Failure,
    FailurePolicy,
    OwnedShard,
    RecordProcessor,
    has_lanes,
)
from kcl_py.records import Record, RecordBatch
from kcl_py.testing.checkpointer import AwaitedCheckpointer, waiting
from kcl_py.testing.run import HookCall

P = TypeVar("P", bound=RecordProcessor)
T = TypeVar("T")


class ScriptedError(KclError):
    """Raised in the place of the processor by ``run_processor(fail_at=…)``."""

    retryable = True


class Incident(Enum):
    """What can happen at the batch that holds a certain record."""

    STOP = auto()
    LOSE_LEASE = auto()
    FAIL = auto()
    CRASH = auto()


class Recorder(Generic[P]):
    """Notes what the processors of one worker do.

    Args:
        processor: the user's class.
        clock: is held while a hook runs.
        script: incidents, each with the payload of the record at which it happens, once.
        cause: has an incident happen to a shard; a failure is raised here.
    """

    def __init__(
        self,
        processor: type[P],
        *,
        clock: ManualClock,
        script: dict[Incident, bytes],
        cause: Callable[[Incident, str], None],
    ) -> None:
        self._processor, self._clock = surrounded(processor), clock
        self._script, self._cause = script, cause
        self.calls: list[HookCall[P]] = []
        self.longest: tuple[float, str] = (0.0, "no hook")
        """The seconds of real time of the call that took most, and what it was."""
        self._is_dead = False
        self._is_holding = True

    def observed(self) -> type[RecordProcessor]:
        """Make the class that goes to the worker."""
        recorder = self

        form: type[_Observed[P]] = _ObservedLanes if has_lanes(self._processor) else _ObservedBatches
        if self._processor.batchers:
            form = _ObservedBatchers

        class Observed(form):  # type: ignore[misc, valid-type]
            batchers = recorder._processor.batchers

            def __init__(self) -> None:
                super().__init__(recorder)

        Observed.__qualname__ = self._processor.__qualname__
        return Observed

    def has_crashed(self) -> bool:
        return self._is_dead

    def make(self) -> P:
        return self._processor()

    def let_go(self) -> None:
        """Let time pass from now on, whatever hooks are at: the run is to end."""
        self._is_holding = False
        self._clock.release()

    async def record(self, call: HookCall[P], work: Callable[[], Awaitable[T]]) -> T | None:
        """Do the work of one call, unless the worker is dead, and return what it returns."""
        if self.has_crashed():
            return None
        self.calls.append(call)
        due, began_at = self._due(call), anyio.current_time()
        try:
            with self._clock.held() if self._is_holding else nullcontext():
                if due:
                    await settle()  # what the worker does about earlier batches, such as a checkpoint, is done
                    self._happen(call, due & {Incident.STOP, Incident.LOSE_LEASE})
                    await settle()  # and it has heard that it is to stop
                if self.has_crashed():
                    return None
                outcome = await work()
                self._happen(call, due & {Incident.FAIL, Incident.CRASH})
        except BaseException as error:
            call.error = error
            raise
        finally:
            took_s = anyio.current_time() - began_at
            self.longest = max(self.longest, (took_s, f"{call.hook} of {call.shard_id}"))
        if Incident.CRASH in due:
            await anyio.sleep_forever()
        if _is_cut_off():
            call.error = asyncio.CancelledError("the hook has swallowed it")
        else:
            call.has_returned = True
        return outcome

    def given(self, shard: OwnedShard) -> OwnedShard:
        return waiting(shard, self._clock)

    def wrap(self, checkpointer: Checkpointer) -> Checkpointer:
        return AwaitedCheckpointer(checkpointer, self._clock)

    def _due(self, call: HookCall[P]) -> set[Incident]:
        payloads = [record.data for record in call.records]
        return {incident for incident, at in self._script.items() if at in payloads}

    def _happen(self, call: HookCall[P], due: set[Incident]) -> None:
        for incident in [each for each in Incident if each in due]:
            del self._script[incident]
            if incident is Incident.FAIL:
                what = "batch" if call.record is None else "record"
                raise ScriptedError(f"cannot finish a {what} of {call.shard_id!r}: the test asks for a failure")
            if incident is Incident.CRASH:
                self._is_dead = True
                self.let_go()
            self._cause(incident, call.shard_id)


def _is_cut_off() -> bool:
    """Whether the call in hand was cancelled, and returned all the same: that counts for nothing."""
    task = asyncio.current_task()
    return was_cut_off() or (task is not None and task.cancelling() > 0)


class _Observed(RecordProcessor, Generic[P]):
    """One instance of the user's processor, and what it is called for."""

    def __init__(self, recorder: Recorder[P]) -> None:
        self._recorder = recorder
        self._inner: P | None = None
        self._shard_id = ""

    async def initialize(self, shard: OwnedShard) -> None:
        self._shard_id = shard.shard_id
        call = self._call("initialize")

        async def work() -> None:
            if self._inner is None:
                self._inner = self._recorder.make()
            call.processor = users_own(self._inner)
            await self._inner.initialize(self._recorder.given(shard))
            call.processor = users_own(self._inner)

        await self._recorder.record(call, work)

    async def handle_failed(self, failure: Failure) -> FailurePolicy | None:
        inner = self._made()
        call = self._call("handle_failed", record=failure.record)
        return await self._recorder.record(call, lambda: inner.handle_failed(failure))

    async def lease_lost(self) -> None:
        if self._inner is not None:
            await self._recorder.record(self._call("lease_lost"), self._inner.lease_lost)

    async def shard_ended(self, checkpointer: Checkpointer) -> None:
        inner, given = self._made(), self._recorder.wrap(checkpointer)
        await self._recorder.record(self._call("shard_ended"), lambda: inner.shard_ended(given))

    async def shutdown_requested(self, checkpointer: Checkpointer) -> None:
        if (inner := self._inner) is not None:
            given = self._recorder.wrap(checkpointer)
            await self._recorder.record(self._call("shutdown_requested"), lambda: inner.shutdown_requested(given))

    def _made(self) -> P:
        assert self._inner is not None
        return self._inner

    def _call(self, hook: str, batch: RecordBatch | None = None, record: Record | None = None) -> HookCall[P]:
        return HookCall(hook, self._shard_id, users_own(self._inner), batch, record)


def users_own(made: P | None) -> P | None:
    """Return the instance of the user's class, where another stands for it; None if there is none, or elsewhere."""
    return getattr(made, "instance", None) if isinstance(made, Hosted) else made


class _ObservedBatches(_Observed[P]):
    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> BatchOutcome:
        inner, given = self._made(), self._recorder.wrap(checkpointer)
        call = self._call("process_records", batch)

        async def work() -> BatchOutcome:
            call.outcome = outcome = await inner.process_records(batch, given)
            return outcome

        return await self._recorder.record(call, work)


class _ObservedLanes(_Observed[P]):
    async def process(self, record: Record) -> RecordOutcome:
        inner = self._made()
        call = self._call("process", record=record)

        async def work() -> RecordOutcome:
            call.outcome = outcome = await inner.process(record)
            return outcome

        return await self._recorder.record(call, work)


class _ObservedBatchers(_ObservedLanes[P]):
    async def handle_batch(self, batch: Batched) -> BatchOutcome:
        inner = self._made()
        call = HookCall("handle_batch", self._shard_id, users_own(inner), batched=batch)

        async def work() -> BatchOutcome:
            call.outcome = outcome = await inner.handle_batch(batch)
            return outcome

        return await self._recorder.record(call, work)
