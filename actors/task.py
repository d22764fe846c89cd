"""What an actor has running: work whose outcome comes back to it as a message.

A task never decides anything: it posts, and its actor handles. It never outlives the incarnation that started it.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio

from actors.errors import KilledError
from actors.flag import Flag
from actors.mailbox import Envelope

if TYPE_CHECKING:
    from actors.cell import Cell

_CANCELLED_FOR_GOOD = float("-inf")


@dataclass(frozen=True, slots=True)
class TaskCrashed:
    """Control: a task without a ``failed`` message raised; ends the incarnation."""

    error: Exception


class OwnedTask:
    """A task of an actor."""

    __slots__ = ("_cell", "_done", "_ended", "_envelope", "_failed", "_scope", "is_cancelled", "work")

    def __init__(
        self,
        cell: "Cell",
        work: Callable[[], Awaitable[Any]],
        done: Callable[[Any], Any] | None,
        failed: Callable[[Exception], Any] | None,
    ) -> None:
        self._cell, self.work, self._done, self._failed = cell, work, done, failed
        self._scope, self._ended = anyio.CancelScope(), Flag()
        self._envelope: Envelope | None = None
        self.is_cancelled = False

    def cancel(self) -> None:
        """Stop the task, and void its message if that is already waiting; idempotent."""
        self.is_cancelled = True
        self._scope.cancel()
        if self._envelope is not None:
            self._envelope.is_void = True

    async def ended(self) -> None:
        """Wait until nothing of it runs any more: after ``cancel``, until it has cleaned up or is left behind."""
        await self._ended.wait()

    async def run(self) -> None:
        """Do the work, unless cancelled by now, and post its outcome, whatever that is. Raises no ``Exception``."""
        try:
            if not self.is_cancelled:
                with self._scope:
                    await self._live()
        except anyio.get_cancelled_exc_class():
            return  # the task ends here: no scope above it needs the cancellation any more
        finally:
            self._ended.set()

    async def _live(self) -> None:
        try:
            value = await self.work()
        except Exception as error:  # every outcome goes to the owner
            self._fail(error)
        except anyio.get_cancelled_exc_class() as cancelled:
            if _is_scope_cancelled():
                raise
            killed = KilledError(self._cell.path, "one of its tasks was cancelled from outside")
            self._fail(killed.with_traceback(cancelled.__traceback__))
        else:
            if self._done is not None:
                self._post(self._done, value)

    def _fail(self, error: Exception) -> None:
        if self._failed is None or self.is_cancelled:
            self._crash(error)
        else:
            self._post(self._failed, error)

    def _post(self, make: Callable[[Any], Any], outcome: Any) -> None:
        if self.is_cancelled:
            return
        try:
            self._envelope = Envelope(make(outcome), is_own=True)
        except Exception as error:  # of ``done`` or ``failed``: the actor's own mistake
            self._crash(error)
        else:
            self._cell.mailbox.put(self._envelope)

    def _crash(self, error: Exception) -> None:
        if self.is_cancelled:
            self._cell.report_task_failure(error)
        else:
            self._cell.mailbox.put_control(Envelope(TaskCrashed(error), is_own=True))


def _is_scope_cancelled() -> bool:
    """Whether a cancel scope around the caller is cancelled: tells a scope cancel from a native ``Task.cancel()``."""
    return anyio.current_effective_deadline() == _CANCELLED_FOR_GOOD
