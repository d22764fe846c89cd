"""A ``kcl local`` as a process of its own, for the length of a block."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO

from kcl_py.errors import KclError

STOPS_WITHIN_S = 10.0
"""After this it is killed."""


@contextmanager
def local_aws() -> Iterator[str]:
    """Start one on a free port and yield its address, such as ``http://127.0.0.1:40123``; stop it after the block.

    Raises:
        KclError: it did not start, with its own sentence: the extra ``local`` is missing, for example.
    """
    command = [sys.executable, "-m", "kcl_py.local", "--port", "0"]
    with (
        TemporaryFile("w+", encoding="utf-8") as errors,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        assert process.stdout is not None
        try:
            word, _, url = process.stdout.readline().strip().partition(" ")
            if word != "ready":
                raise KclError(f"cannot start kcl local: {_last_line(errors, process)}")
            yield url
        finally:
            _stop(process)


def _stop(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    try:
        process.wait(STOPS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()


def _last_line(errors: IO[str], process: "subprocess.Popen[str]") -> str:
    code = process.wait(STOPS_WITHIN_S)
    errors.seek(0)
    lines = errors.read().splitlines() or [f"expected it to say that it is ready, found exit code {code}"]
    return lines[-1].removeprefix("error: ")
