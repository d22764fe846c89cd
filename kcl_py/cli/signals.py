"""SIGTERM and SIGINT: the first stops in peace, the second at once. SIGUSR1 shows what is running.

SIGHUP, which comes when a terminal is closed, perhaps twice, stops in peace, too, unless it is ignored (``nohup``).

Handlers are in place from the first moment of the command to its last, so no signal is lost while starting; what was
there before comes back afterwards. Only the command line uses this: the library installs no handlers.
"""

import asyncio
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Self

from kcl_py.stderr import tell

STDERR = 2
"""Its number. Source: POSIX."""
_SIGNAL_EXIT = 128
"""A process that ends by signal n exits with 128 + n: 130 and 143. Source: POSIX shells."""


@contextmanager
def leaving() -> Iterator[None]:
    """Have SIGTERM end the program in order, so that the terminal is left as it was."""
    handler = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(_SIGNAL_EXIT + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)


def leave_at_once(number: int) -> None:
    """End the process, whatever it is doing."""
    name = signal.Signals(number).name
    with suppress(OSError):  # nobody reads it
        if select.select((), (STDERR,), (), 0)[1]:  # who reads it may stand still
            text = f"error: stopped at once by a second {name}; unfinished records will come again\n"
            os.write(STDERR, text.encode())
    os._exit(_SIGNAL_EXIT + number)


class Signals:
    """Signals of this process while the context is open; enter it in the main thread."""

    def __init__(self, *, leave: Callable[[int], None] = leave_at_once) -> None:
        self._leave = leave
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: Callable[[], object] = lambda: None
        self._show: Callable[[], str] = lambda: "starting"
        self._is_stopping = self._is_told = False
        self._previous: dict[int, signal._HANDLER] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):
            if number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue
            self._previous[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_exc: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def serve(self, *, stop: Callable[[], object], show: Callable[[], str]) -> None:
        """From now on stop by ``stop`` and show by ``show``, both called on the running loop.

        Called again to replace them. If a signal to stop has come before, ``stop`` is called here and now.
        """
        self._loop, self._stop, self._show = asyncio.get_running_loop(), stop, show
        if self._is_stopping:
            stop()

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGUSR1:
            self._on_loop(self._print)
        elif self._is_told and number != signal.SIGHUP:
            self._leave(number)
        else:
            self._is_told |= number != signal.SIGHUP
            if not self._is_stopping:
                self._is_stopping = True
                self._on_loop(lambda: self._stop())  # whichever action is there when the loop comes to it

    def _on_loop(self, call: Callable[[], object]) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call)

    def _print(self) -> None:
        tell(f"{self._show()}\n")
