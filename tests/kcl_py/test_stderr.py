"""What becomes of diagnostics when their place takes nothing."""

import io
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kcl_py.stderr import DroppingFile

MAIN = [sys.executable, "-c", "from kcl_py.cli.app import main; main()"]


@pytest.mark.parametrize("is_blocking", [True, False])
def test_what_is_missing_is_named_once_the_place_takes_something_again(is_blocking: bool) -> None:
    """A reader that stands still keeps nobody waiting, and what it gets then adds up."""
    reading, writing = os.pipe()
    os.set_blocking(writing, is_blocking)
    os.set_blocking(reading, False)
    line, taken = b"x" * 4999 + b"\n", b""
    with io.TextIOWrapper(io.BufferedWriter(io.FileIO(writing, "w"))) as stream, DroppingFile(stream) as file:
        for _ in range(100):
            assert file.write(line) == len(line)
        while len(taken) < 100 * len(line):
            try:
                taken += os.read(reading, 1 << 20)
            except BlockingIOError:
                break
        file.write(b"again\n")
        taken += os.read(reading, 1 << 20)
    os.close(reading)
    notice = rb"(?<=\n)warning: (\d+) bytes are missing here: whoever reads it took nothing\n"
    rest, missing, again = re.split(notice, taken)
    assert len(rest) + int(missing) - 100 * len(line) in (0, 1), "a line that was cut is ended"
    assert (int(missing) > 0, again) == (True, b"again\n")


def test_a_terminal_that_shows_nothing_more_keeps_nobody_waiting() -> None:
    """As one that was stopped by Ctrl-S: all is said, or dropped, at once."""
    ours, its = pty.openpty()
    code = "import sys; from kcl_py.stderr import drop_unwritable; drop_unwritable(); " + (
        "[sys.stderr.write('x' * 2999 + '\\n') for _ in range(100)]; print('said')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=its, text=True, timeout=30, check=False
    )
    os.close(its)
    os.close(ours)
    assert (done.returncode, done.stdout) == (0, "said\n")


def test_nobody_who_reads_stderr_changes_no_exit_code() -> None:
    """Not while there is something to say, and not at the exit."""
    reading, writing = os.pipe()
    os.close(reading)
    for arguments, code in ((["check", "nowhere.yaml"], 2), (["--version"], 0), (["--no-such"], 2)):
        done = subprocess.run([*MAIN, *arguments], stdout=subprocess.DEVNULL, stderr=writing, timeout=60, check=False)
        assert done.returncode == code, arguments
    os.close(writing)


@pytest.mark.parametrize("does", [
    "sys.stderr = os.fdopen(2, 'w', buffering=1, closefd=False)",
    "sys.stderr = open('/dev/full', 'w', buffering=1)",
    "sys.stderr = sys.__stderr__",
    "sys.stderr = None",
    "sys.stderr.close()",
    "sys.stderr.detach()",
])  # fmt: skip
def test_a_module_that_puts_something_else_there_changes_no_exit_code(tmp_path: Path, does: str) -> None:
    """However much of what is said then is heard."""
    (tmp_path / "mine.py").write_text(f"import os, sys\n{does}\nclass Mine: pass\n", encoding="utf-8")
    (tmp_path / "worker.yaml").write_text("{app: a, stream: b, processor: 'mine:Mine'}", encoding="utf-8")
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([*MAIN, "check", "worker.yaml"], cwd=tmp_path, stderr=full, timeout=60, check=False)
    assert done.returncode == 2


def test_what_is_said_where_there_is_no_stderr_gets_into_no_file(tmp_path: Path) -> None:
    """Its number is nobody else's."""
    opens = "import sys\nfile = open('data', 'wb', buffering=0)\nsys.stderr.write('log')\nfile.write(b'data')\n"
    (tmp_path / "mine.py").write_text(opens, encoding="utf-8")
    (tmp_path / "worker.yaml").write_text("{app: a, stream: b, processor: 'mine:Mine'}", encoding="utf-8")
    command = f"'{sys.executable}' -c '{MAIN[-1]}' check worker.yaml 2>&-"
    done = subprocess.run(command, shell=True, cwd=tmp_path, timeout=60, check=False)
    assert (done.returncode, (tmp_path / "data").read_bytes()) == (2, b"data")
