"""Hooks that are ``def`` run in threads, so that what blocks in them blocks nothing else.

A thread cannot be cancelled: one that does not return in time is left behind by the worker, like a coroutine that
swallows its cancellation. It keeps its place among the threads until it returns.
"""

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, ClassVar, TypeVar

from anyio import CancelScope

from kcl_py.delivery.hook import LATE
from kcl_py.effects import Effect
from kcl_py.errors import LeaseLostError, ProcessorError
from kcl_py.executors.checkpointer import SyncPrepared
from kcl_py.executors.hosted import WITH_CHECKPOINTER, Hosted, hosting, is_synchronous
from kcl_py.processor import Checkpointer, PreparedCheckpoint, RecordProcessor
from kcl_py.records import Record, RecordBatch

T = TypeVar("T")


def in_threads(processor: type[RecordProcessor], most: int) -> type[RecordProcessor]:
    """Return the class that runs those hooks of ``processor`` that are ``def`` in threads.

    Args:
        processor: the user's class; its instances are made in threads, too.
        most: how many threads there are at a time, over all instances.
    """
    threads = ThreadPoolExecutor(most, thread_name_prefix=f"kcl_py {processor.__qualname__}")
    return hosting(Threaded, processor, also=("initialize",), users=processor, threads=threads)


class Threaded(Hosted):
    """One instance of the user's class."""

    users: ClassVar[type[RecordProcessor]]
    threads: ClassVar[ThreadPoolExecutor]
    instance: RecordProcessor | None = None
    """The user's own, once it is made."""

    async def call(self, hook: str, *arguments: Any) -> Any:
        if self.instance is None:
            self.instance = await self._run(self.users)
        method = getattr(self.instance, hook)
        if not is_synchronous(self.users, hook):
            return await method(*arguments)
        if hook in WITH_CHECKPOINTER:
            *others, checkpointer = arguments
            arguments = (*others, ThreadCheckpointer(checkpointer, asyncio.get_running_loop()))
        return settled(hook, await self._run(partial(method, *arguments)))

    async def _run(self, work: Callable[[], Any]) -> Any:
        """Do work in a thread; once that has begun, no cancellation is heeded before it has ended.

        One for an attempt that takes too long never is: the attempt counts by how it ends.
        """
        call = self.threads.submit(copy_context().run, _contained, work)
        cancelled: asyncio.CancelledError | None = None
        with CancelScope(shield=True):
            outcome = asyncio.wrap_future(call)
            while not outcome.done():
                try:
                    await asyncio.wait([outcome])
                except asyncio.CancelledError as error:
                    if error.args == (LATE,):
                        _heed_not()
                        continue
                    if call.cancel():
                        raise
                    cancelled = error
        if cancelled is not None:
            outcome.exception()  # nobody waits for it any more
            raise cancelled
        return outcome.result()


def _heed_not() -> None:
    """Say that the cancellation that has just come changes nothing."""
    task = asyncio.current_task()
    assert task is not None
    task.uncancel()


def _contained(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except StopIteration as error:  # which no coroutine can raise
        raise RuntimeError("a hook raised StopIteration") from error


class ThreadCheckpointer:
    """The checkpointer of a thread: stores, and waits for that, in whatever thread.

    Args:
        checkpointer: the one that it stands for.
        loop: where that works.
    """

    def __init__(self, checkpointer: Checkpointer, loop: asyncio.AbstractEventLoop) -> None:
        self._checkpointer, self._loop = checkpointer, loop

    def checkpoint(self, at: Record | RecordBatch | None = None) -> None:
        _awaited(self._loop, lambda: self._checkpointer.checkpoint(at))

    def prepare(self, at: Record | RecordBatch | None = None, *, state: bytes | None = None) -> SyncPrepared:
        prepared = _awaited(self._loop, lambda: self._checkpointer.prepare(at, state=state))
        return ThreadPrepared(prepared, self._loop)

    def once(self, effects: Sequence[Effect], *, at: Record | RecordBatch) -> bool:
        return _awaited(self._loop, lambda: self._checkpointer.once(effects, at=at))


class ThreadPrepared:
    """What ``ThreadCheckpointer`` has prepared."""

    def __init__(self, prepared: PreparedCheckpoint, loop: asyncio.AbstractEventLoop) -> None:
        self._prepared, self._loop = prepared, loop

    def commit(self) -> None:
        _awaited(self._loop, self._prepared.commit)


def _awaited(loop: asyncio.AbstractEventLoop, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Have the event loop do work, and wait for it."""
    try:
        if loop.is_closed():
            raise CancelledError
        return asyncio.run_coroutine_threadsafe(work(), loop).result()
    except CancelledError:
        raise LeaseLostError(
            "cannot checkpoint: expected the worker to run, found it stopped; what is not stored comes again"
        ) from None


def settled(hook: str, outcome: object) -> object:
    """Return what a ``def`` has returned, unless that is work still to be done, which nobody would do.

    Raises:
        ProcessorError: it is a coroutine or the like.
    """
    if not inspect.isawaitable(outcome):
        return outcome
    if inspect.iscoroutine(outcome):
        outcome.close()
    raise ProcessorError(
        f"cannot use what {hook} returned: expected an outcome, found {type(outcome).__name__}, which nobody awaits; "
        f"make it `async def {hook}`"
    )
