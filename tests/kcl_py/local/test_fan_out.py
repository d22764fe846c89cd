"""Enhanced fan-out: consumers, and subscriptions as boto3 and aioboto3 read them."""

from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from itertools import pairwise
from typing import Any

import aioboto3
import pytest
from botocore.exceptions import EventStreamError

from kcl_py.local.client import KinesisClient
from kcl_py.local.errors import ModelError
from kcl_py.local.model import EndShape
from kcl_py.local.subscription import HOLD_S, LIFE_S, Subscription
from tests.kcl_py.local.world import World, boto, serving

ROOT = "shardId-000000000000"
ARN = "arn:aws:kinesis:us-east-1:000000000000:stream/s"
HORIZON = {"Type": "TRIM_HORIZON"}


def register(world: World, name: str = "c") -> str:
    """Register a consumer and wait for it; return its ARN."""
    arn: str = world.call("RegisterStreamConsumer", StreamARN=ARN, ConsumerName=name)["Consumer"]["ConsumerARN"]
    world.settle()
    return arn


def subscribe(world: World, arn: str, start: dict[str, Any] = HORIZON, shard_id: str = ROOT) -> Subscription:
    answer = world.call("SubscribeToShard", ConsumerARN=arn, ShardId=shard_id, StartingPosition=start)
    found: Subscription = answer["EventStream"]
    return found


def events(world: World, subscription: Subscription, until_s: float = 20.0) -> Iterator[tuple[float, dict[str, Any]]]:
    """Yield what comes within a time, and after how long it came."""
    begun_s = world.clock.now_s
    while not subscription.is_over and world.clock.now_s - begun_s < until_s:
        event = subscription.event(world.clock.now_s)
        if event is None:
            world.clock.now_s += 0.05
        else:
            yield world.clock.now_s - begun_s, event


def refusal(world: World, operation: str, **params: Any) -> str:
    with pytest.raises(ModelError) as error:
        world.call(operation, **params)
    return error.value.code


def full_shard() -> World:
    """Return a world whose only shard holds 3,000 records of 1 KB and was split after them."""
    world = World()
    world.put_many(3000, data=b"x" * 1000)
    register(world)
    world.split(ROOT)
    return world


def consumer_arn(world: World) -> str:
    listed = world.call("ListStreamConsumers", StreamARN=ARN)["Consumers"]
    arn: str = listed[0]["ConsumerARN"]
    return arn


def told(found: list[dict[str, Any]]) -> tuple[int, list[str], bool]:
    """Return how many records came, the children, and whether only the last event had no continuation."""
    records = sum(len(event["Records"]) for event in found)
    children = [child["ShardId"] for child in found[-1]["ChildShards"]]
    *before, last = ["ContinuationSequenceNumber" in event for event in found]
    return records, children, all(before) and not last


CHILDREN = ["shardId-000000000001", "shardId-000000000002"]


@pytest.mark.parametrize("end_shape", EndShape)
def test_boto3_reads_a_full_split_shard_to_its_children(end_shape: EndShape) -> None:
    """boto3's own parser takes every event; the stream ends by itself."""
    world = World(end_shape=end_shape)
    world.put_many(3000, data=b"x" * 1000)
    arn = register(world)
    world.split(ROOT)
    with serving(world) as url, boto("kinesis", url) as client:
        reply = client.subscribe_to_shard(ConsumerARN=arn, ShardId=ROOT, StartingPosition=HORIZON)
        with closing(reply["EventStream"]) as events:
            found = [event["SubscribeToShardEvent"] for event in events]
    assert told(found) == (3000, CHILDREN, True)
    assert len(found) >= 3


@pytest.mark.asyncio
async def test_aioboto3_reads_a_full_split_shard_to_its_children() -> None:
    """As boto3 does."""
    world = full_shard()
    with serving(world) as url:
        session = aioboto3.Session(aws_access_key_id="any", aws_secret_access_key="any", region_name="us-east-1")
        async with session.client("kinesis", endpoint_url=url) as client:
            reply = await client.subscribe_to_shard(
                ConsumerARN=consumer_arn(world), ShardId=ROOT, StartingPosition={"Type": "TRIM_HORIZON"}
            )
            stream: AsyncIterator[Any] = reply["EventStream"].__aiter__()
            found = [event["SubscribeToShardEvent"] async for event in stream]
    assert told(found) == (3000, CHILDREN, True)


@pytest.mark.asyncio
async def test_client_without_a_socket_gives_the_same_events() -> None:
    """For a simulation."""
    world = full_shard()
    reply = await KinesisClient(world.model, world.clock).subscribe_to_shard(
        ConsumerARN=consumer_arn(world), ShardId=ROOT, StartingPosition=HORIZON
    )
    found = [event["SubscribeToShardEvent"] async for event in reply["EventStream"]]
    assert told(found) == (3000, CHILDREN, True)


def test_takeover_ends_the_older_stream_with_an_exception_that_boto3_knows() -> None:
    """Five seconds after a subscription the next one has the shard."""
    world = World()
    arn = register(world)
    with serving(world) as url, boto("kinesis", url) as client:
        first = client.subscribe_to_shard(ConsumerARN=arn, ShardId=ROOT, StartingPosition=HORIZON)
        world.clock.now_s += HOLD_S
        client.subscribe_to_shard(ConsumerARN=arn, ShardId=ROOT, StartingPosition=HORIZON)["EventStream"].close()
        with closing(first["EventStream"]) as events, pytest.raises(EventStreamError, match="ResourceInUseException"):
            list(events)


