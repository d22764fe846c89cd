"""A message that comes to its actor after a while.

Where the clock can call back, a timer is such a call and costs no task; elsewhere it is a task that sleeps.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from actors.clock import call_later
from actors.mailbox import Envelope

if TYPE_CHECKING:
    from actors.cell import Cell


class Timer:
    """A timer of an actor; it ends with the incarnation that started it."""

    __slots__ = ("_call_off", "_cell", "_envelope", "has_rung", "is_cancelled")

    def __init__(self, cell: "Cell", delay_s: float, message: Any) -> None:
        self._cell, self._envelope = cell, Envelope(message, is_own=True)
        self.is_cancelled = self.has_rung = False
        self._call_off: Callable[[], object] = lambda: None
        cell.timers[self] = None  # before the call, which may come at once
        call_off = call_later(cell.clock, delay_s, self._ring)
        self._call_off = self._sleep(delay_s) if call_off is None else call_off

    def cancel(self) -> None:
        """Stop the timer, and void its message if that is already waiting; idempotent."""
        self.is_cancelled = self._envelope.is_void = True
        self._cell.timers.pop(self, None)
        self._call_off()

    def _ring(self) -> None:
        self.has_rung = True
        self._cell.timers.pop(self, None)
        self._cell.mailbox.put(self._envelope)

    def _sleep(self, delay_s: float) -> Callable[[], object]:
        async def sleep() -> None:
            await self._cell.clock.sleep(delay_s)
            if not self.is_cancelled:
                self._ring()

        return self._cell.run_task(sleep, None, None).cancel
