"""Streams: names and settings."""

from tests.conformance.case import Cases, case
from tests.conformance.service import Service, Stream, refusal

RING = 1 << 128
ROOT = "shardId-000000000000"
SPLIT = {"ShardToSplit": ROOT, "NewStartingHashKey": str(RING // 2)}

STREAM_CASES: Cases = []


@case(STREAM_CASES, "stream that is not there", "ResourceNotFoundException")
def _(service: Service) -> str:
    return refusal(lambda: service.call("ListShards", StreamName="nowhere"))


@case(STREAM_CASES, "stream of a name that is taken", "ResourceInUseException")
def _(service: Service) -> str:
    stream = Stream(service)
    return refusal(lambda: stream.call("CreateStream", ShardCount=1))


@case(STREAM_CASES, "StreamARN instead of the name", "taken")
def _(service: Service) -> str:
    stream = Stream(service)
    put = {"StreamARN": stream.arn, "Data": b"x", "PartitionKey": "k"}
    return refusal(lambda: service.call("PutRecord", **put))


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
