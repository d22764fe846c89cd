"""A clock that moves by itself stands still while a hook runs off the event loop, where time is real.

Otherwise the grace, or the time of an attempt, would be over before a thread or a process has got to the hook.
"""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from actors.testing import ManualClock
from kcl_py.executors.hosted import WITH_CHECKPOINTER, Hosted
from kcl_py.processor import RecordProcessor
from kcl_py.testing.checkpointer import AwaitedCheckpointer, waiting

HELD_S = 10.0
"""For how long one call keeps time from passing, in seconds of real time: a hook that hangs is to be cut off."""


def holding(hosted: type[RecordProcessor], clock: ManualClock) -> type[RecordProcessor]:
    """Return the class that holds the clock while a hook of ``hosted`` runs, if that is off the event loop."""
    if not issubclass(hosted, Hosted):
        return hosted

    async def call(self: Hosted, hook: str, *arguments: Any) -> Any:
        if hook == "initialize":
            arguments = (waiting(arguments[0], clock),)
        elif hook in WITH_CHECKPOINTER:
            *others, checkpointer = arguments
            arguments = (*others, AwaitedCheckpointer(checkpointer, clock))
        with _held(clock):
            return await hosted.call(self, hook, *arguments)

    async def ready(self: Hosted) -> None:
        with _held(clock):
            await hosted.ready(self)

    body = {"__qualname__": hosted.__qualname__, "__module__": hosted.__module__, "call": call, "ready": ready}
    return type(hosted.__name__, (hosted,), body)


@contextmanager
def _held(clock: ManualClock) -> Iterator[None]:
    with ExitStack() as hold:
        hold.enter_context(clock.held())
        limit = asyncio.get_running_loop().call_later(HELD_S, hold.close)
        try:
            yield
        finally:
            limit.cancel()
