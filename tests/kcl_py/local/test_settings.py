"""Settings of a stream: shard count, retention, mode, sizes, encryption, tags."""

from contextlib import suppress
from typing import Any

import pytest

from kcl_py.local.encryption import ERRORS
from kcl_py.local.errors import ModelError
from kcl_py.local.hashing import RING
from tests.kcl_py.local.world import World

ROOT = "shardId-000000000000"
ARN = "arn:aws:kinesis:us-east-1:000000000000:stream/s"
HOUR_S = 3600.0
KMS = {"StreamName": "s", "EncryptionType": "KMS"}


def code(world: World, operation: str, **params: Any) -> str:
    with pytest.raises(ModelError) as error:
        world.call(operation, **params)
    return error.value.code


def summary(world: World) -> dict[str, Any]:
    found: dict[str, Any] = world.call("DescribeStreamSummary", StreamName="s")["StreamDescriptionSummary"]
    return found


def scale(world: World, target: int) -> dict[str, Any]:
    return world.call("UpdateShardCount", StreamName="s", TargetShardCount=target, ScalingType="UNIFORM_SCALING")


@pytest.mark.parametrize(("before", "after"), [(2, 4), (4, 2), (3, 5), (5, 3), (4, 4), (2, 3)])
def test_shards_are_of_equal_size_after_a_new_count_and_have_one_or_two_parents(before: int, after: int) -> None:
    """By splits and merges: every shard that was there is read to its end before its children are."""
    world = World(before)
    world.put_many(50)
    answer = scale(world, after)
    assert (answer["CurrentShardCount"], answer["TargetShardCount"]) == (before, after)
    assert summary(world)["StreamStatus"] == "UPDATING"
    world.settle()
    ranges = [world.hash_range(shard_id) for shard_id in world.open_ids()]
    assert [first for first, _ in ranges] == [RING // after * number for number in range(after)]
    assert [last + 1 for _, last in ranges] == [*[first for first, _ in ranges[1:]], RING]
    kinds = {shard["ShardId"]: shard for shard in world.shards()}
    for shard_id in kinds.keys() - set(world.open_ids()):
        children = world.get(world.iterator(shard_id, "LATEST"))["ChildShards"]
        assert all(shard_id in child["ParentShards"] for child in children)
        assert children


@pytest.mark.parametrize(("before", "target"), [(2, 5), (5, 2), (1, 10_001)])
def test_shard_count_more_than_doubled_or_halved_is_refused(before: int, target: int) -> None:
    """And more than a stream may have."""
    request = {"StreamName": "s", "TargetShardCount": target, "ScalingType": "UNIFORM_SCALING"}
    assert code(World(before), "UpdateShardCount", **request) in ("InvalidArgumentException", "LimitExceededException")


def test_records_older_than_the_retention_are_gone_and_a_closed_shard_with_them() -> None:
    """Readers go on at the horizon; ordinals go on too, so no number is given twice."""
    world = World()
    first = world.put(b"old")["SequenceNumber"]
    world.clock.now_s += 23 * HOUR_S
    second = world.put(b"young")["SequenceNumber"]
    world.clock.now_s += HOUR_S + 1
    assert [record.data for record in world.read()] == [b"young"]
    at = world.iterator(kind="AT_SEQUENCE_NUMBER", StartingSequenceNumber=first)
    assert [record.data for record in world.get(at)["Records"]] == [b"young"]
    world.clock.now_s += 24 * HOUR_S
    assert world.get(world.iterator())["Records"] == []
    assert int(world.put()["SequenceNumber"]) > int(second)
    world.split(ROOT)
    world.clock.now_s += 24 * HOUR_S + 1
    assert [shard["ShardId"] for shard in world.shards()] == ["shardId-000000000001", "shardId-000000000002"]
    late = {"StreamName": "s", "ShardId": ROOT, "ShardIteratorType": "TRIM_HORIZON"}
    assert code(world, "GetShardIterator", **late) == "ResourceNotFoundException"


def test_reader_behind_the_horizon_goes_on_at_it() -> None:
    """An iterator is good for five minutes, also while the record it points to goes."""
    world = World()
    world.put(b"old")
    world.clock.now_s += 100
    world.put(b"young")
    world.clock.now_s += 24 * HOUR_S - 150
    iterator = world.iterator()
    world.clock.now_s += 100
    assert [record.data for record in world.get(iterator)["Records"]] == [b"young"]


def test_retention_is_lengthened_and_shortened_each_by_its_own_operation() -> None:
    """24 hours to a year; what is too old for a shorter one is gone at once."""
    world = World()
    longer, shorter = "IncreaseStreamRetentionPeriod", "DecreaseStreamRetentionPeriod"
    world.call(longer, StreamName="s", RetentionPeriodHours=48)
    world.put()
    world.clock.now_s += 30 * HOUR_S
    assert (summary(world)["RetentionPeriodHours"], len(world.read())) == (48, 1)
    for operation, hours in ((longer, 24), (longer, 8761), (shorter, 49), (shorter, 23)):
        request = {"StreamName": "s", "RetentionPeriodHours": hours}
        assert code(world, operation, **request) == "InvalidArgumentException"
    world.call(shorter, StreamName="s", RetentionPeriodHours=24)
    assert world.read() == []


def test_mode_is_changed_and_an_on_demand_stream_takes_no_shard_count() -> None:
    """By the ARN alone."""
    world = World()
    world.call("UpdateStreamMode", StreamARN=ARN, StreamModeDetails={"StreamMode": "ON_DEMAND"})
    assert summary(world)["StreamStatus"] == "UPDATING"
    world.settle()
    assert summary(world)["StreamModeDetails"] == {"StreamMode": "ON_DEMAND"}
    request = {"StreamName": "s", "TargetShardCount": 2, "ScalingType": "UNIFORM_SCALING"}
    assert code(world, "UpdateShardCount", **request) == "ValidationException"


def test_records_of_ten_mebibytes_are_taken_where_the_stream_allows_them() -> None:
    """With their keys."""
    world = World()
    large = b"x" * (10 * 2**20 - 1)
    with pytest.raises(ModelError, match="InvalidArgumentException"):
        world.put(large)
    world.call("UpdateMaxRecordSize", StreamARN=ARN, MaxRecordSizeInKiB=10_240)
    world.settle()
    world.put(large)
    with pytest.raises(ModelError, match="InvalidArgumentException"):
        world.put(large, key="kk")
    assert (len(world.read()), summary(world)["MaxRecordSizeInKiB"]) == (1, 10_240)


@pytest.mark.parametrize("name", ERRORS)
def test_key_named_after_an_error_makes_it_for_puts_and_gets(name: str) -> None:
    """So that a test sees what a disabled key does."""
    world = World()
    iterator = world.iterator()
    world.call("StartStreamEncryption", **KMS, KeyId=f"alias/{name}")
    world.settle()
    assert code(world, "PutRecord", StreamName="s", Data=b"", PartitionKey="k") == name
    assert code(world, "GetRecords", ShardIterator=iterator) == name
    world.call("StopStreamEncryption", **KMS, KeyId=f"alias/{name}")
    world.put()


def test_records_of_an_encrypted_stream_say_so() -> None:
    """And the stream names its key."""
    world = World()
    world.put()
    world.call("StartStreamEncryption", **KMS, KeyId="alias/aws/kinesis")
    world.settle()
    assert world.put()["EncryptionType"] == "KMS"
    assert [record.encryption_type for record in world.read()] == [None, "KMS"]
    assert (summary(world)["EncryptionType"], summary(world)["KeyId"]) == ("KMS", "alias/aws/kinesis")


def test_tags_are_kept_and_shown_in_pages() -> None:
    """Of a stream by either set of operations."""
    world = World()
    world.call("AddTagsToStream", StreamName="s", Tags={"a": "1", "b": "2", "c": ""})
    world.call("TagResource", ResourceARN=ARN, Tags={"a": "9"})
    world.call("UntagResource", ResourceARN=ARN, TagKeys=["b", "none"])
    page = world.call("ListTagsForStream", StreamName="s", Limit=1)
    rest = world.call("ListTagsForStream", StreamName="s", ExclusiveStartTagKey="a")
    assert (page["Tags"], page["HasMoreTags"]) == ([{"Key": "a", "Value": "9"}], True)
    assert (rest["Tags"], rest["HasMoreTags"]) == ([{"Key": "c", "Value": ""}], False)
    assert len(world.call("ListTagsForResource", ResourceARN=ARN)["Tags"]) == 2
    many = {f"k{number}": "" for number in range(49)}
    assert code(world, "AddTagsToStream", StreamName="s", Tags=many) == "InvalidArgumentException"


def test_limits_of_the_account_are_told() -> None:
    """Shards and on-demand streams."""
    limits = World(3).call("DescribeLimits")
    assert (limits["OpenShardCount"], limits["ShardLimit"], limits["OnDemandStreamCount"]) == (3, 20_000, 0)
    world = World()
    for name in "abcde":
        world.call("CreateStream", StreamName=name, ShardCount=1)
    assert code(world, "CreateStream", StreamName="f", ShardCount=1) == "LimitExceededException"


def admits(world: World, iterator: str) -> bool:
    """Return whether a GetRecords is let through."""
    with suppress(ModelError):
        return bool(world.get(iterator))
    return False


def test_shard_is_read_five_times_and_two_megabytes_a_second_when_rates_are_limited() -> None:
    """After 10 MB it rests for about five seconds."""
    world = World(limit_rates=True)
    iterator = world.iterator()
    for _ in range(5):
        world.get(iterator)
    assert code(world, "GetRecords", ShardIterator=iterator) == "ProvisionedThroughputExceededException"
    for _ in range(10):
        world.clock.now_s += 1
        world.put(b"x" * (2**20 - 1))
    assert len(world.get(iterator)["Records"]) == 10
    rested_s = 0
    while not admits(world, iterator):
        world.clock.now_s, rested_s = world.clock.now_s + 1, rested_s + 1
    assert 4 <= rested_s <= 6


def test_calls_of_the_account_are_counted_when_rates_are_limited() -> None:
    """Ten DescribeStream a second, then LimitExceededException, and none the wiser a second later."""
    world = World(limit_rates=True)
    for _ in range(10):
        world.call("DescribeStream", StreamName="s")
    assert code(world, "DescribeStream", StreamName="s") == "LimitExceededException"
    world.clock.now_s += 1
    world.call("DescribeStream", StreamName="s")
