"""``kcl run FILE``: one worker, until it is told to stop."""

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from pathlib import Path
from typing import Protocol

import anyio

from kcl_py.cli.failure import HALTED, UNFINISHED, WORKER_FAILED, fail, print_error
from kcl_py.cli.loading import load_class, load_config
from kcl_py.cli.signals import Signals
from kcl_py.config import Config
from kcl_py.stderr import tell

LAST_CHANCE_S = 1.0
"""How long what is still running may take to end once the worker has stopped."""


class Outcome(Protocol):
    """How a worker ended."""

    @property
    def unfinished(self) -> int:
        """Records that were handed over and will come again."""
        ...

    @property
    def has_let_go(self) -> bool:
        """Whether no lease names this worker any more."""
        ...


class Halted(Protocol):
    """A shard that stands still."""

    @property
    def shard_id(self) -> str: ...

    @property
    def error(self) -> str: ...

    @property
    def position(self) -> str: ...


class Running(Protocol):
    """What this command needs of a running ``Stream``."""

    def stop(self, grace_s: float) -> None: ...

    def tree(self) -> object: ...

    async def wait(self) -> Outcome: ...

    async def halted(self) -> Halted: ...


Opening = Callable[[], AbstractAsyncContextManager[Running]]


def run_command(file: Path, *, exit_on_halt: bool = False) -> int:
    """Run a worker as FILE says, until a shard halts if that is asked for; return the exit code."""
    with Signals() as signals:
        config = load_config(file)
        processor = load_class(config.processor, file, executor=config.delivery.executor)
        from kcl_py.tree.stream import Stream

        runner = asyncio.Runner()
        try:
            code = runner.run(
                work(partial(Stream, config, processor=processor), config, signals, exit_on_halt=exit_on_halt)
            )
        except KeyboardInterrupt:  # not of a signal: those are handled
            print_error(_interrupted(config))
            return WORKER_FAILED
        leave_behind(runner, code)
        return code


def leave_behind(runner: asyncio.Runner, code: int, *, leave: Callable[[int], object] = os._exit) -> None:
    """Close the event loop; if a hook that ignores its cancellation still runs on it, end the process by ``leave``.

    Closing would wait for such a hook, for ever.
    """
    loop = runner.get_loop()
    if left := asyncio.all_tasks(loop):
        for task in left:
            task.cancel()
        _, stuck = runner.run(asyncio.wait(left, timeout=LAST_CHANCE_S))
        if stuck:
            with suppress(OSError, ValueError):  # of the user's code, as what it has closed
                sys.stdout.flush()
            tell("")
            leave(code)
            return
    runner.close()


async def work(opening: Opening, config: Config, signals: Signals, *, exit_on_halt: bool = False) -> int:
    """Open the stream, wait until it has ended, and return the exit code.

    A signal that comes before the stream is ready ends the start; later ones stop the stream with its grace. Whatever
    a running worker fails with is its own failure; the same error while it starts is a fault of the set-up, and raised.
    """
    outcome: Outcome | None = None
    halted: Halted | None = None
    has_started = False
    try:
        with anyio.CancelScope() as starting:
            signals.serve(stop=starting.cancel, show=lambda: "starting")
            async with opening() as stream:
                has_started = True
                signals.serve(stop=lambda: stream.stop(config.grace_s), show=lambda: str(stream.tree()))
                outcome, halted = await _until_over(stream, config, exit_on_halt=exit_on_halt)
    except Exception as error:
        if not has_started:
            raise
        return fail(error, code=WORKER_FAILED)
    if halted is not None:
        print_error(_halted(halted, config))
        return HALTED
    if outcome is None or (outcome.has_let_go and not outcome.unfinished):
        return 0
    print_error(_leftovers(outcome, config))
    return UNFINISHED


async def _until_over(stream: Running, config: Config, *, exit_on_halt: bool) -> tuple[Outcome, Halted | None]:
    """Wait for the end; stop the worker when a shard halts, if that is asked for."""
    found: list[Halted] = []

    async def stop_when_halted() -> None:
        found.append(await stream.halted())
        stream.stop(config.grace_s)

    async with anyio.create_task_group() as watching:
        if exit_on_halt:
            watching.start_soon(stop_when_halted)
        outcome = await stream.wait()
        watching.cancel_scope.cancel()
    return outcome, found[0] if found else None


def _halted(halted: Halted, config: Config) -> str:
    return (
        f"cannot go on with {halted.shard_id!r} of stream {config.stream_name!r}: expected the processor to get past "
        f"position {halted.position}, found {halted.error}; the worker has let go of its shards, and goes on "
        "from their checkpoints when it is started again"
    )


def _interrupted(config: Config) -> str:
    return (
        f"cannot go on with stream {config.stream_name!r}: expected hooks to return or to raise an Exception, "
        "found KeyboardInterrupt raised in one; the leases expire, and records since the checkpoints will come again"
    )


def _leftovers(outcome: Outcome, config: Config) -> str:
    """Say what a stop has left behind."""
    if not outcome.has_let_go:
        return (
            f"cannot let go of the leases in table {config.leases.table!r}: expected an answer within the grace of "
            f"{config.grace_s:g} s, found none; they expire, and records since the last checkpoints will come again"
        )
    return (
        f"cannot finish all records of stream {config.stream_name!r}: expected none unfinished at the stop, "
        f"found {outcome.unfinished}; they will come again (grace_s: {config.grace_s:g})"
    )
