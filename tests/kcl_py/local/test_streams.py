"""The life of a stream: created, changed, deleted; found by name or ARN."""

from typing import Any

import pytest

from kcl_py.local.errors import ModelError
from tests.kcl_py.local.world import World

ROOT = "shardId-000000000000"
ARN = "arn:aws:kinesis:us-east-1:000000000000:stream/s"


def summary(world: World, name: str = "s") -> dict[str, Any]:
    """Return what DescribeStreamSummary says."""
    found: dict[str, Any] = world.call("DescribeStreamSummary", StreamName=name)["StreamDescriptionSummary"]
    return found


def code(world: World, operation: str, **params: Any) -> str:
    """Return the code that a call is refused with."""
    with pytest.raises(ModelError) as error:
        world.call(operation, **params)
    return error.value.code


def test_a_new_stream_is_creating_until_its_delay_is_over() -> None:
    """Nothing can be put or listed before it is ACTIVE."""
    world = World()
    world.call("CreateStream", StreamName="new", ShardCount=2)
    assert (summary(world, "new")["StreamStatus"], summary(world, "new")["OpenShardCount"]) == ("CREATING", 0)
    assert code(world, "PutRecord", StreamName="new", Data=b"", PartitionKey="k") == "ResourceNotFoundException"
    assert code(world, "ListShards", StreamName="new") == "ResourceInUseException"
    assert code(world, "DeleteStream", StreamName="new") == "ResourceInUseException"
    world.settle()
    assert (summary(world, "new")["StreamStatus"], summary(world, "new")["OpenShardCount"]) == ("ACTIVE", 2)


def test_a_stream_is_updating_until_the_split_is_done_and_takes_no_other_change() -> None:
    """Reads and writes go on meanwhile."""
    world = World()
    world.call("SplitShard", StreamName="s", ShardToSplit=ROOT, NewStartingHashKey="1000")
    again = {"StreamName": "s", "ShardToSplit": ROOT, "NewStartingHashKey": "2000"}
    assert (summary(world)["StreamStatus"], code(world, "SplitShard", **again)) == (
        "UPDATING",
        "ResourceInUseException",
    )
    world.put()
    assert len(world.read()) == 1
    world.settle()
    assert (summary(world)["StreamStatus"], summary(world)["OpenShardCount"]) == ("ACTIVE", 2)


def test_a_closed_shard_is_neither_split_nor_merged() -> None:
    """Its children are, once the stream is ACTIVE again."""
    world = World()
    world.split(ROOT)
    split = {"StreamName": "s", "ShardToSplit": ROOT, "NewStartingHashKey": "1000"}
    assert code(world, "SplitShard", **split) == "ResourceInUseException"
    world.merge("shardId-000000000001", "shardId-000000000002")
    assert summary(world)["OpenShardCount"] == 1


def test_a_split_outside_the_shards_range_is_refused() -> None:
    """The cut must leave keys on both sides."""
    world = World(2)
    first, last = world.hash_range(ROOT)
    for cut in (first, first + 1, last, last + 1):
        split = {"StreamName": "s", "ShardToSplit": ROOT, "NewStartingHashKey": str(cut)}
        assert code(world, "SplitShard", **split) == "InvalidArgumentException"


def test_only_neighbours_are_merged() -> None:
    """The lower shard first."""
    world = World(3)
    for pair in (("0", "2"), ("1", "0"), ("0", "0")):
        lower, upper = (f"shardId-00000000000{digit}" for digit in pair)
        merge = {"StreamName": "s", "ShardToMerge": lower, "AdjacentShardToMerge": upper}
        assert code(world, "MergeShards", **merge) == "InvalidArgumentException"


def test_a_deleted_stream_is_deleting_and_then_gone() -> None:
    """While it is deleted its name is taken; afterwards the same name makes another stream."""
    world = World()
    before = summary(world)["StreamCreationTimestamp"]
    world.call("DeleteStream", StreamName="s")
    assert summary(world)["StreamStatus"] == "DELETING"
    assert code(world, "CreateStream", StreamName="s", ShardCount=1) == "ResourceInUseException"
    world.settle()
    assert code(world, "DescribeStreamSummary", StreamName="s") == "ResourceNotFoundException"
    world.call("CreateStream", StreamName="s", ShardCount=1)
    assert summary(world)["StreamCreationTimestamp"] > before


def test_an_arn_serves_instead_of_the_name() -> None:
    """Everywhere, and beside a name only if both mean one stream."""
    world = World()
    assert summary(world)["StreamARN"] == ARN
    world.call("PutRecord", StreamARN=ARN, Data=b"x", PartitionKey="k")
    start = world.call("GetShardIterator", StreamARN=ARN, ShardId=ROOT, ShardIteratorType="TRIM_HORIZON")
    assert len(world.get(start["ShardIterator"], StreamARN=ARN)["Records"]) == 1
    assert code(world, "ListShards", StreamARN=ARN, StreamName="other") == "InvalidArgumentException"
    assert code(world, "ListShards") == "InvalidArgumentException"
    assert code(world, "ListShards", StreamARN=ARN.replace("0000", "1111")) == "ResourceNotFoundException"


def test_a_missing_stream_or_shard_is_not_found() -> None:
    """By AWS's name for it."""
    world = World()
    assert code(world, "ListShards", StreamName="t") == "ResourceNotFoundException"
    for shard_id in ("shardId-000000000009", "shard"):
        ask = {"StreamName": "s", "ShardId": shard_id, "ShardIteratorType": "LATEST"}
        assert code(world, "GetShardIterator", **ask) == "ResourceNotFoundException"


def test_more_shards_than_the_account_may_have_are_refused() -> None:
    """A limit, not a wait."""
    world = World(2)
    assert code(world, "CreateStream", StreamName="t", ShardCount=20_000) == "LimitExceededException"


def test_an_on_demand_stream_has_four_shards_and_reshards_itself() -> None:
    """It takes no shard count and no split."""
    world = World()
    world.call("CreateStream", StreamName="t", StreamModeDetails={"StreamMode": "ON_DEMAND"})
    world.settle()
    assert summary(world, "t")["OpenShardCount"] == 4
    split = {"StreamName": "t", "ShardToSplit": ROOT, "NewStartingHashKey": "1000"}
    assert code(world, "SplitShard", **split) == "ValidationException"


def test_streams_are_listed_in_pages_by_name() -> None:
    """By token, and by the last name."""
    world = World()
    for name in ("a", "z"):
        world.model.add_stream(name, 1)
    page = world.call("ListStreams", Limit=2)
    assert (page["StreamNames"], page["HasMoreStreams"]) == (["a", "s"], True)
    for rest in ({"NextToken": page["NextToken"]}, {"ExclusiveStartStreamName": "s"}):
        last = world.call("ListStreams", **rest)
        assert (last["StreamNames"], last["HasMoreStreams"]) == (["z"], False)


def test_a_stream_is_described_with_its_shards_in_pages() -> None:
    """DescribeStream, the older of the two."""
    world = World(3)
    page = world.call("DescribeStream", StreamName="s", Limit=2)["StreamDescription"]
    assert (len(page["Shards"]), page["HasMoreShards"]) == (2, True)
    rest = world.call("DescribeStream", StreamName="s", ExclusiveStartShardId=page["Shards"][-1]["ShardId"])
    assert (len(rest["StreamDescription"]["Shards"]), rest["StreamDescription"]["HasMoreShards"]) == (1, False)


def test_an_unknown_operation_says_so() -> None:
    """By AWS's name for it, with the operation."""
    assert code(World(), "Dance") == "UnknownOperationException"
