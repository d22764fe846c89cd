"""Hooks that are ``def``, in threads: off the event loop, with a checkpointer that blocks until it is stored."""

import asyncio
import threading
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from kcl_py import ProcessorError, Record, RecordBatch, RecordProcessor
from kcl_py.executors.checkpointer import SyncCheckpointer
from kcl_py.executors.thread import in_threads
from kcl_py.testing import FakeStream, run_processor
from tests.kcl_py.executors.checkpointers import Heard

pytestmark = pytest.mark.asyncio
THREADS = {"delivery": {"executor": "thread"}}
LOOP = threading.main_thread()


class Counter(RecordProcessor):
    """Notes where its hooks run."""

    def __init__(self) -> None:
        self.threads = [threading.current_thread()]
        self.data: list[bytes] = []

    def process_records(self, batch: RecordBatch, checkpointer: SyncCheckpointer) -> None:  # type: ignore[override]
        self.threads.append(threading.current_thread())
        self.data += [record.data for record in batch]

    def shard_ended(self, checkpointer: SyncCheckpointer) -> None:  # type: ignore[override]
        self.threads.append(threading.current_thread())


async def test_def_hooks_run_off_the_event_loop_and_finish_batches() -> None:
    """As any others, and so does the constructor, which may connect to something."""
    run = await run_processor(Counter, ["a", "b", "c"], batch_size=2, end_shards=True, options=THREADS)
    [call, *_] = run.calls
    assert call.processor is not None
    assert call.processor.data == [b"a", b"b", b"c"]
    assert LOOP not in call.processor.threads
    assert "SHARD_END" in run.checkpoints.values()


class Mixed(Counter):
    """One hook here, one there."""

    async def initialize(self, shard: object) -> None:
        self.threads.append(threading.current_thread())


async def test_async_hooks_of_the_same_class_run_on_the_event_loop() -> None:
    """Hook by hook."""
    run = await run_processor(Mixed, ["a"], options=THREADS)
    processor = run.calls[0].processor
    assert processor is not None
    assert [thread is LOOP for thread in processor.threads] == [False, True, False]


class Careful(RecordProcessor):
    """Checkpoints each record, and notes what it is told."""

    stored: list[bytes]
    errors: list[Exception]

    def process_records(self, batch: RecordBatch, checkpointer: SyncCheckpointer) -> None:  # type: ignore[override]
        self.stored, self.errors = [], []
        for record in batch:
            checkpointer.checkpoint(record)
            self.stored.append(record.data)
        wrong: Any = "nonsense"
        try:
            checkpointer.checkpoint(wrong)
        except Exception as error:
            self.errors.append(error)
        raise ValueError("after the checkpoints")


async def test_checkpointer_of_a_thread_stores_and_raises_what_the_other_does() -> None:
    """When it has returned, the position is stored: nothing comes again, though the hook raises."""
    run = await run_processor(Careful, ["a", "b"], options=THREADS | {"checkpoint": {"mode": "manual"}})
    processor = run.calls[0].processor
    assert processor is not None
    assert processor.stored == [b"a", b"b"]
    assert [type(error).__name__ for error in processor.errors] == ["PositionError"]
    assert [len(call.batch or ()) for call in run.calls if call.hook == "process_records"] == [2]


class Forgetful(RecordProcessor):
    """Hands out work that nobody does."""

    def process_records(self, batch: RecordBatch, checkpointer: SyncCheckpointer) -> Any:  # type: ignore[override]
        return self.work()

    async def work(self) -> None:
        raise AssertionError


async def test_coroutine_that_a_def_returns_is_a_failure_not_a_success() -> None:
    """The records would count as done, and nothing was done."""
    run = await run_processor(Forgetful, ["a"], retries=0, options=THREADS)
    [call] = [call for call in run.calls if call.hook == "process_records"]
    assert isinstance(call.error, ProcessorError)
    assert "make it `async def process_records`" in str(call.error)
    assert run.halted


async def test_def_without_an_executor_is_refused_with_the_option_that_allows_it() -> None:
    """Otherwise it would block the event loop."""
    with pytest.raises(ProcessorError, match=r"found `def`; set delivery\.executor to thread or process"):
        await run_processor(Counter, ["a"], stream=FakeStream())


class Stopping(Counter):
    """Runs out of something."""

    def initialize(self, shard: object) -> None:  # type: ignore[override]
        next(iter(()))


async def test_stop_iteration_is_a_failure_like_any_other() -> None:
    """No coroutine can raise it, and a future that is given one would never be done."""
    run = await run_processor(Stopping, ["a"], retries=0, options=THREADS)
    assert [str(call.error) for call in run.calls if call.error] == ["a hook raised StopIteration"]


async def test_attempt_in_a_thread_is_waited_for_before_the_next_one() -> None:
    """Nothing can stop a thread: cancelled, the call ends when its thread does, so a shard never has two."""
    has_begun, may_end = anyio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    class Slow(Counter):
        def process_records(self, batch: RecordBatch, checkpointer: SyncCheckpointer) -> None:  # type: ignore[override]
            loop.call_soon_threadsafe(has_begun.set)
            may_end.wait(30)

    processor = in_threads(Slow, 1)()
    batch, heard = RecordBatch("s", "shard-1", [Record("1", b"", "key")], 0), Heard()
    running = asyncio.create_task(processor.process_records(batch, heard))
    await has_begun.wait()
    running.cancel()
    waiting = asyncio.create_task(processor.process_records(batch, heard))
    await checkpoint()
    waiting.cancel()  # for it has no thread yet
    await asyncio.wait([waiting])
    assert not running.done()
    may_end.set()
    await asyncio.wait([running])
    assert running.cancelled()
