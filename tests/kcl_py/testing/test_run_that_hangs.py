"""A processor that never comes to its end: the run does, and says what it waited for."""

import asyncio
import time

import anyio
import pytest

from kcl_py import Checkpointer, RecordBatch, RecordProcessor
from kcl_py.testing import FakeStream, RunTimeoutError, record, run_processor

pytestmark = pytest.mark.asyncio
TIMEOUT_S = 1.0
"""Enough for a worker to come to its first hook, also on a busy machine."""
PATIENCE_S = 30.0


class Stuck(RecordProcessor):
    """Waits for what never comes."""

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        await asyncio.Event().wait()


class StuckAtTheEnd(RecordProcessor):
    """Never says goodbye."""

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None: ...

    async def shutdown_requested(self, checkpointer: Checkpointer) -> None:
        await asyncio.Event().wait()


class Deaf(RecordProcessor):
    """Goes on although it is cancelled."""

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        while not heard.is_set():
            try:
                await heard.wait()
            except asyncio.CancelledError:
                continue


heard = asyncio.Event()


async def test_hook_that_does_not_return_is_named_with_what_was_finished() -> None:
    """In one sentence without any data, and soon; the worker is gone by then."""
    before, began = asyncio.all_tasks(), time.perf_counter()
    stream = FakeStream(shards=2)
    stream.put(record("secret-1", hash_key=0), record("secret-2", hash_key=2**128 - 1))

    class StuckOnOne(Stuck):
        async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
            if batch.shard_id == stream.shards[0]:
                await super().process_records(batch, checkpointer)

    with pytest.raises(RunTimeoutError) as raised:
        await run_processor(StuckOnOne, stream=stream, timeout_s=TIMEOUT_S)
    assert TIMEOUT_S <= time.perf_counter() - began < TIMEOUT_S + PATIENCE_S
    assert str(raised.value).endswith(
        "StuckOnOne': expected its work to be done within 1 s, found: shardId-000000000000: "
        "0 of 1 records are finished; process_records of shardId-000000000000 has not returned"
    )
    assert "secret" not in str(raised.value)
    assert asyncio.all_tasks() == before


async def test_hook_that_hangs_while_the_worker_stops_is_named_too() -> None:
    """All work is done, and the run still has to end."""
    with pytest.raises(RunTimeoutError, match="found: shutdown_requested of shardId-000000000000 has not returned"):
        await run_processor(StuckAtTheEnd, ["a"], timeout_s=TIMEOUT_S)


async def test_hook_that_ignores_its_cancellation_is_left_behind() -> None:
    """A second later, as by ``kcl run``."""
    with pytest.raises(RunTimeoutError, match="process_records of shardId-000000000000 has not returned"):
        await run_processor(Deaf, ["a"], timeout_s=TIMEOUT_S)
    heard.set()


@pytest.mark.parametrize("processor", [Stuck, StuckAtTheEnd])
async def test_run_that_is_cancelled_stops_its_worker(processor: type[RecordProcessor]) -> None:
    """As a limit of the test's own does; no task stays behind."""
    before = asyncio.all_tasks()
    with anyio.move_on_after(TIMEOUT_S) as limit:
        await run_processor(processor, ["a"])
    assert limit.cancelled_caught
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(run_processor(processor, ["a"]), TIMEOUT_S)
    assert asyncio.all_tasks() == before


class StuckForGood(Stuck):
    """Does not even let go."""

    async def lease_lost(self) -> None:
        await asyncio.Event().wait()


async def test_last_hook_that_hangs_too_is_cut_off() -> None:
    """On the manual clock, as by ``kcl run``: the run ends soon after its limit."""
    began = time.perf_counter()
    with pytest.raises(RunTimeoutError, match="process_records of shardId-000000000000 has not returned"):
        await run_processor(StuckForGood, ["a"], timeout_s=TIMEOUT_S)
    assert time.perf_counter() - began < TIMEOUT_S + PATIENCE_S


async def test_hook_that_blocks_the_loop_is_named_once_it_has_returned() -> None:
    """Nothing is left to do by then, and the limit was passed because of it."""

    class Blocking(RecordProcessor):
        async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
            until = time.perf_counter() + TIMEOUT_S + 0.1
            while time.perf_counter() < until:
                pass

    with pytest.raises(RunTimeoutError, match=r"process_records of shardId-000000000000 took \d\.\d s$"):
        await run_processor(Blocking, ["a"], timeout_s=TIMEOUT_S)


async def test_hook_that_only_asks_for_checkpoints_is_stopped_too() -> None:
    """Although there is never anything to store: each call lets the others go on."""

    class Storing(RecordProcessor):
        async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
            while True:
                await checkpointer.checkpoint()

    with pytest.raises(RunTimeoutError, match="process_records of shardId-000000000000 has not returned"):
        await run_processor(Storing, ["a"], timeout_s=TIMEOUT_S)


async def test_hook_that_always_raises_is_named_with_its_last_error() -> None:
    """Its text may hold data, so only the class is in the sentence; all of it is chained."""

    class Failing(RecordProcessor):
        async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
            raise ValueError("secret")

    with pytest.raises(RunTimeoutError, match=r"process_records has raised \d\d times, at last ValueError$") as raised:
        await run_processor(Failing, ["a"], retries=1000)
    assert str(raised.value.__cause__) == "secret"


async def test_lease_that_another_worker_holds_is_named() -> None:
    """As that of one which the test has opened and left."""
    stream = FakeStream()
    async with stream.worker(Stuck):
        await stream.clock.advance(1)
        with pytest.raises(RunTimeoutError, match=r"it is not initialized, its lease is with '.+/.+'$"):
            await run_processor(Stuck, stream=stream, timeout_s=TIMEOUT_S)
