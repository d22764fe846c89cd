"""Work that may ignore its cancellation, run so that it can be left behind.

A task group waits for every task of its own, so one coroutine that catches everything and goes on would keep a whole
tree from stopping; and a cancel scope would cancel it again on each turn of the event loop, which then spins. Here such
work gets an asyncio task of its own, which is cancelled once and abandoned when it does not end in time. Trio has no
way to abandon a task: there the work is awaited as it is.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TypeVar

import anyio

T = TypeVar("T")

_alive: set[asyncio.Task[object]] = set()
"""Keeps abandoned tasks from being collected while they run; never iterated."""


class _End:
    """Of one piece of work."""

    has_come = False


_end: ContextVar[_End | None] = ContextVar("_end", default=None)


def was_cut_off() -> bool:
    """Whether the owner of the work that this is called in has cancelled it, whatever became of the cancellation."""
    end = _end.get()
    return end is not None and end.has_come


async def run_unruly(
    work: Callable[[], Awaitable[T]],
    *,
    abandon_s: float,
    on_abandon: Callable[[], None],
    is_cancelled: Callable[[], bool],
) -> T:
    """Await ``work``; when cancelled, wait for it to end for ``abandon_s`` seconds at most, then leave it behind.

    Args:
        work: a coroutine function.
        abandon_s: how long it may take to end after its cancellation, in seconds of the event loop.
        on_abandon: called when it is left behind.
        is_cancelled: asked before it begins, which is a turn of the event loop later.

    Raises:
        Exception: whatever ``work`` raised, also while it was cleaning up after its cancellation.
    """
    if anyio.get_cancelled_exc_class() is not asyncio.CancelledError:  # trio
        return await work()
    end = _End()
    task = asyncio.get_running_loop().create_task(_await(work, is_cancelled, end))
    _alive.add(task)
    task.add_done_callback(_forget)
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        end.has_come = True
        task.cancel()
        with anyio.move_on_after(abandon_s, shield=True):
            await asyncio.wait([task])
        if not task.done():
            on_abandon()
        elif not task.cancelled() and (error := task.exception()) is not None:
            raise error from None
        raise
    return task.result()


async def _await(work: Callable[[], Awaitable[T]], is_cancelled: Callable[[], bool], end: _End) -> T:
    _end.set(end)
    if is_cancelled():
        raise asyncio.CancelledError
    return await work()


def _forget(task: asyncio.Task[object]) -> None:
    _alive.discard(task)
    if not task.cancelled():
        task.exception()  # an abandoned task's failure has no one to go to: mark it as seen
