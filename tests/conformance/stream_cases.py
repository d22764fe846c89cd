"""Streams: names and settings."""

from functools import partial
from typing import Any

from tests.conformance.case import Asked, Cases, case
from tests.conformance.service import Service, Stream, numbers, refusal

RING = 1 << 128
ROOT = "shardId-000000000000"
SPLIT = {"ShardToSplit": ROOT, "NewStartingHashKey": str(RING // 2)}

STREAM_CASES: Cases = []


@case(STREAM_CASES, "stream, just created", "CREATING")
def _(service: Service) -> str:
    name = f"created-{int(service.now_s() * 1000)}"
    service.call("CreateStream", StreamName=name, ShardCount=1)
    found: str = service.call("DescribeStreamSummary", StreamName=name)["StreamDescriptionSummary"]["StreamStatus"]
    return found


@case(STREAM_CASES, "stream, deleted", "ResourceNotFoundException")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.call("DeleteStream")
    service.wait(2)
    return refusal(stream.summary)


@case(STREAM_CASES, "DescribeStream of 3 shards, two at a time", "0 1 and more, 2")
def _(service: Service) -> str:
    stream, found = Stream(service, 3), []
    more: dict[str, str] = {}
    for _ in range(3):
        page = stream.call("DescribeStream", Limit=2, **more)["StreamDescription"]
        found.append(numbers(page["Shards"]) + (" and more" if page["HasMoreShards"] else ""))
        if not page["HasMoreShards"]:
            break
        more = {"ExclusiveStartShardId": page["Shards"][-1]["ShardId"]}
    return ", ".join(found)


@case(STREAM_CASES, "ListStreams, one at a time", "goes on by its token")
def _(service: Service) -> str:
    Stream(service), Stream(service)
    first = service.call("ListStreams", Limit=1)
    token = first.get("NextToken")
    if token is None:
        return "no token"
    rest = service.call("ListStreams", Limit=1, NextToken=token)
    return "goes on by its token" if rest["StreamNames"] > first["StreamNames"] else "begins anew"


@case(STREAM_CASES, "stream that is not there", "ResourceNotFoundException")
def _(service: Service) -> str:
    return refusal(lambda: service.call("ListShards", StreamName="nowhere"))


@case(STREAM_CASES, "stream of a name that is taken", "ResourceInUseException")
def _(service: Service) -> str:
    stream = Stream(service)
    return refusal(lambda: stream.call("CreateStream", ShardCount=1))


_BY_ARN: dict[str, dict[str, Any]] = {
    "PutRecord": {"Data": b"x", "PartitionKey": "k"},
    "PutRecords": {"Records": [{"Data": b"x", "PartitionKey": "k"}]},
    "GetShardIterator": {"ShardId": ROOT, "ShardIteratorType": "LATEST"},
    "ListShards": {},
    "DescribeStream": {},
    "DescribeStreamSummary": {},
    "ListTagsForStream": {},
    "AddTagsToStream": {"Tags": {"a": "b"}},
    "RemoveTagsFromStream": {"TagKeys": ["a"]},
    "IncreaseStreamRetentionPeriod": {"RetentionPeriodHours": 48},
    "DecreaseStreamRetentionPeriod": {"RetentionPeriodHours": 24},
    "StartStreamEncryption": {"EncryptionType": "KMS", "KeyId": "alias/aws/kinesis"},
    "StopStreamEncryption": {"EncryptionType": "KMS", "KeyId": "alias/aws/kinesis"},
    "UpdateShardCount": {"TargetShardCount": 2, "ScalingType": "UNIFORM_SCALING"},
    "SplitShard": {"ShardToSplit": "shardId-000000000001", "NewStartingHashKey": str(RING // 4)},
    "MergeShards": {"ShardToMerge": "shardId-000000000003", "AdjacentShardToMerge": "shardId-000000000004"},
    "DeleteStream": {},
}


@case(STREAM_CASES, "StreamARN instead of the name", "taken by 18 of 18")
def _(service: Service) -> str:
    stream = Stream(service)
    iterator = stream.iterator()
    taken = [refusal(lambda: stream.get(iterator, StreamARN=stream.arn))]
    for operation, params in _BY_ARN.items():
        taken.append(refusal(partial(service.call, operation, StreamARN=stream.arn, **params)))
        if operation != "DeleteStream":
            stream.settle()
    return f"taken by {taken.count('taken')} of {len(taken)}"


@case(STREAM_CASES, "retention to 48 hours, then a longer one by the wrong operation", "48, InvalidArgumentException")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.call("IncreaseStreamRetentionPeriod", RetentionPeriodHours=48)
    stream.settle()
    wrong = refusal(lambda: stream.call("DecreaseStreamRetentionPeriod", RetentionPeriodHours=72))
    return f"{stream.summary()['RetentionPeriodHours']}, {wrong}"


@case(STREAM_CASES, "tags", "a=1")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.call("AddTagsToStream", Tags={"a": "1", "b": "2"})
    stream.call("RemoveTagsFromStream", TagKeys=["b"])
    return " ".join(f"{tag['Key']}={tag['Value']}" for tag in stream.call("ListTagsForStream")["Tags"])


@case(STREAM_CASES, "UpdateStreamMode, then a split", "ON_DEMAND, ValidationException")
def _(service: Service) -> str:
    stream = Stream(service)
    service.call("UpdateStreamMode", StreamARN=stream.arn, StreamModeDetails={"StreamMode": "ON_DEMAND"})
    stream.settle()
    mode = stream.summary().get("StreamModeDetails", {}).get("StreamMode")
    return f"{mode}, {refusal(lambda: stream.call('SplitShard', **SPLIT))}"


@case(STREAM_CASES, "StartStreamEncryption", "KMS, records KMS")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.call("StartStreamEncryption", EncryptionType="KMS", KeyId="alias/aws/kinesis")
    stream.settle()
    stream.put()
    [record] = stream.get(stream.iterator())["Records"]
    return f"{stream.summary().get('EncryptionType')}, records {record.get('EncryptionType')}"


@case(STREAM_CASES, "DescribeLimits", "OnDemandStreamCount OnDemandStreamCountLimit OpenShardCount ShardLimit")
def _(service: Service) -> str:
    return " ".join(sorted(service.call("DescribeLimits")))


@case(STREAM_CASES, "records of a stream whose key is disabled", "KMSDisabledException", asked=Asked.OURS)
def _(service: Service) -> str:
    stream = Stream(service)
    iterator = stream.iterator()
    stream.call("StartStreamEncryption", EncryptionType="KMS", KeyId="alias/KMSDisabledException")
    stream.settle()
    return " ".join(sorted({refusal(stream.put), refusal(lambda: stream.get(iterator))}))
