"""Hooks off the event loop take what time they take, also on a clock that moves by itself."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from anyio import wait_all_tasks_blocked
from anyio.lowlevel import checkpoint

from kcl_py import RecordBatch, RecordProcessor
from kcl_py.executors.checkpointer import SyncCheckpointer
from kcl_py.testing import FakeStream, held
from tests.kcl_py.executors.blocking import Blocking, begin_anew, until_begun

pytestmark = pytest.mark.asyncio
SHARD = "shardId-000000000000"
LATE_S = 0.2
"""Of real time: many times what the clock takes for the whole grace."""


class Storing(Blocking):
    """Stores what it has done, then."""

    def process_records(self, batch: RecordBatch, checkpointer: SyncCheckpointer) -> None:  # type: ignore[override]
        super().process_records(batch, checkpointer)
        checkpointer.checkpoint(batch)


class Held(RecordProcessor):
    """Has a child process that never ends with a batch."""

    def process_records(self, batch: RecordBatch, checkpointer: SyncCheckpointer) -> None:  # type: ignore[override]
        Path(batch.records[0].data.decode()).touch()
        threading.Event().wait()


@pytest.fixture(autouse=True)
def events() -> Iterator[None]:
    begin_anew()
    yield
    Blocking.may_end.set()


async def test_worker_that_is_left_waits_for_the_thread_of_a_hook() -> None:
    """And not for a grace that is over at once on this clock; a checkpoint of the hook's own is stored meanwhile."""
    stream = FakeStream()
    stream.put("a")
    async with stream.worker(Storing, delivery={"executor": "thread"}) as worker:
        await until_begun(stream)
        asyncio.get_running_loop().call_later(LATE_S, Blocking.may_end.set)
    assert (await worker.wait()).is_clean
    assert stream.checkpoints == {SHARD: stream.records(SHARD)[0].sequence_number}


async def test_attempt_in_a_thread_is_not_late_because_time_passes_by_itself() -> None:
    """The limit is of the clock, which stands while the thread is at it."""
    stream = FakeStream()
    stream.put("a")
    options = {"delivery": {"executor": "thread", "attempt_timeout_s": 5}}
    async with stream.worker(Storing, **options) as worker, stream.clock.passing():
        while not Blocking.has_begun.is_set():
            await checkpoint()
        began_at = stream.clock.monotonic()
        await wait_all_tasks_blocked()
        assert stream.clock.monotonic() == began_at
        Blocking.may_end.set()
    assert (await worker.wait()).is_clean


async def test_hook_that_hangs_in_its_child_is_cut_off_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its records come again."""
    monkeypatch.setattr(held, "HELD_S", LATE_S)
    stream, begun = FakeStream(), tmp_path / "begun"
    stream.put(str(begun))
    async with stream.worker(Held, delivery={"executor": "process"}) as worker:
        while not begun.exists():
            await stream.clock.advance(0.1)
            await checkpoint()
    assert (await worker.wait()).unfinished == 1
    assert stream.checkpoints == {SHARD: "TRIM_HORIZON"}
