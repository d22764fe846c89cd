"""What becomes of diagnostics when their place takes nothing."""

import os
import re
import subprocess
import sys

from kcl_py.stderr import Dropping


def test_what_is_missing_is_named_once_the_place_takes_something_again() -> None:
    """A pipe that must not block, and is full for a while."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    line, written_bytes, taken = b"x" * 999 + b"\n", 0, b""
    with Dropping(writing) as file:
        for _ in range(1000):
            rest = line
            while rest:
                rest = rest[file.write(rest) :]
            written_bytes += len(line)
        os.set_blocking(reading, False)
        while len(taken) < written_bytes:
            try:
                taken += os.read(reading, 1 << 20)
            except BlockingIOError:
                break
        file.write(b"again\n")
        taken += os.read(reading, 1 << 20)
    os.close(reading)
    os.close(writing)
    missing = re.compile(rb"\nwarning: (\d+) bytes are missing here: Resource temporarily unavailable\n")
    assert taken.endswith(b"again\n")
    assert len(missing.sub(b"", taken)) + sum(map(int, missing.findall(taken))) == written_bytes + len(b"again\n")
    assert missing.search(taken)


def test_nobody_who_reads_stderr_changes_no_exit_code() -> None:
    """Not while there is something to say, and not at the exit."""
    reading, writing = os.pipe()
    os.close(reading)
    for arguments, code in ((["check", "nowhere.yaml"], 2), (["--version"], 0), (["--no-such"], 2)):
        done = subprocess.run(
            [sys.executable, "-c", "from kcl_py.cli.app import main; main()", *arguments],
            stdout=subprocess.DEVNULL,
            stderr=writing,
            timeout=60,
            check=False,
        )
        assert done.returncode == code, arguments
    os.close(writing)
