"""What happens to what a command says when its reader has left or its place is full."""

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SAYS_MUCH = "from kcl_py.cli.output import say; [say('x' * 1000 + '\\n') for _ in range(1000)]"


@pytest.mark.parametrize("opened", [os.pipe, pty.openpty], ids=["pipe", "terminal"])
def test_reader_that_leaves_early_ends_no_command(opened: Callable[[], tuple[int, int]]) -> None:
    """As ``head``, or a terminal that is closed: no traceback, not at the exit either, and exit code 0."""
    reading, writing = opened()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", SAYS_MUCH], stdout=writing, stderr=subprocess.PIPE, timeout=30, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_output_that_cannot_be_written_is_an_error_that_says_so(tmp_path: Path) -> None:
    """Not one about a port, or a line that nobody has seen: here the file may not grow."""
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); "
        "from kcl_py.cli.app import main; main(['local', '--port', '0'])"
    )
    with (tmp_path / "output").open("w", encoding="utf-8") as file:
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=file, stderr=subprocess.PIPE, text=True, timeout=30, check=False
        )
    assert done.stderr == "error: cannot write to stdout: File too large; send it elsewhere\n"
    assert done.returncode == 1


def test_output_without_a_stdout_is_dropped() -> None:
    """As that of a daemon."""
    code = f"import sys; sys.stdout = None; {SAYS_MUCH}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
