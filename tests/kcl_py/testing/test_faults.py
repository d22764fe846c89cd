"""A bad day on a fake stream: what fails is scripted, and a worker gets over it as it would on AWS."""

import time

import pytest

from kcl_py import Checkpointer, CheckpointFailedError, EndpointError, RecordBatch, RecordProcessor
from kcl_py.sources.kinesis.writer import StreamWriter
from kcl_py.testing import FakeStream, Fault, FaultKind, RunTimeoutError, run_processor

pytestmark = pytest.mark.asyncio
ALPHABET = "abcdefghijklmnopqrstuvwxyz"


class Listens(RecordProcessor):
    """Does nothing with what it hears."""

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None: ...


@pytest.mark.parametrize("kind", sorted(set(FaultKind) - {FaultKind.PARTIAL, FaultKind.STALE}))
async def test_records_arrive_in_order_whatever_fails_now_and_then(kind: FaultKind) -> None:
    """Of reads and of lease writes alike; what hangs or is late takes no real time."""
    delay_s = 3.0 if kind is FaultKind.DELAY else 0.0
    often = [
        Fault(kind=kind, operation=name, probability=0.3, delay_s=delay_s) for name in ("GetRecords", "UpdateItem")
    ]
    stream = FakeStream(faults=often, seed=7)
    options = {"fetch": {"max_records": 2}, "checkpoint": {"records": 1}}
    began = time.perf_counter()
    run = await run_processor(Listens, list(ALPHABET), stream=stream, batch_size=3, options=options)
    assert time.perf_counter() - began < 20
    assert list(dict.fromkeys(run.finished)) == [each.encode() for each in ALPHABET]
    assert run.acknowledged == [each.encode() for each in ALPHABET]
    assert {operation for _, operation, _ in stream.faults.happened} == {"GetRecords", "UpdateItem"}


async def test_checkpoint_fails_when_the_lease_table_is_silent_for_too_long() -> None:
    """The processor sees the error that it would see on AWS, and asking again is not needed."""
    seen: list[Exception] = []
    stream = FakeStream()

    class Asks(RecordProcessor):
        async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
            if batch.redelivery is None:
                for operation in ("UpdateItem", "GetItem"):
                    stream.faults.add(Fault(kind=FaultKind.HANG, service="dynamodb", operation=operation))
            try:
                await checkpointer.checkpoint(batch)
            except CheckpointFailedError as error:
                seen.append(error)
                stream.faults.clear()
                raise

    run = await run_processor(Asks, ["a"], stream=stream, checkpoint="manual")
    assert [type(error) for error in seen] == [CheckpointFailedError]
    assert run.acknowledged == [b"a"]
    assert run.hooks == ["initialize", "process_records", "shutdown_requested"]  # all of it was finished by then


async def test_lease_is_lost_when_the_lease_table_cannot_be_reached_for_too_long() -> None:
    """The processor is told, and after the outage the worker takes the shard again."""
    stream = FakeStream()

    class CutOff(RecordProcessor):
        async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
            if stream.clock.monotonic() < 1001:
                stream.faults.add(Fault(kind=FaultKind.RESET, service="dynamodb"))
                await stream.clock.sleep(60)

        async def lease_lost(self) -> None:
            stream.faults.clear()

    run = await run_processor(CutOff, ["a"], stream=stream)
    assert run.hooks == [
        "initialize",
        "process_records",
        "lease_lost",
        "initialize",
        "process_records",
        "shutdown_requested",
    ]
    assert run.acknowledged == [b"a"]
    assert len(run.processors) == 2


async def test_start_fails_as_on_aws_when_the_stream_cannot_be_reached() -> None:
    """With the error that Stream raises."""
    stream = FakeStream(faults=[Fault(kind=FaultKind.RESET, service="kinesis")])
    with pytest.raises(EndpointError, match="cannot read stream 'test-stream'"):
        await run_processor(Listens, stream=stream)


async def test_run_that_cannot_be_finished_says_what_is_left_to_do() -> None:
    """After minutes of the manual clock, which are over at once."""
    stream = FakeStream(faults=[Fault(kind=FaultKind.ERROR, operation="GetRecords")])
    began = time.perf_counter()
    with pytest.raises(RunTimeoutError, match="shardId-000000000000: 0 of 2 records are finished"):
        await run_processor(Listens, ["a", "b"], stream=stream)
    assert time.perf_counter() - began < 20


async def test_producer_can_be_tested_on_the_same_stream() -> None:
    """By a client with aioboto3's face, to which the faults apply."""
    stream = FakeStream(faults=[Fault(kind=FaultKind.PARTIAL, operation="PutRecords", times=2)])
    async with stream.clock.passing():
        writer = StreamWriter(stream.kinesis_client(), stream.name, clock=stream.clock)
        placed = await writer.put([("k", b"a"), ("k", b"b"), ("k", b"c")])
    [shard_id] = stream.shards
    assert {each.sequence_number for each in placed} == {each.sequence_number for each in stream.records(shard_id)}
    assert stream.faults.happened["kinesis", "PutRecords", FaultKind.PARTIAL] == 2
