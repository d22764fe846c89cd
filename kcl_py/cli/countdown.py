"""Says on stderr for how long a command still waits: on a terminal as it goes down, elsewhere once."""

import math
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Self

from actors.clock import SystemClock
from kcl_py.cli.signals import leaving
from kcl_py.stderr import tell

if TYPE_CHECKING:
    from rich.live import Live


class Countdown:
    """A line on stderr while the context is open.

    Args:
        text: what is waited for, with ``{}`` in the place of the time.
        for_s: how long at most, in seconds.
    """

    def __init__(self, text: str, for_s: float) -> None:
        self._text, self._for_s = text, for_s
        self._clock, self._stack = SystemClock(), ExitStack()
        self._live: Live | None = None

    def __enter__(self) -> Self:
        self._ends_at = self._clock.monotonic() + self._for_s
        self._live = self._line()
        if self._live is None:
            tell(f"{self._text.format(f'{self._for_s:g} s')}\n")
            return self
        with ExitStack() as stack:  # a signal that comes meanwhile leaves the terminal as it was, too
            stack.enter_context(leaving())
            stack.callback(self._live.stop)
            self._live.start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stack.close()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Take the line off the terminal while something else is written."""
        if self._live is not None:
            self._live.stop()
        yield
        if self._live is not None:
            self._live.start()

    def __rich__(self) -> str:
        left_s = max(math.ceil(self._ends_at - self._clock.monotonic()), 0)
        return self._text.format(f"{left_s} s")

    def _line(self) -> "Live | None":
        if not sys.stderr.isatty():
            return None
        from rich.console import Console
        from rich.live import Live
        from rich.spinner import Spinner

        console = Console(stderr=True)
        if console.is_dumb_terminal:
            return None
        return Live(  # what others write is theirs: rich would break it at the terminal's width, and send it to stderr
            Spinner("dots", text=self),
            console=console,
            transient=True,
            refresh_per_second=10,
            redirect_stdout=False,
            redirect_stderr=False,
        )
