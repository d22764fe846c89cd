"""A hook of the processor that stands for itself, over all its attempts: all but those that records go through."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from actors import OwnedTask
from actors.clock import Clock, move_on_after
from actors.unruly import was_cut_off
from kcl_py.config import Delivery as Options
from kcl_py.delivery.retry import backoff_s, brief
from kcl_py.errors import ProcessorError
from kcl_py.events import Events
from kcl_py.outcomes import Reject, Retry
from kcl_py.processor import RecordProcessor

T = TypeVar("T")

LATE = "the attempt takes too long"
"""What the cancellation of an attempt says that is not heeded where nothing can be stopped, as in a thread."""

LAST_HOOKS = ("shutdown_requested", "lease_lost")
"""The hooks that end an ownership before its shard has ended: the one while the lease is held, the other whenever."""


ABANDON_S = 1.0
"""How long a hook may take to end once it is cancelled; then it is left behind, so that nothing else waits for it."""


@dataclass(slots=True)
class Hook:
    """One hook of the processor."""

    name: str
    call: Callable[[], Awaitable[None]]
    on_return: Callable[[], None]
    attempt: int = 1
    last_failure: str = ""
    has_begun: bool = False
    """Whether the attempt in hand has reached the user's code."""

    @property
    def is_last(self) -> bool:
        """Whether it ends an ownership before its shard has ended."""
        return self.name in LAST_HOOKS

    def fail(
        self, error: Exception, options: Options, jitter: Callable[[float, float], float], *, is_last: bool
    ) -> float | None:
        """Note that the attempt has raised; return the pause before the next one, None if there is none."""
        self.last_failure = brief(error)
        if is_last or self.attempt > options.retries:
            return None
        return round(jitter(0, backoff_s(self.attempt, options.backoff_s, options.backoff_max_s)), 3)

    def work(
        self, processor: type[RecordProcessor], may_begin: Callable[[], bool], before: Sequence[OwnedTask]
    ) -> "Callable[[], Awaitable[Returned | HeldBack]]":
        """Make one attempt's coroutine function, named as users know it, for whoever reports on its task.

        ``may_begin`` is asked right before the user's code, for the process may have stood still since the task was
        started. What is in ``before`` was cancelled and may still clean up: a hook never runs beside that.
        """
        self.has_begun = False

        async def attempt() -> Returned | HeldBack:
            for task in before:
                await task.ended()
            if not may_begin():
                return HeldBack()
            self.has_begun = True
            await guarded(attempt.__qualname__, self.call)
            return Returned()

        attempt.__qualname__ = f"{processor.__qualname__}.{self.name}"
        return attempt


@dataclass(frozen=True, slots=True)
class Returned:
    """The hook in hand has returned."""


@dataclass(frozen=True, slots=True)
class HeldBack:
    """The hook in hand was not called: the fence no longer allowed it."""


@dataclass(frozen=True, slots=True)
class Raised:
    """The hook in hand has raised."""

    error: Exception


@dataclass(frozen=True, slots=True)
class TryAgain:
    """The pause before the next attempt is over."""


@dataclass(frozen=True, slots=True)
class OutOfTime:
    """The drain has reached its limit."""


@dataclass(frozen=True, slots=True)
class Quiet:
    """The hook that was cancelled last runs no more."""


def contained(call: Callable[[], Awaitable[None]], name: str, log: Events) -> Callable[[], Awaitable[None]]:
    """Make a last hook's call one that never raises: nothing can change what happens next."""

    async def attempt() -> None:
        try:
            await guarded(name, call)
        except Exception as error:
            log.error("kcl_py.processor.failed", hook=name, error=brief(error))

    return attempt


async def guarded(hook: str, call: Callable[[], Awaitable[T]]) -> T:
    """Await a call of code that is not ours: of what it raises, nothing ends more than this call.

    Raises:
        Exception: as it was raised.
        CancelledError: this task is cancelled, also where the call returns all the same: it may have been cut short
            anywhere.
        ProcessorError: it has raised what would end the worker, and then the next one that gets the record: SystemExit,
            a cancellation that nobody has asked for, or, as extensions in Rust do, a class of its own beside Exception.
    """
    try:
        returned = await call()
    except (Exception, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and (task is None or task.cancelling()):
            raise
        raise _refused(hook, error) from error
    if was_cut_off():
        raise asyncio.CancelledError
    return returned


async def limited(hook: str, call: Callable[[], Awaitable[T]], *, clock: Clock, limit_s: float) -> T:
    """Do as ``guarded``; when the call takes longer, cancel it, once: what it then awaits to clean up takes its time.

    A cancel scope would cancel that again on each turn of the event loop, and turn with work that goes on all the same.

    Raises:
        TimeoutError: it was cancelled for that, whatever it returns: it may have been cut short anywhere. What it
            raises counts all the same, that it says it has failed, and anything after ``uncancel``.
    """
    task, is_late = asyncio.ensure_future(guarded(hook, call)), False
    try:
        with move_on_after(clock, limit_s):
            await asyncio.wait([task])
        if is_late := not task.done():
            task.cancel(LATE)
            await asyncio.wait([task])
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # nobody waits for it any more
        raise
    if is_late and (task.cancelled() or _says_done(task)):
        raise TimeoutError(f"{hook} took longer than {limit_s:g} s")
    return task.result()


def _says_done(task: asyncio.Task[object]) -> bool:
    """Whether a task that was cancelled has returned as though it had not been, and without a word by ``uncancel``."""
    return task.cancelling() > 0 and task.exception() is None and not isinstance(task.result(), Retry | Reject)


def _refused(hook: str, error: BaseException) -> ProcessorError:
    if isinstance(error, SystemExit):
        return ProcessorError(
            f"cannot exit from {hook}: expected it to return or to raise an Exception, "
            f"found {error!r}; to stop the worker, send it SIGTERM or call Stream.stop"
        )
    return ProcessorError(f"cannot finish {hook}: expected it to return or to raise an Exception, found {brief(error)}")
