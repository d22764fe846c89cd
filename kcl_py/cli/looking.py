"""Connects a command before which somebody waits: while AWS does not answer, one line of the terminal says so."""

import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from kcl_py.cli.signals import leaving
from kcl_py.clients import connect_to_look
from kcl_py.printable import one_line

if TYPE_CHECKING:
    from rich.status import Status
    from rich.text import Text

    from kcl_py.clients import Clients
    from kcl_py.config import Config

SPINNER = 2
"""Columns before the sentence."""


@asynccontextmanager
async def looking(config: "Config") -> AsyncIterator["Clients"]:
    """Yield what ``connect_to_look`` does, and raise what it raises. The line is gone by then."""
    async with AsyncExitStack() as stack:
        with ExitStack() as shown:
            clients = await stack.enter_async_context(connect_to_look(config, tell=_Line(shown).tell))
        yield clients


class _Line:
    """Says on stderr, if that is a terminal, why there is no answer yet; taken off with the stack."""

    def __init__(self, shown: ExitStack) -> None:
        self._shown = shown
        self._status: Status | None = None

    def tell(self, reason: str, _retry_in_s: float) -> None:
        if not sys.stderr.isatty():
            return
        if self._status is None:
            from rich.console import Console

            self._shown.enter_context(leaving())
            self._status = self._shown.enter_context(Console(stderr=True).status(""))
        self._status.update(_cut(f"waiting: {one_line(reason)}", self._status.console.width - SPINNER))


def _cut(text: str, width: int) -> "Text":
    from rich.text import Text

    line = Text(text)
    line.truncate(width, overflow="ellipsis")
    return line
