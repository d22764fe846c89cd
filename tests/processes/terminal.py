"""``kcl leases`` on a terminal of its own."""

import fcntl
import os
import pty
import subprocess
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from tests.processes.fleet import Fleet
from tests.processes.process import KCL


@contextmanager
def asking(fleet: Fleet, what: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run a command on a terminal of its own until it asks; yields it and our end of the terminal."""
    with on_terminal(fleet, what, *arguments, TERM="dumb") as (command, terminal):
        until_shown(terminal, b"[y/N]")
        yield command, terminal


def until_shown(terminal: int, text: bytes) -> None:
    said = b""
    while text not in said:
        said += os.read(terminal, 65536)


@contextmanager
def on_terminal(
    fleet: Fleet, what: str, *arguments: str, stdout: int | None = None, **env: str
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run a command on a terminal of its own, or but for its stdout; yields it and our end of the terminal."""
    ours, its = pty.openpty()
    command = subprocess.Popen(
        [KCL, "leases", what, "worker.yaml", *arguments],
        cwd=fleet.folder,
        env=fleet.env(**env),
        stdin=its,
        stdout=its if stdout is None else stdout,
        stderr=its,
        start_new_session=True,
        preexec_fn=partial(fcntl.ioctl, its, termios.TIOCSCTTY, 0),
    )
    os.close(its)
    try:
        yield command, ours
    finally:
        command.kill()
        command.wait()
        os.close(ours)