def test_second_subscription_within_five_seconds_is_refused() -> None:
    """Of the same consumer to the same shard; others are free."""
    world = World(2)
    arn, other = register(world), register(world, "d")
    subscribe(world, arn)
    world.clock.now_s += HOLD_S - 0.001
    again = {"ConsumerARN": arn, "ShardId": ROOT, "StartingPosition": HORIZON}
    assert refusal(world, "SubscribeToShard", **again) == "ResourceInUseException"
    subscribe(world, other)
    subscribe(world, arn, shard_id="shardId-000000000001")


def test_quiet_shard_gives_an_empty_event_at_least_every_five_seconds() -> None:
    """Each with a number that goes on, from which a next subscription loses and repeats nothing."""
    world = World()
    world.put(b"before")
    arn = register(world)
    found = list(events(world, subscribe(world, arn)))
    gaps = [later - earlier for (earlier, _), (later, _) in pairwise(found)]
    assert max(gaps) <= 5
    assert [len(event["Records"]) for _, event in found] == [1, *[0] * (len(found) - 1)]
    numbers = [int(event["ContinuationSequenceNumber"]) for _, event in found]
    assert numbers == sorted(set(numbers))
    world.put(b"after")
    for kind in ("AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"):
        world.clock.now_s += HOLD_S
        again = subscribe(world, arn, {"Type": kind, "SequenceNumber": str(numbers[-1])})
        _, event = next(events(world, again))
        assert [record.data for record in event["Records"]] == [b"after"]


def test_subscription_lasts_five_minutes_and_then_ends_without_an_error() -> None:
    """Whoever wants more subscribes again."""
    world = World()
    subscription = subscribe(world, register(world))
    times = [after_s for after_s, _ in events(world, subscription, until_s=1000)]
    assert LIFE_S - 5 <= max(times) < LIFE_S
    assert subscription.is_over


def test_records_that_arrive_later_are_pushed() -> None:
    """LATEST begins with the next."""
    world = World()
    world.put(b"before")
    subscription = subscribe(world, register(world), {"Type": "LATEST"})
    assert next(events(world, subscription))[1]["Records"] == []
    world.put(b"after")
    assert [record.data for record in next(events(world, subscription))[1]["Records"]] == [b"after"]


@pytest.mark.parametrize("operation", ["DeregisterStreamConsumer", "DeleteStream"])
def test_subscription_ends_when_its_consumer_or_stream_goes(operation: str) -> None:
    """By AWS's name for it."""
    world = World()
    arn = register(world)
    subscription = subscribe(world, arn)
    params = {"ConsumerARN": arn} if operation.startswith("Dereg") else {"StreamName": "s"}
    world.call(operation, **params, **({} if "ConsumerARN" in params else {"EnforceConsumerDeletion": True}))
    with pytest.raises(ModelError, match="ResourceNotFoundException"):
        subscription.event(world.clock.now_s)


def test_consumer_is_creating_then_active_then_deleting_then_gone() -> None:
    """Found by its ARN, or by its name and the stream's."""
    world = World()
    name = {"StreamARN": ARN, "ConsumerName": "c"}

    def status() -> str:
        found: str = world.call("DescribeStreamConsumer", **name)["ConsumerDescription"]["ConsumerStatus"]
        return found

    arn = world.call("RegisterStreamConsumer", **name)["Consumer"]["ConsumerARN"]
    seen = [status()]
    early = {"ConsumerARN": arn, "ShardId": ROOT, "StartingPosition": HORIZON}
    assert refusal(world, "SubscribeToShard", **early) == "ResourceInUseException"
    assert refusal(world, "RegisterStreamConsumer", **name) == "ResourceInUseException"
    world.settle()
    seen.append(status())
    assert refusal(world, "DeleteStream", StreamName="s") == "ResourceInUseException"
    world.call("DeregisterStreamConsumer", ConsumerARN=arn)
    seen.append(status())
    world.settle()
    assert seen == ["CREATING", "ACTIVE", "DELETING"]
    assert refusal(world, "DescribeStreamConsumer", ConsumerARN=arn) == "ResourceNotFoundException"


def test_stream_has_at_most_twenty_consumers_and_five_of_them_in_creation() -> None:
    """They are listed in pages and counted."""
    world = World()
    for number in range(20):
        if number % 5 == 4:
            world.settle()
        world.call("RegisterStreamConsumer", StreamARN=ARN, ConsumerName=f"c{number:02d}")
    more = {"StreamARN": ARN, "ConsumerName": "more"}
    assert refusal(world, "RegisterStreamConsumer", **more) == "LimitExceededException"
    page = world.call("ListStreamConsumers", StreamARN=ARN, MaxResults=15)
    rest = world.call("ListStreamConsumers", StreamARN=ARN, NextToken=page["NextToken"])
    names = [consumer["ConsumerName"] for consumer in page["Consumers"] + rest["Consumers"]]
    assert names == [f"c{number:02d}" for number in range(20)]
    summary = world.call("DescribeStreamSummary", StreamName="s")["StreamDescriptionSummary"]
    assert summary["ConsumerCount"] == 20
    fresh = World()
    for number in range(5):
        fresh.call("RegisterStreamConsumer", StreamARN=ARN, ConsumerName=f"c{number}")
    assert refusal(fresh, "RegisterStreamConsumer", **more) == "LimitExceededException"


def test_subscription_gives_two_megabytes_a_second_when_rates_are_limited() -> None:
    """To each consumer; nothing is lost by it."""
    world = World(limit_rates=True)
    for _ in range(10):
        world.put_many(500, data=b"x" * 2000)
        world.clock.now_s += 1
    found = [(at, len(event["Records"])) for at, event in events(world, subscribe(world, register(world)))]
    assert sum(count for _, count in found) == 10 * 500
    assert [at for at, count in found if count][-1] == pytest.approx(10 * 500 * 2001 / 2**21, abs=1.0)
