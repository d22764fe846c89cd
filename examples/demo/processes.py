"""The subprocesses of the demo: each in a process group of its own, each with a log file, all ended whatever happens.

Leaving the block ends them, also by Ctrl-C. If this process itself is killed, a guard notices the end of its pipe and
kills their groups. Durations are seconds.
"""

import contextlib
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import anyio
from anyio.abc import Process, TaskGroup
from anyio.streams.buffered import BufferedByteReceiveStream

GUARD = """
groups=
while read -r group; do groups="$groups $group"; done
for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done
"""
"""Reads group ids until its input ends, which is when the demo has ended, and kills what is left."""
LINE_BYTES = 1000


class EndedError(Exception):
    """A process has ended that should not have."""


@dataclass(slots=True, eq=False)
class Running:
    """One subprocess; its id is also its group's."""

    name: str
    process: Process
    is_wanted: bool = True
    """Whether it is to go on: if it ends nevertheless, that is an error."""

    @property
    def pid(self) -> int:
        return self.process.pid


class Processes:
    """Starts and ends subprocesses. The block is cancelled, and raises ``EndedError``, if a wanted one ends.

    Args:
        folder: where their log files go.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: list[Running] = []

    async def __aenter__(self) -> Self:
        self._guard = await anyio.open_process(
            ["/bin/sh", "-c", GUARD],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._tasks: TaskGroup = await anyio.create_task_group().__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        with anyio.CancelScope(shield=True):
            for running in self._running:
                await self.kill(running)
        try:
            return await self._tasks.__aexit__(kind, error, traceback)
        finally:
            with anyio.CancelScope(shield=True):
                await self._guard.aclose()

    async def start(self, name: str, *command: str | Path, env: dict[str, str] | None = None) -> Running:
        """Start a command. What it says on stderr goes to ``<name>.log``; so does stdout."""
        with (self._folder / f"{name}.log").open("ab") as log:
            return await self._start(name, command, stdout=log, stderr=log, env=env)

    async def start_server(self, name: str, *command: str | Path) -> tuple[Running, str]:
        """Start a command that says one line on stdout when it is ready; returns that line too."""
        with (self._folder / f"{name}.log").open("ab") as log:
            running = await self._start(name, command, stdout=subprocess.PIPE, stderr=log)
        assert running.process.stdout is not None
        try:
            line = await BufferedByteReceiveStream(running.process.stdout).receive_until(b"\n", LINE_BYTES)
        except anyio.IncompleteRead:
            raise EndedError(f"{name} ended before it was ready") from None
        return running, line.decode()

    async def kill(self, running: Running) -> None:
        """Kill the whole group, and wait until it is gone."""
        running.is_wanted = False
        with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody is left in it
            os.killpg(running.pid, signal.SIGKILL)
        await running.process.wait()

    async def stop(self, running: Running, *, within_s: float) -> int:
        """End a process in order, or kill it if that takes too long; returns its exit code."""
        running.is_wanted = False
        if running.process.returncode is None:
            running.process.terminate()
        with anyio.move_on_after(within_s):
            await running.process.wait()
        await self.kill(running)
        return await running.process.wait()

    async def _start(
        self, name: str, command: tuple[str | Path, ...], *, stdout: Any, stderr: Any, env: dict[str, str] | None = None
    ) -> Running:
        assert self._guard.stdin is not None
        with anyio.CancelScope(shield=True):  # a process that was started is known, also to the guard
            process = await anyio.open_process(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                env=os.environ | (env or {}),
                start_new_session=True,
            )
            running = Running(name, process)
            self._running.append(running)
            await self._guard.stdin.send(f"{process.pid}\n".encode())
        self._tasks.start_soon(self._watch, running)
        return running

    async def _watch(self, running: Running) -> None:
        code = await running.process.wait()
        if running.is_wanted:
            raise EndedError(f"{running.name} ended by itself with exit code {code}")
