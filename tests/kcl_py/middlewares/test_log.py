"""A line for each call."""

from collections.abc import Iterator
from typing import ClassVar

import pytest
import structlog
from structlog.testing import LogCapture

from kcl_py import Batched, Batcher, Record, RecordBatch, RecordProcessor, Reject, ToBatch, processor
from kcl_py.middlewares.log import Log
from kcl_py.outcomes import BatchOutcome
from kcl_py.processor import Checkpointer
from kcl_py.testing import run_processor

pytestmark = pytest.mark.asyncio


@pytest.fixture
def log() -> Iterator[LogCapture]:
    capture = LogCapture()
    structlog.configure(processors=[capture])
    yield capture
    structlog.reset_defaults()


class Rejects(RecordProcessor):
    """Rejects the first record of each batch."""

    middlewares = (Log,)

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> BatchOutcome:
        return {batch.records[0]: Reject("no")}


@processor(middlewares=[Log])
async def handle(payload: bytes) -> None: ...


async def test_batch_is_one_line_at_debug_and_shows_no_payload(log: LogCapture) -> None:
    """With its shard, its size and what became of it."""
    await run_processor(Rejects, ["s3cret", "s3cret"], options={"delivery": {"on_failure": "skip"}})
    [line] = [entry for entry in log.entries if entry["event"] == "kcl_py.batch.processed"]
    assert line.pop("took_s") >= 0
    assert line == {
        "event": "kcl_py.batch.processed",
        "log_level": "debug",
        "stream": "test-stream",
        "shard_id": "shardId-000000000000",
        "epoch": 1,
        "records": 2,
        "lag_ms": 0,
        "outcome": "partly",
    }


async def test_batch_of_a_batcher_is_one_line_at_debug_without_its_key(log: LogCapture) -> None:
    """The key may be a person's."""

    class Gathers(RecordProcessor):
        middlewares = (Log,)
        batchers: ClassVar[dict[str, Batcher]] = {"mails": Batcher(max_records=2)}

        async def process(self, record: Record) -> ToBatch:
            return ToBatch("mails", key="s3cret")

        async def handle_batch(self, batch: Batched) -> None: ...

    await run_processor(Gathers, ["s3cret", "s3cret"])
    records = [entry for entry in log.entries if entry["event"] == "kcl_py.record.processed"]
    [line] = [entry for entry in log.entries if entry["event"] == "kcl_py.batched.processed"]
    assert [entry["outcome"] for entry in records] == ["batched", "batched"]
    assert [line[name] for name in ("batcher", "trigger", "records", "outcome")] == ["mails", "size", 2, "done"]
    assert "s3cret" not in repr([*records, line])


async def test_record_is_one_line_at_debug_and_shows_no_payload(log: LogCapture) -> None:
    """By its sequence number; its key may be a person's."""
    run = await run_processor(handle, ["s3cret"])
    [line] = [entry for entry in log.entries if entry["event"] == "kcl_py.record.processed"]
    [record] = run.records["shardId-000000000000"]
    assert (line["sequence_number"], line["outcome"]) == (record.sequence_number, "done")
    assert "s3cret" not in repr(line)
    assert record.partition_key not in line.values()
