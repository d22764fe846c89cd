"""``kcl status --watch``: what happens to a fleet is told while it happens."""

import json
import os
import pty
import re
import signal
import subprocess
from threading import Thread
from typing import Any

import pytest

from tests.processes.fleet import Fleet
from tests.processes.process import KCL, PATIENCE_S, Process


def watching(fleet: Fleet, *arguments: str) -> Process:
    return Process(KCL, "status", "worker.yaml", "--watch", *arguments, cwd=fleet.folder, env=fleet.env())


def test_each_line_is_a_status_with_what_has_changed(fleet: Fleet) -> None:
    """A second worker joins, and gets its share; Ctrl-C is the way to end it."""
    fleet.create(2)
    fleet.put(10)
    fleet.start(leases__worker_id="alpha")
    fleet.until_delivered(10)
    watch = watching(fleet, "--json")
    watch.out.until_said('"changes": []')
    fleet.start(leases__worker_id="beta")
    watch.out.until_said("went from alpha/")
    said = [json.loads(line) for line in watch.out.lines]
    assert all(list(status)[-2:] == ["changes", "trouble"] and status["trouble"] is None for status in said)
    changes = [change for status in said for change in status["changes"]]
    assert any(change.startswith("beta/") and change.endswith("is there, starting") for change in changes)
    watch.send(signal.SIGINT)
    assert (watch.wait(), watch.err.lines) == (0, [])


@pytest.mark.parametrize(("by", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_the_screen_of_a_terminal_is_left_as_it_was(fleet: Fleet, by: signal.Signals, code: int) -> None:
    """It shows the shard, and ends at Ctrl-C and SIGTERM without a trace."""
    fleet.create(1)
    fleet.put(10)
    fleet.start()
    fleet.until_delivered(10)
    ours, its = pty.openpty()
    watch = subprocess.Popen(
        [KCL, "status", "worker.yaml", "--watch"],
        cwd=fleet.folder,
        env=fleet.env(TERM="xterm", COLUMNS="160", LINES="40"),
        stdout=its,
        stderr=subprocess.PIPE,
    )
    os.close(its)
    shown = b""
    while b"shardId-000000000000" not in shown:
        shown += os.read(ours, 65536)
    watch.send_signal(by)
    rest: list[Any] = []
    reader = Thread(target=lambda: rest.extend(read_on(ours)))
    reader.start()
    assert watch.wait(PATIENCE_S) == code
    reader.join()
    os.close(ours)
    assert watch.stderr is not None
    assert watch.stderr.read() == b""
    watch.stderr.close()
    assert shown.startswith(b"\x1b[?1049h")
    assert b"\x1b[?1049l" in b"".join(rest), "the alternate screen is left"


def test_watching_ends_with_its_terminal(fleet: Fleet) -> None:
    """Also where no signal tells of that: nobody looks any more."""
    fleet.create(1)
    fleet.put(1)
    fleet.start()
    fleet.until_delivered(1)
    ours, its = pty.openpty()
    with subprocess.Popen(
        [KCL, "status", "worker.yaml", "--watch"],
        cwd=fleet.folder,
        env=fleet.env(TERM="xterm"),
        stdout=its,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as watch:
        os.close(its)
        assert os.read(ours, 65536)
        os.close(ours)
        assert watch.wait(PATIENCE_S) == 0
        assert watch.stderr is not None
        assert watch.stderr.read() == b""


@pytest.mark.parametrize("kind", ["xterm", "dumb"])
def test_a_terminal_gets_a_status_that_fits(fleet: Fleet, kind: str) -> None:
    """All columns, however wide, are for a pipe."""
    fleet.create(2)
    fleet.put(10)
    fleet.start(leases__worker_id="a-host-with-a-name-that-takes-much-room.eu-west-1.compute.internal-12345")
    fleet.until_delivered(10)
    command = [KCL, "status", "worker.yaml"]
    shown = on_terminal(command, fleet, TERM=kind, COLUMNS="80")
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in shown.splitlines()]
    assert [line[:20] for line in lines if line.startswith("shardId")] == [
        "shardId-000000000000",
        "shardId-000000000001",
    ]
    assert max(map(len, lines)) <= 80
    assert ("\x1b" in shown) == (kind == "xterm")
    piped = subprocess.run(command, cwd=fleet.folder, env=fleet.env(), capture_output=True, text=True, check=True)
    assert "throughput_kbps" in piped.stdout


def test_a_terminal_says_on_one_line_what_is_waited_for(fleet: Fleet, nowhere: str) -> None:
    """It is gone before the error, or the table; the cursor is there again."""
    shown = on_terminal(
        [KCL, "status", "worker.yaml"], fleet, TERM="xterm", COLUMNS="80", aws__endpoint=nowhere, aws__start_timeout_s=1
    )
    assert "waiting: cannot read stream" in shown
    assert "kcl_py.start.waiting" not in shown
    assert shown.rpartition("\x1b[2K")[2].startswith("error: cannot read stream")
    assert shown.count("\n") == 2, "after that line and the error"
    assert shown.rfind("\x1b[?25h") > shown.rfind("\x1b[?25l")


def on_terminal(command: list[str], fleet: Fleet, **variables: object) -> str:
    """Return all that a command writes to a terminal."""
    ours, its = pty.openpty()
    with subprocess.Popen(command, cwd=fleet.folder, env=fleet.env(**variables), stdout=its, stderr=its) as looked:
        os.close(its)
        shown = b"".join(read_on(ours))
        looked.wait(PATIENCE_S)
    os.close(ours)
    return shown.decode()


def test_a_terminal_that_can_only_add_lines_gets_reports(fleet: Fleet) -> None:
    """As in an editor's shell; a screen would show nothing there."""
    fleet.create(1)
    fleet.put(10)
    fleet.start()
    fleet.until_delivered(10)
    ours, its = pty.openpty()
    with subprocess.Popen(
        [KCL, "status", "worker.yaml", "--watch"], cwd=fleet.folder, env=fleet.env(TERM="dumb"), stdout=its
    ) as watch:
        os.close(its)
        shown = b""
        while b"shardId-000000000000" not in shown:
            shown += os.read(ours, 65536)
        watch.send_signal(signal.SIGINT)
        read_on(ours)
        assert watch.wait(PATIENCE_S) == 0
    os.close(ours)
    assert b"\x1b" not in shown


def read_on(terminal: int) -> list[bytes]:
    """Read until nobody has the other end any more, which Linux tells by an error."""
    found = []
    try:
        while piece := os.read(terminal, 65536):
            found.append(piece)
    except OSError:
        pass
    return found


def test_watching_ends_when_nobody_reads_any_more(fleet: Fleet) -> None:
    """As with ``head``."""
    fleet.create(1)
    fleet.put(1)
    fleet.start()
    fleet.until_delivered(1)
    done = subprocess.run(
        f"'{KCL}' status worker.yaml --watch --json | head -n 1",
        shell=True,
        cwd=fleet.folder,
        env=fleet.env(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert json.loads(done.stdout)["totals"]["shards"] == 1
    assert done.stderr == ""
