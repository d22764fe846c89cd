"""Shards: their ends, splits, merges, listings."""

from tests.conformance.case import Cases, case
from tests.conformance.service import Service, Stream, is_refused, numbers, refusal

RING = 1 << 128
ROOT = "shardId-000000000000"
SPLIT = {"ShardToSplit": ROOT, "NewStartingHashKey": str(RING // 2)}

SHARD_CASES: Cases = []


@case(SHARD_CASES, "closed shard, fully read", "no next iterator, 2 children")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.put()
    stream.split()
    page = stream.get(stream.iterator())
    for _ in range(5):
        if not page.get("NextShardIterator"):
            return f"no next iterator, {len(page.get('ChildShards') or [])} children"
        page = stream.get(page["NextShardIterator"])
    return "never ends"


@case(SHARD_CASES, "unread records of a split shard", "a b")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.put(b"a")
    stream.put(b"b")
    iterator = stream.iterator()
    stream.split()
    return b" ".join(record["Data"] for record in stream.get(iterator)["Records"]).decode()


@case(SHARD_CASES, "records put after a split", "to a child")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.split()
    put = stream.call("PutRecord", Data=b"x", PartitionKey="k")
    return "to the parent" if put["ShardId"] == ROOT else "to a child"


@case(SHARD_CASES, "shard made by a merge", "names 2 parents")
def _(service: Service) -> str:
    stream = Stream(service, 2)
    lower, upper = (shard["ShardId"] for shard in stream.open_shards())
    stream.call("MergeShards", ShardToMerge=lower, AdjacentShardToMerge=upper)
    stream.settle()
    [merged] = stream.open_shards()
    return f"names {sum(name in merged for name in ('ParentShardId', 'AdjacentParentShardId'))} parents"


@case(SHARD_CASES, "MergeShards of shards that are no neighbours", "InvalidArgumentException")
def _(service: Service) -> str:
    stream = Stream(service, 3)
    pair = {"ShardToMerge": ROOT, "AdjacentShardToMerge": "shardId-000000000002"}
    return refusal(lambda: stream.call("MergeShards", **pair))


@case(SHARD_CASES, "SplitShard at a key outside of the shard", "InvalidArgumentException")
def _(service: Service) -> str:
    stream = Stream(service, 2)
    cut = {"ShardToSplit": ROOT, "NewStartingHashKey": str(RING - 1000)}
    return refusal(lambda: stream.call("SplitShard", **cut))


@case(SHARD_CASES, "SplitShard of a closed shard", "ResourceInUseException")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.split()
    return refusal(lambda: stream.call("SplitShard", **SPLIT))


@case(SHARD_CASES, "status while a shard is split", "UPDATING")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.call("SplitShard", **SPLIT)
    found: str = stream.summary()["StreamStatus"]
    return found


@case(SHARD_CASES, "split while another is under way", "ResourceInUseException")
def _(service: Service) -> str:
    stream = Stream(service, 2)
    stream.call("SplitShard", ShardToSplit=ROOT, NewStartingHashKey="1000")
    other = {"ShardToSplit": "shardId-000000000001", "NewStartingHashKey": str(RING - 1000)}
    return refusal(lambda: stream.call("SplitShard", **other))


@case(SHARD_CASES, "hash key ranges of 3 shards", "0 to 2^128 - 1, no gap")
def _(service: Service) -> str:
    ends = [shard["HashKeyRange"] for shard in Stream(service, 3).open_shards()]
    starts = [int(end["StartingHashKey"]) for end in ends]
    nexts = [int(end["EndingHashKey"]) + 1 for end in ends]
    if starts[0] != 0 or starts[1:] != nexts[:-1]:
        return "gaps"
    return "0 to 2^128 - 1, no gap" if nexts[-1] == RING else f"0 to 2^128 - {RING - nexts[-1] + 1}, no gap"


@case(SHARD_CASES, "record at the highest hash key", "stored")
def _(service: Service) -> str:
    stream = Stream(service, 2)
    stream.put(ExplicitHashKey=str(RING - 1))
    return "stored"


@case(SHARD_CASES, "bounds of a closed shard", "start below end")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.split()
    for shard in stream.shards():
        bounds = shard["SequenceNumberRange"]
        if bounds.get("EndingSequenceNumber"):
            start, end = int(bounds["StartingSequenceNumber"]), int(bounds["EndingSequenceNumber"])
            return "start below end" if start < end else "start above end"
    return "not listed"


@case(SHARD_CASES, "UpdateShardCount from 2 to 4", "4 open, 6 listed")
def _(service: Service) -> str:
    stream = Stream(service, 2)
    stream.call("UpdateShardCount", TargetShardCount=4, ScalingType="UNIFORM_SCALING")
    stream.settle()
    return f"{stream.summary()['OpenShardCount']} open, {len(stream.shards())} listed"


@case(SHARD_CASES, "UpdateShardCount above double", "refused")
def _(service: Service) -> str:
    stream = Stream(service, 2)
    return is_refused(lambda: stream.call("UpdateShardCount", TargetShardCount=5, ScalingType="UNIFORM_SCALING"))


@case(SHARD_CASES, "UpdateShardCount below half", "refused")
def _(service: Service) -> str:
    stream = Stream(service, 4)
    return is_refused(lambda: stream.call("UpdateShardCount", TargetShardCount=1, ScalingType="UNIFORM_SCALING"))


@case(SHARD_CASES, "ListShards: second page by the token alone", "0 1, 2")
def _(service: Service) -> str:
    stream = Stream(service, 3)
    page = stream.call("ListShards", MaxResults=2)
    token = page.get("NextToken")
    if token is None:
        return f"{numbers(page['Shards'])}, no token"
    rest = service.call("ListShards", NextToken=token, MaxResults=2)
    return f"{numbers(page['Shards'])}, {numbers(rest['Shards'])}"


@case(SHARD_CASES, "ListShards: token beside the name", "InvalidArgumentException")
def _(service: Service) -> str:
    stream = Stream(service, 3)
    token = stream.call("ListShards", MaxResults=2).get("NextToken")
    return refusal(lambda: stream.call("ListShards", NextToken=token)) if token else "no token"


@case(SHARD_CASES, "ListShards: ExclusiveStartShardId", "1 2")
def _(service: Service) -> str:
    return numbers(Stream(service, 3).shards(ExclusiveStartShardId=ROOT))


def after_a_split(service: Service) -> Stream:
    """Return a stream that was split a while after its creation and a while ago."""
    stream = Stream(service)
    service.wait(1.1)
    stream.split()
    service.wait(1.1)
    return stream


@case(SHARD_CASES, "ShardFilter AT_TRIM_HORIZON", "0")
def _(service: Service) -> str:
    return after_a_split(service).filtered("AT_TRIM_HORIZON")


@case(SHARD_CASES, "ShardFilter FROM_TRIM_HORIZON", "0 1 2")
def _(service: Service) -> str:
    return after_a_split(service).filtered("FROM_TRIM_HORIZON")


@case(SHARD_CASES, "ShardFilter AT_LATEST", "1 2")
def _(service: Service) -> str:
    return after_a_split(service).filtered("AT_LATEST")


@case(SHARD_CASES, "ShardFilter AFTER_SHARD_ID", "1 2")
def _(service: Service) -> str:
    return after_a_split(service).filtered("AFTER_SHARD_ID", ShardId=ROOT)


@case(SHARD_CASES, "ShardFilter AT_TIMESTAMP", "1 2")
def _(service: Service) -> str:
    return after_a_split(service).filtered("AT_TIMESTAMP", Timestamp=service.now_s() - 0.1)


@case(SHARD_CASES, "ShardFilter FROM_TIMESTAMP", "1 2")
def _(service: Service) -> str:
    return after_a_split(service).filtered("FROM_TIMESTAMP", Timestamp=service.now_s() - 0.1)
