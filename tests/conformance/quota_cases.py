"""Quotas: how fast, how long, how many."""

from functools import partial
from typing import Any

from tests.conformance.case import Asked, Cases, case
from tests.conformance.service import RefusedError, Service, Stream, refusal

MIB = 1024 * 1024
MINUTE_S, HOUR_S = 60.0, 3600.0
SPLIT = {"ShardToSplit": "shardId-000000000000", "NewStartingHashKey": "1000"}

QUOTA_CASES: Cases = []


def first_refusal(service: Service, operation: str, *, within: int, **params: Any) -> str:
    """Return the first refusal of so many calls at once, or ``taken``; a second may begin in between."""
    codes = [refusal(lambda: service.call(operation, **params)) for _ in range(within)]
    return next((code for code in codes if code != "taken"), "taken")


@case(QUOTA_CASES, "6 GetRecords of a shard a second", "ProvisionedThroughputExceededException", with_rates=True)
def _(service: Service) -> str:
    iterator = Stream(service).iterator()
    return first_refusal(service, "GetRecords", within=11, ShardIterator=iterator)


@case(QUOTA_CASES, "6 GetShardIterator of a shard a second", "ProvisionedThroughputExceededException", with_rates=True)
def _(service: Service) -> str:
    stream = Stream(service)
    where = {"ShardId": "shardId-000000000000", "ShardIteratorType": "LATEST"}
    return first_refusal(service, "GetShardIterator", within=11, StreamName=stream.name, **where)


def with_mebibytes(service: Service, size: int) -> Stream:
    """Return a stream of one shard with as many records of 1 MiB, put one a second."""
    stream = Stream(service)
    for _ in range(size):
        stream.put(b"x" * (MIB - 1))
        service.wait(1.01)
    return stream


@case(QUOTA_CASES, "more than 2 MiB from a shard a second", "ProvisionedThroughputExceededException", with_rates=True)
def _(service: Service) -> str:
    stream = with_mebibytes(service, 5)
    iterator = stream.iterator()
    try:
        for _ in range(5):
            iterator = stream.get(iterator, Limit=1)["NextShardIterator"]
    except RefusedError as error:
        return error.code
    return "taken"


@case(
    QUOTA_CASES,
    "GetRecords 3 and 6 s after one of 10 MiB",
    "ProvisionedThroughputExceededException, taken",
    with_rates=True,
)
def _(service: Service) -> str:
    stream = with_mebibytes(service, 10)
    iterator = stream.get(stream.iterator())["NextShardIterator"]
    service.wait(3)
    soon = refusal(lambda: stream.get(iterator))
    service.wait(3)
    return f"{soon}, {refusal(lambda: stream.get(iterator))}"


@case(QUOTA_CASES, "2,500 records into a shard at once", "ProvisionedThroughputExceededException", with_rates=True)
def _(service: Service) -> str:
    stream = Stream(service)
    answers = [stream.call("PutRecords", Records=[{"Data": b"x", "PartitionKey": "k"}] * 500) for _ in range(5)]
    codes = sorted({one["ErrorCode"] for answer in answers for one in answer["Records"] if one.get("ErrorCode")})
    return " ".join(codes) or "taken"


@case(QUOTA_CASES, "3 MiB into a shard at once", "ProvisionedThroughputExceededException", with_rates=True)
def _(service: Service) -> str:
    stream = Stream(service)
    params = {"StreamName": stream.name, "Data": b"x" * (MIB - 1), "PartitionKey": "k"}
    return first_refusal(service, "PutRecord", within=3, **params)


RATES = {
    "DescribeLimits": 1,
    "DescribeStream": 10,
    "DescribeStreamConsumer": 20,
    "DescribeStreamSummary": 20,
    "ListStreamConsumers": 5,
    "ListStreams": 5,
    "ListTagsForStream": 5,
}
"""Calls a second. Source: Kinesis quotas."""


