"""Children whose hooks do strange things to them: the worker always hears how a call ends, and no child outlives it."""

import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio import fail_after
from anyio.lowlevel import checkpoint

from kcl_py import OwnedShard, Record
from kcl_py.executors.frames import Call
from kcl_py.executors.running_child import RunningChild
from kcl_py.testing import run_processor
from tests.kcl_py.executors.processors import Strange

pytestmark = pytest.mark.asyncio
PATIENCE_S = 10


@pytest.fixture
def diary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file into which the children write; what they have forked and left behind ends with the test."""
    path = tmp_path / "diary"
    monkeypatch.setenv("DIARY", str(path))
    yield path
    for stopped in Path("/proc").glob("[0-9]*"):
        try:
            is_ours = f"DIARY={path}".encode() in (stopped / "environ").read_bytes()
        except OSError:
            continue
        if is_ours and int(stopped.name) != os.getpid():
            os.kill(int(stopped.name), signal.SIGKILL)


@pytest.mark.parametrize(
    ("what", "found"),
    [
        ("fork and die", "ChildEndedError: cannot finish process of"),
        ("close stdout", None),
        ("close all", "ChildEndedError: cannot finish process of"),
        ("raise what is mute", "MuteError: "),
    ],
)
async def test_call_ends_whatever_the_hook_does_to_its_process(diary: Path, what: str, found: str | None) -> None:
    """A record whose call never ended would hold up its shard for good: the attempt counts or has failed."""
    run = await run_processor(Strange, [what], options={"delivery": {"executor": "process"}})
    assert run.acknowledged == [what.encode()]
    raised = [f"{type(call.error).__name__}: {call.error}" for call in run.calls if call.error is not None]
    assert len(raised) == (found is not None)
    assert all(each.startswith(found or "") for each in raised)


async def test_child_ends_with_a_worker_that_has_not_read_all_that_it_said(diary: Path) -> None:
    """A worker that is killed in the middle of an answer leaves no process behind."""
    child = await RunningChild.start(Strange, "shard-1")
    await child.call("initialize", (OwnedShard("s", "shard-1", 1, None, ()),), None)
    transport = child._line._transport
    assert transport is not None
    line = transport.get_extra_info("socket")
    transport.pause_reading()
    child._line.open(Call(2, "process", (Record("1", b"answer at length", "key"),)))
    with fail_after(PATIENCE_S):
        while not has_said_something(line.fileno()):
            await checkpoint()
        transport.abort()
        await child._process.wait()


def has_said_something(handle: int) -> bool:
    """Whether something can be read, which is left there."""
    return bool(select.select([handle], [], [], 0)[0])
