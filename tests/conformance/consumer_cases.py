"""Consumers and their subscriptions."""

from tests.conformance.case import Asked, Cases, case
from tests.conformance.service import Events, RefusedError, Service, Stream, refusal

ROOT = "shardId-000000000000"
HORIZON = {"Type": "TRIM_HORIZON"}

CONSUMER_CASES: Cases = []


def subscribed(service: Service, arn: str, within_s: float, start: dict[str, str] | None = None) -> Events:
    return service.events(within_s, ConsumerARN=arn, ShardId=ROOT, StartingPosition=start or HORIZON)


def ending(events: Events) -> str:
    """Read events to their end and return the error that they end with, or ``no error``."""
    try:
        kinds = [kind for kind, _ in events]
    except RefusedError as error:
        return error.code
    return kinds[-1][1:] if kinds and kinds[-1].startswith(":") else "no error"


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


@case(CONSUMER_CASES, "SubscribeToShard: first event", "initial-response", asked=Asked.ON_THE_WIRE)
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


@case(CONSUMER_CASES, "SubscribeToShard again after 5 s", "taken, the first ends with ResourceInUseException")
def _(service: Service) -> str:
    arn = Stream(service).consumer()
    first = subscribed(service, arn, 12)
    next(first)
    service.wait(5.1)
    found = refusal(lambda: next(subscribed(service, arn, 5)))
    return f"{found}, the first ends with {ending(first)}"


@case(CONSUMER_CASES, "SubscribeToShard: from the number that an event ends with", "a b, then c d")
def _(service: Service) -> str:
    stream = Stream(service)
    stream.put(b"a")
    stream.put(b"b")
    arn, start, found = stream.consumer(), HORIZON, []
    for _ in range(2):
        data: list[str] = []
        for kind, event in subscribed(service, arn, 4, start):
            if kind == "SubscribeToShardEvent":
                data += [record["Data"].decode() for record in event["Records"]]
                start = {"Type": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": event["ContinuationSequenceNumber"]}
                if data:
                    break
        found.append(" ".join(data))
        stream.put(b"c")
        stream.put(b"d")
        service.wait(5.1)
    return ", then ".join(found)


@case(CONSUMER_CASES, "SubscribeToShard for longer than 5 minutes", "ends after 5 minutes, no error", asked=Asked.OURS)
def _(service: Service) -> str:
    arn = Stream(service).consumer()
    begun_s, kinds = service.now_s(), set()
    for kind, _ in subscribed(service, arn, 400):
        kinds.add(kind)
        service.wait(4.5)
    minutes = round((service.now_s() - begun_s) / 60)
    return f"ends after {minutes} minutes, {'an' if any(kind.startswith(':') for kind in kinds) else 'no'} error"


@case(CONSUMER_CASES, "ListStreamConsumers of 3, one at a time", "1 1 1")
def _(service: Service) -> str:
    stream = Stream(service)
    for name in "abc":
        stream.consumer(name)
    return stream.pages("ListStreamConsumers", "Consumers", "MaxResults", "NextToken", StreamARN=stream.arn)