@case(QUOTA_CASES, "control plane called faster than its rates", "LimitExceededException of 7 of 7", with_rates=True)
def _(service: Service) -> str:
    stream = Stream(service)
    others: dict[str, dict[str, Any]] = {
        "DescribeLimits": {},
        "DescribeStreamConsumer": {"ConsumerARN": stream.consumer()},
        "ListStreamConsumers": {"StreamARN": stream.arn},
        "ListStreams": {},
    }
    refused = 0
    for operation, rate in RATES.items():
        params = others.get(operation, {"StreamName": stream.name})
        found = first_refusal(service, operation, within=2 * rate + 1, **params)
        refused += found == "LimitExceededException"
    service.wait(1.1)
    return f"LimitExceededException of {refused} of {len(RATES)}"


@case(QUOTA_CASES, "UpdateShardCount for the eleventh time in a day", "LimitExceededException", with_rates=True)
def _(service: Service) -> str:
    stream = Stream(service)
    for number in range(11):
        try:
            stream.call("UpdateShardCount", TargetShardCount=2 - number % 2, ScalingType="UNIFORM_SCALING")
        except RefusedError as error:
            return error.code if number == 10 else f"{error.code} for number {number + 1}"
        stream.settle()
    return "taken"


@case(QUOTA_CASES, "5 and 6 streams in CREATING", "taken, LimitExceededException", asked=Asked.OURS)
def _(service: Service) -> str:
    service.wait(MINUTE_S)
    found = []
    for number in range(6):
        params = {"StreamName": f"creating-{int(service.now_s())}-{number}", "ShardCount": 1}
        found.append(refusal(partial(service.call, "CreateStream", **params)))
    service.wait(MINUTE_S)
    *found, last = found
    return f"{' '.join(sorted(set(found)))}, {last}"


@case(QUOTA_CASES, "20 and 21 consumers of a stream", "taken, LimitExceededException")
def _(service: Service) -> str:
    stream = Stream(service)
    *found, last = [refusal(partial(stream.consumer, f"c{number}")) for number in range(21)]
    return f"{' '.join(sorted(set(found)))}, {last}"


@case(QUOTA_CASES, "iterator of 299 and 301 s", "taken, ExpiredIteratorException", asked=Asked.OURS)
def _(service: Service) -> str:
    stream = Stream(service)
    iterator = stream.iterator()
    service.wait(5 * MINUTE_S - 1)
    young = refusal(lambda: stream.get(iterator))
    service.wait(2)
    return f"{young}, {refusal(lambda: stream.get(iterator))}"


@case(QUOTA_CASES, "NextToken of 299 and 301 s", "taken, ExpiredNextTokenException", asked=Asked.OURS)
def _(service: Service) -> str:
    stream = Stream(service, 3)
    token = stream.call("ListShards", MaxResults=1)["NextToken"]
    service.wait(5 * MINUTE_S - 1)
    young = refusal(lambda: service.call("ListShards", NextToken=token))
    service.wait(2)
    return f"{young}, {refusal(lambda: service.call('ListShards', NextToken=token))}"


@case(QUOTA_CASES, "record of 23 and 25 hours, then of 25 where 48 are kept", "a, nothing, b", asked=Asked.OURS)
def _(service: Service) -> str:
    stream = Stream(service)
    stream.put(b"a")
    service.wait(23 * HOUR_S)
    young = stream.data()
    service.wait(2 * HOUR_S)
    old = stream.data() or "nothing"
    stream.call("IncreaseStreamRetentionPeriod", RetentionPeriodHours=48)
    stream.settle()
    stream.put(b"b")
    service.wait(25 * HOUR_S)
    return f"{young}, {old}, {stream.data()}"


@case(QUOTA_CASES, "shard closed 23 and 25 hours ago", "listed, gone", asked=Asked.OURS)
def _(service: Service) -> str:
    stream = Stream(service)
    stream.split()
    found = []
    for pause_s in (23 * HOUR_S, 2 * HOUR_S):
        service.wait(pause_s)
        found.append("listed" if len(stream.shards()) == 3 else "gone")
    return ", ".join(found)
