"""``kcl run FILE``: one worker, until it is told to stop."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Protocol

import anyio

from kcl_py.cli.failure import UNFINISHED, WORKER_FAILED, fail, print_error
from kcl_py.cli.loading import load_class, load_config
from kcl_py.cli.signals import Signals
from kcl_py.config import Config


class Outcome(Protocol):
    """How a worker ended."""

    @property
    def unfinished(self) -> int:
        """Records that were handed over and will come again."""
        ...


class Running(Protocol):
    """What this command needs of a running ``Stream``."""

    def stop(self, grace_s: float) -> None: ...

    def tree(self) -> object: ...

    async def wait(self) -> Outcome: ...


Opening = Callable[[], AbstractAsyncContextManager[Running]]


def run_command(file: Path) -> int:
    """Run a worker as FILE says; return the exit code."""
    with Signals() as signals:
        config = load_config(file)
        processor = load_class(config.processor, file)
        from kcl_py.tree.stream import Stream

        return anyio.run(work, partial(Stream, config, processor=processor), config, signals)


async def work(opening: Opening, config: Config, signals: Signals) -> int:
    """Open the stream, wait until it has ended, and return the exit code.

    A signal that comes before the stream is ready ends the start; later ones stop the stream with its grace. Whatever
    a running worker fails with is its own failure; the same error while it starts is a fault of the set-up, and raised.
    """
    outcome: Outcome | None = None
    has_started = False
    try:
        with anyio.CancelScope() as starting:
            signals.serve(stop=starting.cancel, show=lambda: "starting")
            async with opening() as stream:
                has_started = True
                signals.serve(stop=lambda: stream.stop(config.grace_s), show=lambda: str(stream.tree()))
                outcome = await stream.wait()
    except Exception as error:
        if not has_started:
            raise
        return fail(error, code=WORKER_FAILED)
    if outcome is None or not outcome.unfinished:
        return 0
    print_error(
        f"cannot finish all records of stream {config.stream_name!r}: expected none unfinished at the stop, "
        f"found {outcome.unfinished}; they will come again (grace_s: {config.grace_s:g})"
    )
    return UNFINISHED
