"""Processors whose effects are in DynamoDB, in runs of a test: the fake stream has a DynamoDB for them."""

from typing import Any, ClassVar

import pytest

from kcl_py import Checkpointer, Once, OwnedShard, Record, RecordBatch, RecordProcessor
from kcl_py.effects import Update
from kcl_py.leases.attributes import decode_item
from kcl_py.testing import FakeStream, Fault, FaultKind, run_processor

pytestmark = pytest.mark.asyncio

PAYLOADS = [str(number) for number in range(12)]


class InBatches(RecordProcessor):
    """Counts each batch with its checkpoint."""

    said: ClassVar[list[bool]] = []

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        added = Update("sums", {"id": "all"}, "ADD n :n", values={":n": len(batch)})
        self.said.append(await checkpointer.once([added], at=batch))


class InLanes(RecordProcessor):
    """Counts each record with a marker."""

    said: ClassVar[list[bool]] = []

    async def initialize(self, shard: OwnedShard) -> None:
        self.once = Once(shard, table="marks", ttl_s=3600)

    async def process(self, record: Record) -> None:
        added = Update("sums", {"id": "all"}, "ADD n :n", values={":n": 1})
        self.said.append(await self.once.apply(record, [added]))


def a_stream() -> FakeStream:
    """Return a stream with two tables beside its leases."""
    stream = FakeStream(shards=2)
    for table in ("sums", "marks"):
        stream.service.dynamodb.call(
            "CreateTable",
            {
                "TableName": table,
                "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )
    return stream


def counted(stream: FakeStream) -> int:
    items = stream.service.dynamodb.call("Scan", {"TableName": "sums"})["Items"]
    return sum(decode_item(item)["n"] for item in items)


@pytest.mark.parametrize("incident", ["crash_at", "lose_lease_at", "fail_at", "stop_at"])
@pytest.mark.parametrize("processor", [InBatches, InLanes])
async def test_each_record_is_counted_once_whatever_ends_a_worker(
    processor: type[RecordProcessor], incident: str
) -> None:
    """What comes again is not counted again."""
    stream = a_stream()
    script: dict[str, Any] = {incident: PAYLOADS[5]}
    first = await run_processor(processor, PAYLOADS, stream=stream, batch_size=2, **script)
    second = await run_processor(processor, stream=first.stream, batch_size=2)
    assert (second.unacknowledged, counted(stream)) == ([], len(PAYLOADS))


async def test_record_that_comes_again_says_that_it_was_applied() -> None:
    """The answer of ``apply``."""
    InLanes.said.clear()
    run = await run_processor(InLanes, PAYLOADS, stream=a_stream(), fail_at=PAYLOADS[5])
    assert (InLanes.said.count(True), InLanes.said.count(False), counted(run.stream)) == (
        len(PAYLOADS),
        1,
        len(PAYLOADS),
    )


async def test_batch_that_fails_after_its_transaction_does_not_come_again() -> None:
    """It is finished, because its checkpoint is."""
    InBatches.said.clear()
    run = await run_processor(InBatches, PAYLOADS, stream=a_stream(), batch_size=4, fail_at=PAYLOADS[5])
    assert (set(InBatches.said), run.redelivered, counted(run.stream)) == ({True}, [], len(PAYLOADS))


@pytest.mark.parametrize("kind", [FaultKind.THROTTLE, FaultKind.ERROR, FaultKind.HANG, FaultKind.DELAY])
async def test_record_with_its_checkpoint_in_one_transaction_gets_over_faults(kind: FaultKind) -> None:
    """Time passes for the transaction, though it is the Lease's and the hook waits for it."""
    stream = a_stream()
    stream.faults.add(
        Fault(kind=kind, operation="TransactWriteItems", times=2, delay_s=1.0 * (kind is FaultKind.DELAY))
    )
    run = await run_processor(InLanes, PAYLOADS, stream=stream, options={"delivery": {"ordering": "shard"}})
    assert counted(stream) == len(PAYLOADS)
    assert sorted(run.acknowledged) == sorted(each.encode() for each in PAYLOADS)
