"""The root of a tree: runs one actor for the length of an ``async with`` block."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio

from actors.actor import Actor
from actors.cell import Cell
from actors.clock import Clock, SystemClock
from actors.events import GraceExceeded, Observer, log_event
from actors.ref import Node, Ref


class Root:
    """A running tree."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell

    @property
    def ref(self) -> Ref:
        return self._cell.ref

    async def wait(self) -> None:
        """Wait until the root actor has ended. Raises the exception that it failed with."""
        await self._cell.ended.wait()
        if self._cell.error is not None:
            raise self._cell.error

    def tree(self) -> Node:
        """Take a snapshot of the tree."""
        return self._cell.snapshot()


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

    Args:
        make: makes the actor.
        name: its name, the first part of every path.
        clock: the time for all actors below; the system's by default.
        observer: told what happens in the tree.
        grace_s: how long the tree may take to stop, in seconds, when the block is left; then it is cancelled.

    Raises:
        Exception: whatever ``on_start`` of the root raised.
    """
    cell = Cell(make, name=name, parent=None, clock=clock or SystemClock(), observer=observer)
    failure: BaseException | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cell.run, name=name)
        try:
            await cell.started.wait()
            if cell.ended.is_set():
                failure = cell.error
            else:
                yield Root(cell)
        except Exception as error:  # raised below, outside the task group, which would wrap it
            failure = error
        finally:
            with anyio.CancelScope(shield=True):
                await _stop(cell, grace_s)
    if failure is not None:
        raise failure


async def _stop(cell: Cell, grace_s: float) -> None:
    cell.stop_nowait()
    with anyio.move_on_after(grace_s):
        await cell.ended.wait()
    if not cell.ended.is_set():
        cell.report(GraceExceeded, grace_s)
        cell.kill(f"it did not stop within its grace of {grace_s:g} s")
        await cell.ended.wait()
    cell.close()
