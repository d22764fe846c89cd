"""Consumers and their subscriptions."""

from tests.conformance.case import Cases, case
from tests.conformance.service import Service, Stream, refusal

ROOT = "shardId-000000000000"
HORIZON = {"Type": "TRIM_HORIZON"}

CONSUMER_CASES: Cases = []


@case(CONSUMER_CASES, "consumer, just registered", "CREATING")
def _(service: Service) -> str:
    stream = Stream(service)
    params = {"StreamARN": stream.arn, "ConsumerName": "c"}
    found: str = service.call("RegisterStreamConsumer", **params)["Consumer"]["ConsumerStatus"]
    return found


@case(CONSUMER_CASES, "consumer of a name that is taken", "ResourceInUseException")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.consumer()
    return refusal(stream.consumer)


@case(CONSUMER_CASES, "DeleteStream with a consumer", "ResourceInUseException")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.consumer()
    return refusal(lambda: stream.call("DeleteStream"))


@case(CONSUMER_CASES, "DescribeStreamConsumer after DeregisterStreamConsumer", "ResourceNotFoundException")
def _(service: Service) -> str:
    arn = Stream(service).consumer()
    service.call("DeregisterStreamConsumer", ConsumerARN=arn)
    service.wait(2)
    return refusal(lambda: service.call("DescribeStreamConsumer", ConsumerARN=arn))


@case(CONSUMER_CASES, "SubscribeToShard: first event", "initial-response", on_the_wire=True)
def _(service: Service) -> str:
    arn = Stream(service).consumer()
    return next(service.events(10, ConsumerARN=arn, ShardId=ROOT, StartingPosition=HORIZON))[0]


@case(CONSUMER_CASES, "SubscribeToShard: split shard with 3 records", "3 records, 2 children, no continuation, end")
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


@case(CONSUMER_CASES, "SubscribeToShard: quiet shard", "empty event within 5 s, with a number to go on from")
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


@case(CONSUMER_CASES, "SubscribeToShard again within 5 s", "ResourceInUseException")
def _(service: Service) -> str:
    arn = Stream(service).consumer()
    events = service.events(4, ConsumerARN=arn, ShardId=ROOT, StartingPosition=HORIZON)
    next(events)
    again = service.events(1, ConsumerARN=arn, ShardId=ROOT, StartingPosition=HORIZON)
    return refusal(lambda: next(again))
