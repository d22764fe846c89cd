"""GetRecords replies over HTTP, through a real client with our decoder in it."""

import json
import sys
from types import FrameType
from typing import Any

import aioboto3
import pytest

from kcl_py.errors import (
    IteratorExpiredError,
    KclError,
    MissingError,
    RejectedError,
    RequestError,
    ThrottledError,
)
from kcl_py.records import Record
from kcl_py.sources.kinesis import decode
from kcl_py.sources.kinesis.polling import KinesisSource
from tests.clocks import PromptClock
from tests.kcl_py.sources.stub_service import NUMBER, StubService, a_reply, a_source, a_wire_record

pytestmark = pytest.mark.asyncio


async def test_fetch_returns_records_with_every_field_of_the_wire(stub: StubService) -> None:
    """All five fields arrive, the payload as bytes and a number of 56 digits unharmed."""
    stub.scripts["GetRecords"] = a_reply(
        a_wire_record(PartitionKey="schlüssel", ApproximateArrivalTimestamp=1.7e9 + 0.25, EncryptionType="KMS"),
        MillisBehindLatest=1234,
    )
    async with a_source(stub) as source:
        fetched = await source.fetch("shardId-000000000000", "iterator", limit=10)
    expected = Record(NUMBER, b"hello", "schlüssel", arrived_s=1.7e9 + 0.25, encryption_type="KMS")
    assert fetched.records == [expected]
    assert fetched.records[0].position.value == int(NUMBER)
    assert (fetched.lag_ms, fetched.next_iterator, fetched.children, fetched.size_bytes) == (1234, "next", (), 5)


async def test_fetch_fills_in_what_a_reply_leaves_out(stub: StubService) -> None:
    """Arrival time, encryption, lag and next iterator are optional on the wire; nothing fails without them."""
    stub.scripts["GetRecords"] = (200, {"Records": [a_wire_record(Data="")]})
    async with a_source(stub) as source:
        fetched = await source.fetch("shardId-000000000000", "iterator", limit=10)
    assert fetched.records == [Record(NUMBER, b"", "key")]
    assert (fetched.lag_ms, fetched.next_iterator, fetched.children) == (0, None, ())


async def test_fetch_tells_the_end_and_the_children_when_records_come_with_it(stub: StubService) -> None:
    """The last records and the end of the shard may share a reply: both are told."""
    child = {
        "ShardId": "shardId-000000000002",
        "ParentShards": ["shardId-000000000000", "shardId-000000000001"],
        "HashKeyRange": {"StartingHashKey": "0", "EndingHashKey": "340282366920938463463374607431768211455"},
    }
    stub.scripts["GetRecords"] = a_reply(a_wire_record(), NextShardIterator=None, ChildShards=[child])
    async with a_source(stub) as source:
        fetched = await source.fetch("shardId-000000000000", "iterator", limit=10)
    assert len(fetched.records) == 1
    assert fetched.next_iterator is None
    assert [c.shard_id for c in fetched.children] == ["shardId-000000000002"]
    assert fetched.children[0].parents == ("shardId-000000000000", "shardId-000000000001")
    assert fetched.children[0].hash_range == (0, 2**128 - 1)


@pytest.mark.parametrize("body", ["{}", '{"MillisBehindLatest":0}', '{"Records":[{"SequenceNumber":"1"', "<html>", ""])
async def test_fetch_fails_and_may_be_repeated_when_a_reply_is_cut_off(stub: StubService, body: str) -> None:
    """A body without records is never taken for the end of the shard."""
    stub.scripts["GetRecords"] = (200, body)
    async with a_source(stub) as source:
        with pytest.raises(RequestError) as raised:
            await source.fetch("shardId-000000000000", "iterator", limit=10)
    assert raised.value.retryable
    assert raised.value.target == "orders/shardId-000000000000"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("ProvisionedThroughputExceededException", ThrottledError),
        ("ExpiredIteratorException", IteratorExpiredError),
        ("ResourceNotFoundException", MissingError),
        ("InvalidArgumentException", RejectedError),
    ],
)
async def test_fetch_leaves_refusals_to_botocore(stub: StubService, code: str, expected: type[KclError]) -> None:
    """Other statuses than 200 pass the decoder by and keep AWS's code."""
    stub.refuse("GetRecords", code, "a reason")
    async with a_source(stub) as source:
        with pytest.raises(expected, match=f"{code}: a reason"):
            await source.fetch("shardId-000000000000", "iterator", limit=10)


async def test_fetch_sends_once_when_the_service_fails(stub: StubService) -> None:
    """The SDK repeats nothing: one fetch is one request, also after a failure of the service."""
    stub.refuse("GetRecords", "InternalFailure", status=500)
    async with a_source(stub) as source:
        with pytest.raises(RequestError, match="InternalFailure"):
            await source.fetch("shardId-000000000000", "iterator", limit=10)
    assert len(stub.calls) == 1


async def test_decoder_works_in_a_client_of_aioboto3_when_installed_twice(stub: StubService) -> None:
    """A user's own aioboto3 client can be used, and twice is as good as once."""
    stub.scripts["GetRecords"] = a_reply(a_wire_record())
    async with aioboto3.Session().client("kinesis", region_name="eu-west-1", endpoint_url=stub.url) as client:
        decode.install(client)
        source = KinesisSource(client, "orders", clock=PromptClock())
        fetched = await source.fetch("shardId-000000000000", "iterator", limit=10)
    assert fetched.records == [Record(NUMBER, b"hello", "key")]


class WireClient:
    """Answers GetRecords from one body, through the decoder."""

    def __init__(self, body: dict[str, Any]) -> None:
        self._body = json.dumps(body).encode()

    async def get_records(self, **_: Any) -> dict[str, Any]:
        answer: dict[str, Any] = {}
        decode.decode_reply({"status_code": 200, "body": self._body}, answer)
        return answer


async def python_calls_of_a_fetch(record_count: int) -> int:
    """Count the Python functions that run from the body of a reply to its records."""
    records = [a_wire_record(SequenceNumber=str(number)) for number in range(record_count)]
    client: Any = WireClient({"Records": records, "NextShardIterator": "next"})
    source, count = KinesisSource(client, "orders", clock=PromptClock()), 0

    def profile(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(profile)
    try:
        fetched = await source.fetch("shardId-000000000000", "iterator", limit=10_000)
    finally:
        sys.setprofile(None)
    assert len(fetched.records) == record_count
    return count


async def test_fetch_does_no_python_work_for_each_record() -> None:
    """Ten records and ten thousand cost the same number of Python calls."""
    await python_calls_of_a_fetch(1)
    assert await python_calls_of_a_fetch(10) == await python_calls_of_a_fetch(10_000) > 0
