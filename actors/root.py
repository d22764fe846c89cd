"""The root of a tree: runs one actor for the length of an ``async with`` block."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio

from actors.actor import Actor
from actors.cell import Cell
from actors.clock import Clock, SystemClock
from actors.events import Observer, log_event
from actors.ref import Node, Ref


class Root:
    """A running tree."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell
        self._is_awaited = False

    @property
    def ref(self) -> Ref:
        return self._cell.ref

    async def wait(self) -> None:
        """Wait until the root actor has ended. Raises the exception that it failed with."""
        await self._cell.ended.wait()
        self._is_awaited = True
        if self._cell.error is not None:
            raise self._cell.error

    def tree(self) -> Node:
        """Take a snapshot of the tree."""
        return self._cell.snapshot()

    @property
    def unseen_failure(self) -> Exception | None:
        """What the root actor failed with, unless ``wait`` has told."""
        return None if self._is_awaited else self._cell.error


@asynccontextmanager
async def running(
    make: Callable[[], Actor],
    *,
    name: str = "root",
    clock: Clock | None = None,
    observer: Observer = log_event,
    grace_s: float = 10.0,
) -> AsyncIterator[Root]:
    """Run an actor, usually a supervisor, until the block is left.

    However the block is left, by its end, an exception, a cancelled scope around it or ``Task.cancel()``, the tree is
    stopped in order first; a second ``Task.cancel()`` cuts its grace short. The block is not interrupted when the root
    actor ends: use ``Root.wait``.

    Args:
        make: makes the actor.
        name: its name, the first part of every path.
        clock: the time for all actors below; the system's by default.
        observer: told what happens in the tree.
        grace_s: how long the tree may take to stop, in seconds, when the block is left; then it is cancelled.

    Raises:
        Exception: what the block raised, as it is and never in a group; else whatever ``on_start`` of the root raised,
            or what the root failed with before the block was left, if no ``Root.wait`` has raised it.
    """
    cell = Cell(make, name=name, parent=None, clock=clock or SystemClock(), observer=observer)
    failure: BaseException | None = None
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_run_shielded, cell, name=name)
            try:
                await cell.started.wait()
                root = Root(cell)
                if cell.has_started:
                    yield root
                failure = root.unseen_failure
            except BaseException as error:  # raised below, outside the task group, which would wrap it
                if isinstance(error, Exception) or not tasks.cancel_scope.cancel_called:
                    failure = error  # else a consequence of how the root's task ended
            failure = await _stop(cell, grace_s, failure)
    except BaseException as error:
        failure = failure or _unwrap(error)
    failure = failure or (None if cell.has_started else cell.error)
    if failure is not None:
        raise failure


async def _run_shielded(cell: Cell) -> None:
    with anyio.CancelScope(shield=True):  # a cancelled block stops its tree in order, it does not tear it down
        await cell.run()
    cell.close()  # nobody starts it again


async def _stop(cell: Cell, grace_s: float, failure: BaseException | None) -> BaseException | None:
    """Stop the tree; return ``failure``, or the native cancellation that came on top of it."""
    with anyio.CancelScope(shield=True):
        while not cell.ended.is_set():
            try:
                await cell.stop(grace_s)
            except anyio.get_cancelled_exc_class() as error:
                error.__context__, failure, grace_s = failure, error, 0
    cell.close()
    return failure


def _unwrap(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
