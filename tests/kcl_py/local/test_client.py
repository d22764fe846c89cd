"""The in-memory client: what a source sees is what it would see over HTTP."""

from datetime import UTC, datetime
from typing import Any

import anyio
import pytest
from botocore.exceptions import ClientError

from kcl_py.local.client import KinesisClient
from kcl_py.local.model import EndShape
from kcl_py.records import Record
from kcl_py.sources.kinesis.polling import KinesisSource
from kcl_py.sources.source import TRIM_HORIZON, Position, PositionKind
from tests.kcl_py.local.world import World, boto, serving

ROOT = "shardId-000000000000"


@pytest.mark.asyncio
async def test_get_records_returns_record_structs_and_the_services_date() -> None:
    """As our decoder of the wire does, with the Date header from the service's clock."""
    world = World()
    world.put(b"hello")
    async with KinesisClient(world.model, world.clock) as client:
        reply = await client.get_records(ShardIterator=world.iterator())
    [record] = reply["Records"]
    assert (type(record), record.data, record.arrived_s) == (Record, b"hello", 1_700_000_000.25)
    assert reply["ResponseMetadata"]["HTTPHeaders"]["date"] == "Tue, 14 Nov 2023 22:13:20 GMT"


@pytest.mark.asyncio
async def test_a_refusal_has_the_same_response_as_over_http() -> None:
    """The same code, sentence and status as boto3 reports."""
    world = World()
    with serving(world) as url, boto("kinesis", url) as remote, pytest.raises(ClientError) as over_http:
        remote.get_records(ShardIterator="x")
    with pytest.raises(ClientError) as in_memory:
        await KinesisClient(world.model, world.clock).get_records(ShardIterator="x")
    ours: Any = in_memory.value.response
    theirs: Any = over_http.value.response
    assert (ours["Error"], ours["ResponseMetadata"]["HTTPStatusCode"]) == (
        theirs["Error"],
        theirs["ResponseMetadata"]["HTTPStatusCode"],
    )
    assert str(in_memory.value) == str(over_http.value)


@pytest.mark.asyncio
async def test_a_datetime_is_taken_where_aws_takes_a_time() -> None:
    """As boto takes it, at the top and inside a filter."""
    world = World()
    world.put()
    client, at = KinesisClient(world.model, world.clock), datetime.fromtimestamp(world.clock.now_s, UTC)
    start = await client.get_shard_iterator(
        StreamName="s", ShardId=ROOT, ShardIteratorType="AT_TIMESTAMP", Timestamp=at
    )
    listing = await client.list_shards(StreamName="s", ShardFilter={"Type": "AT_TIMESTAMP", "Timestamp": at})
    assert len((await client.get_records(ShardIterator=start["ShardIterator"]))["Records"]) == 1
    assert len(listing["Shards"]) == 1


@pytest.mark.asyncio
async def test_a_cancelled_call_has_no_effect() -> None:
    """The point of cancellation lies before the effect."""
    world = World()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await KinesisClient(world.model, world.clock).put_record(StreamName="s", Data=b"x", PartitionKey="k")
    assert world.read() == []


@pytest.mark.asyncio
@pytest.mark.parametrize("end_shape", EndShape)
async def test_our_source_reads_a_split_shard_to_its_end_and_on(end_shape: EndShape) -> None:
    """The real adapter, without a socket: parent, its end with its children, then the children."""
    world = World(end_shape=end_shape)
    world.put_many(3)
    world.split(ROOT)
    world.put_many(2)
    source = KinesisSource(KinesisClient(world.model, world.clock), "s", clock=world.clock)
    info, todo, got = await source.describe(), [ROOT], 0
    while todo:
        shard_id = todo.pop()
        iterator: str | None = await source.open(shard_id, TRIM_HORIZON)
        while iterator:
            fetched = await source.fetch(shard_id, iterator, limit=2)
            got += len(fetched.records)
            todo += [child.shard_id for child in fetched.children]
            iterator = fetched.next_iterator if fetched.records else None
    assert (got, info.status, info.identity) == (5, "ACTIVE", "s:1700000000")
    assert len((await source.list_shards(Position(PositionKind.LATEST))).shards) == 2
