"""A command as a process in a group of its own, ended whatever happens; tests wait for what it says, never for time.

Both outputs are read by threads as they come, so the process never waits for the test. Durations are seconds.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from threading import Condition, Thread
from typing import IO, Any, TypeVar

KCL = str(Path(sys.executable).with_name("kcl"))
PATIENCE_S = 40.0
"""Longest wait for something that has no limit of its own, on a machine that is busy with other work."""

Event = dict[str, Any]
T = TypeVar("T")


def clean_env(**variables: str) -> dict[str, str]:
    """Return this environment without any AWS or kcl settings but the given ones."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "KCL_"))}
    nowhere = {"AWS_CONFIG_FILE": "/nonexistent", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent"}
    return kept | nowhere | {"AWS_EC2_METADATA_DISABLED": "true"} | variables


def at(event: Event) -> float:
    """Return when the process says that it happened, in Unix seconds."""
    return datetime.fromisoformat(event["timestamp"]).timestamp()


class Output:
    """What a process has said on one of its outputs, in whole lines.

    Args:
        pipe: the output; a thread reads it to its end.
        heard: notified of every line; one for several outputs lets a test wait for them all.
    """

    def __init__(self, pipe: IO[str], heard: Condition | None = None) -> None:
        self.lines: list[str] = []
        self._pipe, self._heard, self._is_over = pipe, heard or Condition(), False
        self._reader = Thread(target=self._read)
        self._reader.start()

    def until(self, look: Callable[[], T | None], what: str) -> T:
        """Wait until ``look`` finds something, asking it again after every line."""
        with self._heard:
            self._heard.wait_for(lambda: look() or self._is_over, PATIENCE_S)
            found = look()
        assert found, f"no {what} in time after:\n" + "\n".join(self.lines[-30:])
        return found

    def until_said(self, text: str) -> str:
        """Wait for a line with ``text`` and return it."""
        return self.until(lambda: next((line for line in self.lines if text in line), None), repr(text))

    def close(self) -> None:
        """Read what is left of a process that has ended."""
        self._reader.join()
        self._pipe.close()

    def _read(self) -> None:
        for line in self._pipe:
            with self._heard:
                if line.endswith("\n"):  # else it was killed in the middle
                    self.lines.append(line.rstrip("\n"))
                self._heard.notify_all()
        with self._heard:
            self._is_over = True
            self._heard.notify_all()


class Process:
    """A running command.

    Args:
        command: program and arguments.
        cwd: where it runs.
        env: its whole environment.
        heard: notified of every line on stdout.
    """

    def __init__(self, *command: str, cwd: Path, env: Mapping[str, str], heard: Condition | None = None) -> None:
        self._popen = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._popen.stdout is not None
        assert self._popen.stderr is not None
        self.out, self.err = Output(self._popen.stdout, heard), Output(self._popen.stderr)

    @property
    def pid(self) -> int:
        return self._popen.pid

    def logged(self, name: str, **fields: object) -> list[Event]:
        """Return the events ``kcl_py.<name>`` with these fields so far."""
        wanted = {"event": f"kcl_py.{name}", **fields}
        events = [json.loads(line) for line in self.err.lines if line.startswith("{")]
        return [event for event in events if all(event.get(key) == value for key, value in wanted.items())]

    def until_logged(self, name: str, count: int = 1, **fields: object) -> list[Event]:
        """Wait until there are ``count`` such events; return them."""
        return self.err.until(lambda: (found := self.logged(name, **fields))[count - 1 :] and found, name)

    def send(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self) -> int:
        """Wait until it has ended and all that it said is read; return the exit code."""
        code = self._popen.wait(PATIENCE_S)
        self.out.close()
        self.err.close()
        return code

    def kill(self) -> None:
        """Kill the whole group, unless it is gone, and read what it had said."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.wait()

    close = kill


def ended(*command: str, cwd: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def the_error(lines: Sequence[str]) -> str:
    """Return the one ``error:`` line, with which stderr ends, without its mark; there must be no traceback."""
    errors = [line for line in lines if line.startswith("error: ")]
    assert errors == [lines[-1]], lines
    assert not any("Traceback" in line for line in lines)
    return errors[0].removeprefix("error: ")
