"""What a Kinesis does, as (requests → expected): each case plays its requests and returns what it found.

``aws`` is what AWS documents; it is the same text that the table in docs/local.md shows.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tests.conformance.service import RefusedError, Service, Stream, is_refused, numbers, refusal

MIB = 1024 * 1024
RING = 1 << 128
ROOT = "shardId-000000000000"
HORIZON = {"Type": "TRIM_HORIZON"}
SPLIT = {"ShardToSplit": ROOT, "NewStartingHashKey": str(RING // 2)}


@dataclass(frozen=True)
class Case:
    """One law."""

    name: str
    aws: str
    play: Callable[[Service], str]
    on_the_wire: bool
    """Whether it is about the bytes of HTTP, and so nothing for the model in memory."""

    def find(self, service: Service) -> str:
        """Return what ``service`` does."""
        try:
            return self.play(service)
        except RefusedError as error:
            return error.code
        except (KeyError, IndexError, TypeError, ValueError, StopIteration) as error:
            return f"answers in another shape ({type(error).__name__})"


CASES: list[Case] = []


def case(name: str, aws: str, *, on_the_wire: bool = False) -> Callable[[Callable[[Service], str]], None]:
    """Make a case of a function."""

    def add(play: Callable[[Service], str]) -> None:
        CASES.append(Case(name, aws, play, on_the_wire))

    return add


@case("closed shard, fully read", "no next iterator, 2 children")
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


@case("unread records of a split shard", "a b")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.put(b"a")
    stream.put(b"b")
    iterator = stream.iterator()
    stream.split()
    return b" ".join(record["Data"] for record in stream.get(iterator)["Records"]).decode()


@case("records put after a split", "to a child")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.split()
    put = stream.call("PutRecord", Data=b"x", PartitionKey="k")
    return "to the parent" if put["ShardId"] == ROOT else "to a child"


@case("shard made by a merge", "names 2 parents")
def _(service: Service) -> str:
    stream = Stream(service, 2)
    lower, upper = (shard["ShardId"] for shard in stream.open_shards())
    stream.call("MergeShards", ShardToMerge=lower, AdjacentShardToMerge=upper)
    stream.settle()
    [merged] = stream.open_shards()
    return f"names {sum(name in merged for name in ('ParentShardId', 'AdjacentParentShardId'))} parents"


@case("status while a shard is split", "UPDATING")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.call("SplitShard", **SPLIT)
    found: str = stream.summary()["StreamStatus"]
    return found


@case("split while another is under way", "ResourceInUseException")
def _(service: Service) -> str:
    stream = Stream(service, 2)
    stream.call("SplitShard", ShardToSplit=ROOT, NewStartingHashKey="1000")
    other = {"ShardToSplit": "shardId-000000000001", "NewStartingHashKey": str(RING - 1000)}
    return refusal(lambda: stream.call("SplitShard", **other))


@case("hash key ranges of 3 shards", "0 to 2^128 - 1, no gap")
def _(service: Service) -> str:
    ends = [shard["HashKeyRange"] for shard in Stream(service, 3).open_shards()]
    starts = [int(end["StartingHashKey"]) for end in ends]
    nexts = [int(end["EndingHashKey"]) + 1 for end in ends]
    if starts[0] != 0 or starts[1:] != nexts[:-1]:
        return "gaps"
    return "0 to 2^128 - 1, no gap" if nexts[-1] == RING else f"0 to 2^128 - {RING - nexts[-1] + 1}, no gap"


@case("record at the highest hash key", "stored")
def _(service: Service) -> str:
    stream = Stream(service, 2)
    stream.put(ExplicitHashKey=str(RING - 1))
    return "stored"


@case("bounds of a closed shard", "start below end")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.split()
    for shard in stream.shards():
        bounds = shard["SequenceNumberRange"]
        if bounds.get("EndingSequenceNumber"):
            start, end = int(bounds["StartingSequenceNumber"]), int(bounds["EndingSequenceNumber"])
            return "start below end" if start < end else "start above end"
    return "not listed"


@case("UpdateShardCount from 2 to 4", "4 open, 6 listed")
def _(service: Service) -> str:
    stream = Stream(service, 2)
    stream.call("UpdateShardCount", TargetShardCount=4, ScalingType="UNIFORM_SCALING")
    stream.settle()
    return f"{stream.summary()['OpenShardCount']} open, {len(stream.shards())} listed"


@case("UpdateShardCount above double", "refused")
def _(service: Service) -> str:
    stream = Stream(service, 2)
    return is_refused(lambda: stream.call("UpdateShardCount", TargetShardCount=5, ScalingType="UNIFORM_SCALING"))


@case("ListShards: second page by the token alone", "0 1, 2")
def _(service: Service) -> str:
    stream = Stream(service, 3)
    page = stream.call("ListShards", MaxResults=2)
    token = page.get("NextToken")
    if token is None:
        return f"{numbers(page['Shards'])}, no token"
    rest = service.call("ListShards", NextToken=token, MaxResults=2)
    return f"{numbers(page['Shards'])}, {numbers(rest['Shards'])}"


@case("ListShards: token beside the name", "InvalidArgumentException")
def _(service: Service) -> str:
    stream = Stream(service, 3)
    token = stream.call("ListShards", MaxResults=2).get("NextToken")
    return refusal(lambda: stream.call("ListShards", NextToken=token)) if token else "no token"


@case("ListShards: ExclusiveStartShardId", "1 2")
def _(service: Service) -> str:
    return numbers(Stream(service, 3).shards(ExclusiveStartShardId=ROOT))


def after_a_split(service: Service) -> Stream:
    """Return a stream that was split a while after its creation and a while ago."""
    stream = Stream(service)
    service.wait(1.1)
    stream.split()
    service.wait(1.1)
    return stream


@case("ShardFilter AT_TRIM_HORIZON", "0")
def _(service: Service) -> str:
    return after_a_split(service).filtered("AT_TRIM_HORIZON")


@case("ShardFilter FROM_TRIM_HORIZON", "0 1 2")
def _(service: Service) -> str:
    return after_a_split(service).filtered("FROM_TRIM_HORIZON")


@case("ShardFilter AT_LATEST", "1 2")
def _(service: Service) -> str:
    return after_a_split(service).filtered("AT_LATEST")


@case("ShardFilter AFTER_SHARD_ID", "1 2")
def _(service: Service) -> str:
    return after_a_split(service).filtered("AFTER_SHARD_ID", ShardId=ROOT)


@case("ShardFilter AT_TIMESTAMP", "1 2")
def _(service: Service) -> str:
    return after_a_split(service).filtered("AT_TIMESTAMP", Timestamp=service.now_s() - 0.1)


@case("ShardFilter FROM_TIMESTAMP", "1 2")
def _(service: Service) -> str:
    return after_a_split(service).filtered("FROM_TIMESTAMP", Timestamp=service.now_s() - 0.1)


@case("sequence numbers", "grow, differ between shards")
def _(service: Service) -> str:
    stream = Stream(service, 2)
    given = [[int(stream.put(ExplicitHashKey=key)) for _ in range(5)] for key in ("0", str(RING - 1000))]
    grow = "grow" if all(row == sorted(set(row)) for row in given) else "do not grow"
    return f"{grow}, {'repeat' if set(given[0]) & set(given[1]) else 'differ'} between shards"


@case("sequence number of another shard", "InvalidArgumentException")
def _(service: Service) -> str:
    stream = Stream(service, 2)
    number = stream.put(ExplicitHashKey=str(RING - 1000))
    return refusal(lambda: stream.iterator("AT_SEQUENCE_NUMBER", StartingSequenceNumber=number))


@case("AT_ and AFTER_SEQUENCE_NUMBER", "b c, c")
def _(service: Service) -> str:
    stream = Stream(service)
    second = [stream.put(data) for data in (b"a", b"b", b"c")][1]
    at = stream.data("AT_SEQUENCE_NUMBER", StartingSequenceNumber=second)
    return f"{at}, {stream.data('AFTER_SEQUENCE_NUMBER', StartingSequenceNumber=second)}"


@case("LATEST, then a record", "new")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.put(b"old")
    iterator = stream.iterator("LATEST")
    stream.put(b"new")
    return b" ".join(record["Data"] for record in stream.get(iterator)["Records"]).decode()


@case("AT_TIMESTAMP between two records", "b")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.put(b"a")
    service.wait(0.2)
    between_s = service.now_s()
    service.wait(0.2)
    stream.put(b"b")
    return stream.data("AT_TIMESTAMP", Timestamp=between_s)


@case("AT_TIMESTAMP after the last record", "nothing")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.put()
    service.wait(0.2)
    return stream.data("AT_TIMESTAMP", Timestamp=service.now_s() - 0.05) or "nothing"


@case("made-up iterator", "InvalidArgumentException")
def _(service: Service) -> str:
    return refusal(lambda: service.call("GetRecords", ShardIterator="AAAA"))


@case("GetRecords with Limit 20,000", "refused")
def _(service: Service) -> str:
    stream = Stream(service)
    return is_refused(lambda: stream.get(stream.iterator(), Limit=20_000))


@case("MillisBehindLatest, one of two read, both read", "age of the one read, 0")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.put()
    stream.put()
    service.wait(1.5)
    first = stream.get(stream.iterator(), Limit=1)
    last = stream.get(first["NextShardIterator"])
    age = "age of the one read" if first["MillisBehindLatest"] >= 1400 else "too low"
    return f"{age}, {last['MillisBehindLatest']}"


@case("GetRecords of 12 records of 1 MiB", "at most 10 MiB")
def _(service: Service) -> str:
    stream = Stream(service)
    for _ in range(12):
        stream.put(b"x" * (MIB - 1))
    size = sum(len(record["Data"]) + 1 for record in stream.get(stream.iterator())["Records"])
    return "at most 10 MiB" if size <= 10 * MIB else f"{size / MIB:.0f} MiB"


@case("record of 1 MiB and 1 byte", "refused")
def _(service: Service) -> str:
    stream = Stream(service)
    return is_refused(lambda: stream.put(b"x" * MIB))


@case("PutRecords of 501", "refused")
def _(service: Service) -> str:
    stream = Stream(service)
    return is_refused(lambda: stream.call("PutRecords", Records=[{"Data": b"x", "PartitionKey": "k"}] * 501))


@case("record of 2 MiB where 10 are allowed", "taken")
def _(service: Service) -> str:
    stream = Stream(service, MaxRecordSizeInKiB=10_240)
    return refusal(lambda: stream.put(b"x" * (2 * MIB)))


@case("stream that is not there", "ResourceNotFoundException")
def _(service: Service) -> str:
    return refusal(lambda: service.call("ListShards", StreamName="nowhere"))


@case("stream of a name that is taken", "ResourceInUseException")
def _(service: Service) -> str:
    stream = Stream(service)
    return refusal(lambda: stream.call("CreateStream", ShardCount=1))


@case("StreamARN instead of the name", "taken")
def _(service: Service) -> str:
    stream = Stream(service)
    put = {"StreamARN": stream.arn, "Data": b"x", "PartitionKey": "k"}
    return refusal(lambda: service.call("PutRecord", **put))


@case("retention to 48 hours, then a longer one by the wrong operation", "48, InvalidArgumentException")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.call("IncreaseStreamRetentionPeriod", RetentionPeriodHours=48)
    stream.settle()
    wrong = refusal(lambda: stream.call("DecreaseStreamRetentionPeriod", RetentionPeriodHours=72))
    return f"{stream.summary()['RetentionPeriodHours']}, {wrong}"


@case("tags", "a=1")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.call("AddTagsToStream", Tags={"a": "1", "b": "2"})
    stream.call("RemoveTagsFromStream", TagKeys=["b"])
    return " ".join(f"{tag['Key']}={tag['Value']}" for tag in stream.call("ListTagsForStream")["Tags"])


@case("UpdateStreamMode, then a split", "ON_DEMAND, ValidationException")
def _(service: Service) -> str:
    stream = Stream(service)
    service.call("UpdateStreamMode", StreamARN=stream.arn, StreamModeDetails={"StreamMode": "ON_DEMAND"})
    stream.settle()
    mode = stream.summary().get("StreamModeDetails", {}).get("StreamMode")
    return f"{mode}, {refusal(lambda: stream.call('SplitShard', **SPLIT))}"


@case("StartStreamEncryption", "KMS, records KMS")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.call("StartStreamEncryption", EncryptionType="KMS", KeyId="alias/aws/kinesis")
    stream.settle()
    stream.put()
    [record] = stream.get(stream.iterator())["Records"]
    return f"{stream.summary().get('EncryptionType')}, records {record.get('EncryptionType')}"


@case("DescribeLimits", "OnDemandStreamCount OnDemandStreamCountLimit OpenShardCount ShardLimit")
def _(service: Service) -> str:
    return " ".join(sorted(service.call("DescribeLimits")))


@case("consumer, just registered", "CREATING")
def _(service: Service) -> str:
    stream = Stream(service)
    params = {"StreamARN": stream.arn, "ConsumerName": "c"}
    found: str = service.call("RegisterStreamConsumer", **params)["Consumer"]["ConsumerStatus"]
    return found


@case("consumer of a name that is taken", "ResourceInUseException")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.consumer()
    return refusal(stream.consumer)


@case("DeleteStream with a consumer", "ResourceInUseException")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.consumer()
    return refusal(lambda: stream.call("DeleteStream"))


@case("DescribeStreamConsumer after DeregisterStreamConsumer", "ResourceNotFoundException")
def _(service: Service) -> str:
    arn = Stream(service).consumer()
    service.call("DeregisterStreamConsumer", ConsumerARN=arn)
    service.wait(2)
    return refusal(lambda: service.call("DescribeStreamConsumer", ConsumerARN=arn))


@case("SubscribeToShard: first event", "initial-response", on_the_wire=True)
def _(service: Service) -> str:
    arn = Stream(service).consumer()
    return next(service.events(10, ConsumerARN=arn, ShardId=ROOT, StartingPosition=HORIZON))[0]


@case("SubscribeToShard: split shard with 3 records", "3 records, 2 children, no continuation, end")
def _(service: Service) -> str:
    stream = Stream(service)
    for _ in range(3):
        stream.put()
    arn = stream.consumer()
    stream.split()
    records = 0
    for kind, event in service.events(6, ConsumerARN=arn, ShardId=ROOT, StartingPosition=HORIZON):
        records += len(event.get("Records", [])) if kind == "SubscribeToShardEvent" else 0
        if event.get("ChildShards"):
            token = "a" if event.get("ContinuationSequenceNumber") else "no"
            return f"{records} records, {len(event['ChildShards'])} children, {token} continuation, end"
    return f"{records} records, no children"


@case("SubscribeToShard: quiet shard", "empty event within 5 s, with a number to go on from")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.put()
    arn = stream.consumer()
    begun_s = service.now_s()
    for kind, event in service.events(9, ConsumerARN=arn, ShardId=ROOT, StartingPosition={"Type": "LATEST"}):
        if kind == "SubscribeToShardEvent" and not event["Records"]:
            within = "within" if service.now_s() - begun_s <= 5 else "after"
            number = "with" if event.get("ContinuationSequenceNumber") else "without"
            return f"empty event {within} 5 s, {number} a number to go on from"
    return "no event"


@case("SubscribeToShard again within 5 s", "ResourceInUseException")
def _(service: Service) -> str:
    arn = Stream(service).consumer()
    events = service.events(4, ConsumerARN=arn, ShardId=ROOT, StartingPosition=HORIZON)
    next(events)
    again = service.events(1, ConsumerARN=arn, ShardId=ROOT, StartingPosition=HORIZON)
    return refusal(lambda: next(again))
