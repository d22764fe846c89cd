"""The demo with real processes, but without Spark and in a hurry: January, through a split and a killed worker."""

import os
import signal
import socket
import sys
from contextlib import closing
from pathlib import Path

import pytest

from actors.clock import SystemClock
from examples.demo.environment import AWS
from examples.demo.reckoning import reckon
from examples.demo.story import Plan, Story
from examples.demo.verdict import failures
from examples.demo.view import View
from tests.processes.process import Process, clean_env

ROOT = Path(__file__).parents[2]
HURRIED = Plan(is_quick=True, has_spark=False, rate=8000)


class Memory:
    """A screen that remembers what was said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def show(self, view: View) -> None:
        """Nobody looks."""


@pytest.mark.asyncio
async def test_every_flight_comes_through_a_split_and_a_killed_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None is missing, and none comes again but what the killed worker had not stored; both happened."""
    for name in [name for name in os.environ if name.startswith(("AWS_", "KCL_"))]:
        monkeypatch.delenv(name)
    for name, value in AWS.items():
        monkeypatch.setenv(name, value)
    screen = Memory()
    traces = await Story(HURRIED, tmp_path, screen, SystemClock()).run()
    reckoning, _ = reckon(HURRIED, traces)
    assert failures(reckoning) == []
    assert reckoning.put == 27_004
    assert traces.checkpoints
    assert any(text.startswith("split shardId-000000000000 into ") for text in screen.said)
    assert any("took them over" in text for text in screen.said)


def test_interrupted_demo_ends_at_once_and_leaves_nothing_running() -> None:
    """Ctrl-C is no failure to explain: exit code 130, no traceback, and what it had started is gone."""
    command = (sys.executable, "-m", "examples.demo", "--quick", "--no-spark")
    with closing(Process(*command, cwd=ROOT, env=clean_env())) as demo:
        (line,) = demo.out.until(lambda: demo.out.lines[:1], "first line")
        port = int(line.partition("http://127.0.0.1:")[2].partition(";")[0])
        socket.create_connection(("127.0.0.1", port)).close()
        demo.send(signal.SIGINT)
        assert demo.wait() == 130
        assert demo.err.lines == []
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
