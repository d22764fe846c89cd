"""The twenty lines of the README, typed in as they stand there; only the port is another."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.docs.pages import DOCS, README, blocks
from tests.processes.process import Process, clean_env, ended

URL = "http://127.0.0.1:4567"
ENV = clean_env(PATH=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
LOCAL, WORKER, PUT = blocks(README, "sh")
[PRINTED] = [block.splitlines() for block in blocks(README, "text") if block.startswith("shardId-")]


@dataclass
class Terminals:
    """Shells in the reader's folder, with a ``kcl local`` in one of them."""

    folder: Path
    url: str
    stack: ExitStack

    def open(self, script: str) -> Process:
        """Type ``script`` into a shell; its last command takes the shell's place."""
        *lines, last = script.replace(URL, self.url).splitlines()
        command = ("bash", "-ec", "\n".join([*lines, f"exec {last}"]))
        return self.stack.enter_context(closing(Process(*command, cwd=self.folder, env=ENV)))

    def put(self) -> CompletedProcess[str]:
        """Put the records of the README."""
        script = f"{variables()}\n{PUT}".replace(URL, self.url)
        return ended("bash", "-ec", script, cwd=self.folder, env=ENV)

    def status(self) -> dict[str, Any]:
        """Return what ``kcl status`` tells of the worker's lease table."""
        script = f"{variables()}\nkcl status hello.yaml --json".replace(URL, self.url)
        status: dict[str, Any] = json.loads(ended("bash", "-ec", script, cwd=self.folder, env=ENV).stdout)
        return status


def variables() -> str:
    """Return the lines that set the four variables."""
    return "\n".join(line for line in WORKER.splitlines() if line.startswith("export "))


@pytest.fixture
def terminals(tmp_path: Path) -> Iterator[Terminals]:
    """The two files are written, and ``kcl local`` is ready."""
    (tmp_path / "hello.py").write_text(blocks(README, "python")[0], encoding="utf-8")
    (tmp_path / "hello.yaml").write_text(blocks(README, "yaml")[0], encoding="utf-8")
    with ExitStack() as stack:
        terminals = Terminals(tmp_path, URL, stack)
        local = terminals.open(LOCAL.replace("4567", "0"))
        terminals.url = local.out.until_said("ready ").removeprefix("ready ")
        yield terminals


def lines_of(worker: Process) -> list[str]:
    """Wait for all records of the README; between shards any order is right."""
    return sorted(worker.out.until(lambda: shown(worker)[len(PRINTED) - 1 :] and shown(worker), "records"))


def shown(worker: Process) -> list[str]:
    return [line for line in worker.out.lines if line.startswith("shardId-")]


def test_twenty_lines_print_what_the_readme_says(terminals: Terminals) -> None:
    """And they stop in order."""
    worker = terminals.open(WORKER)
    assert terminals.put().returncode == 0
    assert lines_of(worker) == PRINTED
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_program_of_the_semantics_page_works_and_stops_in_order(terminals: Terminals, number: int) -> None:
    """In code instead of by the command; it tells how it ended, and leaves no lease for others to wait for."""
    [program] = blocks(DOCS / "semantics.md", "python")
    (terminals.folder / "program.py").write_text(program, encoding="utf-8")
    assert terminals.put().returncode == 0
    worker = terminals.open(f"{variables()}\npython program.py")
    assert lines_of(worker) == PRINTED
    worker.send(number)
    assert worker.wait() == 0
    assert worker.out.lines[-1] == "clean: True, 0 records will come again"
    assert not [line for line in worker.err.lines if "Traceback" in line]
    assert {shard["state"] for shard in terminals.status()["shards"]} == {"free"}
