"""Time as the actors see it: injected, so that a test or a simulation can be the one who moves it."""

import asyncio
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

import anyio

_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", None)


class Clock(Protocol):
    """Three readings of time, all in seconds.

    It may offer more, see the functions of these names: ``move_on_after(delay_s)``, ``call_later(delay_s, call)``.
    """

    def monotonic(self) -> float:
        """A clock that never goes back; only differences mean something."""
        ...

    def time(self) -> float:
        """Unix time: for people and for rows, never for decisions."""
        ...

    async def sleep(self, delay_s: float) -> None:
        """Return after ``delay_s`` of this clock's time; a checkpoint for cancellation even when it is 0."""
        ...


class SystemClock:
    """The machine's clocks. ``monotonic`` goes on while the machine is suspended, where the platform has such a clock.

    Source: CLOCK_BOOTTIME (Linux); elsewhere ``time.monotonic``.
    """

    def monotonic(self) -> float:
        return time.monotonic() if _BOOTTIME is None else time.clock_gettime(_BOOTTIME)

    def time(self) -> float:
        return time.time()

    async def sleep(self, delay_s: float) -> None:
        await anyio.sleep(delay_s)

    def call_later(self, delay_s: float, call: Callable[[], object]) -> Callable[[], object] | None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # trio
            return None
        return loop.call_later(delay_s, call).cancel


def move_on_after(clock: Clock | None, delay_s: float) -> AbstractContextManager[anyio.CancelScope]:
    """Limit what a block may take, as ``anyio.move_on_after`` does, by a clock that can do that itself.

    Such a clock has a method ``move_on_after(delay_s)``. For any other, and for none, it is the event loop's time.
    """
    limited: AbstractContextManager[anyio.CancelScope] = getattr(clock, "move_on_after", anyio.move_on_after)(delay_s)
    return limited


def call_later(clock: Clock, delay_s: float, call: Callable[[], object]) -> Callable[[], object] | None:
    """Have ``call`` called once ``delay_s`` has passed; return what calls that off, None if only ``sleep`` is offered.

    It costs a fraction of a task that sleeps.
    """
    offered = getattr(clock, "call_later", None)
    call_off: Callable[[], object] | None = None if offered is None else offered(delay_s, call)
    return call_off
