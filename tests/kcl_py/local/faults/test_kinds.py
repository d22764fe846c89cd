"""Every kind of fault: what the caller sees and what became of the request, the same in memory and over HTTP."""

from dataclasses import dataclass
from typing import Any

import pytest

from kcl_py.local.faults.fault import Fault, Kind
from tests.kcl_py.local.faults.site import PLACES, Place

pytestmark = pytest.mark.asyncio
everywhere = pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)

PUT: dict[str, Any] = {"StreamName": "s", "PartitionKey": "k", "Data": b"x"}
ITEM: dict[str, Any] = {"TableName": "leases", "Item": {"id": {"S": "x"}}}


@dataclass(frozen=True)
class Case:
    """A fault in the one call that is made, and what comes of it."""

    fault: Fault
    kinesis: str
    """What PutRecord ends in."""
    is_done: bool
    """Whether it takes effect."""
    dynamodb: str = ""
    """What PutItem ends in, if in anything else."""


CLOSED = "RequestError ConnectionClosedError"
RESET = "UnreachableError EndpointConnectionError"
THROUGHPUT = "ThrottledError ProvisionedThroughputExceededException"
CASES = [
    Case(Fault(kind=Kind.ERROR), "RequestError InternalFailure", False, "RequestError InternalServerError"),
    Case(Fault(kind=Kind.ERROR, code="AccessDeniedException"), "RejectedError AccessDeniedException", False),
    Case(Fault(kind=Kind.LOST_REPLY), CLOSED, True),
    Case(Fault(kind=Kind.LOST_REPLY, delay_s=30), CLOSED, True),
    Case(Fault(kind=Kind.LOST_REPLY, code="ServiceUnavailable"), "RequestError ServiceUnavailable", True),
    Case(Fault(kind=Kind.DELAY, delay_s=30), "none", True),
    Case(Fault(kind=Kind.HANG), "hangs", False),
    Case(Fault(kind=Kind.THROTTLE), THROUGHPUT, False),
    Case(Fault(kind=Kind.THROTTLE, code="ThrottlingException"), "ThrottledError ThrottlingException", False),
    Case(Fault(kind=Kind.RESET), RESET, False),
    Case(Fault(kind=Kind.TRUNCATED), CLOSED, True),
]


@everywhere
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.fault.kind}-{case.fault.code or case.fault.delay_s}")
async def test_a_write_meets_a_fault(place: Place, case: Case) -> None:
    """The caller sees the error that AWS and its library would give; the effect is there or not, whatever is seen."""
    async with place(case.fault) as site:
        begun_s, expected = site.world.clock.now_s, case.dynamodb or case.kinesis
        assert await site.ending("kinesis.put_record", PUT) == case.kinesis
        assert await site.ending("dynamodb.put_item", ITEM) == expected
        assert (site.records(), site.ids()) == (([b"x"], ["x"]) if case.is_done else ([], []))
        assert site.world.clock.now_s - begun_s == 2 * case.fault.delay_s
        assert site.faults.happened == {
            ("kinesis", "PutRecord", case.fault.kind): 1,
            ("dynamodb", "PutItem", case.fault.kind): 1,
        }


@everywhere
@pytest.mark.parametrize(
    ("operation", "params", "expected"),
    [
        ("kinesis.list_shards", {"StreamName": "s"}, "ThrottledError LimitExceededException"),
        ("kinesis.get_shard_iterator", {"StreamName": "s", "ShardId": "0", "ShardIteratorType": "LATEST"}, THROUGHPUT),
        ("dynamodb.describe_table", {"TableName": "leases"}, "ThrottledError ThrottlingException"),
        ("dynamodb.scan", {"TableName": "leases"}, THROUGHPUT),
    ],
)
async def test_throttle_has_the_operations_own_code(
    place: Place, operation: str, params: dict[str, Any], expected: str
) -> None:
    """AWS refuses reads and writes in other words than the rest."""
    async with place(Fault(kind=Kind.THROTTLE)) as site:
        assert await site.ending(operation, params) == expected


@everywhere
@pytest.mark.parametrize("kind", [Kind.LOST_REPLY, Kind.TRUNCATED])
async def test_a_refusal_is_lost_as_well(place: Place, kind: Kind) -> None:
    """The caller cannot know that the condition did not hold."""
    async with place(Fault(kind=kind, operation="PutItem", calls=(2,))) as site:
        conditional = ITEM | {"ConditionExpression": "attribute_not_exists(id)"}
        assert await site.ending("dynamodb.put_item", conditional) == "none"
        assert await site.ending("dynamodb.put_item", conditional) == CLOSED
        assert await site.ending("dynamodb.put_item", conditional) == (
            "ConditionFailedError ConditionalCheckFailedException"
        )


@everywhere
@pytest.mark.parametrize("code", ["", "InternalFailure"])
async def test_partial_put_fails_some_records_and_stores_the_others(place: Place, code: str) -> None:
    """Each record's entry stands at its place, as AWS promises."""
    sent = [{"PartitionKey": "k", "Data": b"%d" % number} for number in range(20)]
    async with place(Fault(kind=Kind.PARTIAL, code=code)) as site:
        reply = await site.call("kinesis.put_records", {"StreamName": "s", "Records": sent})
        entries = reply["Records"]
        failed = [entry for entry in entries if "ErrorCode" in entry]
        assert {entry["ErrorCode"] for entry in failed} == {code or "ProvisionedThroughputExceededException"}
        assert (len(entries), reply["FailedRecordCount"]) == (20, len(failed))
        assert 0 < len(failed) < 20
        stored = [record["Data"] for record, entry in zip(sent, entries, strict=True) if "ErrorCode" not in entry]
        assert site.records() == stored
        numbers = [record.sequence_number for record in site.world.read()]
        assert [entry["SequenceNumber"] for entry in entries if "ErrorCode" not in entry] == numbers


@everywhere
async def test_partial_put_of_one_record_fails_it(place: Place) -> None:
    """Nothing is asked of the service, and the answer has the shape of any other."""
    async with place(Fault(kind=Kind.PARTIAL)) as site:
        records = [{"PartitionKey": "k", "Data": b"x"}]
        reply = await site.call("kinesis.put_records", {"StreamName": "s", "Records": records})
        assert (reply["FailedRecordCount"], site.records()) == (1, [])
        assert reply["ResponseMetadata"]["HTTPStatusCode"] == 200


@everywhere
async def test_partial_put_without_the_apis_shape_is_refused_as_ever(place: Place) -> None:
    """A fault does not make a bad request good."""
    async with place(Fault(kind=Kind.PARTIAL)) as site:
        assert await site.ending("kinesis.put_records", {"StreamName": "s", "Records": []}) != "none"


@everywhere
async def test_partial_batches_of_items_come_back_in_part(place: Place) -> None:
    """Asking again for what is unprocessed gets everything done, as with DynamoDB's own."""
    async with place(Fault(kind=Kind.PARTIAL, times=2)) as site:
        todo: Any = {"leases": [{"PutRequest": {"Item": {"id": {"S": f"{n:02}"}}}} for n in range(20)]}
        sizes = []
        while todo:
            reply = await site.call("dynamodb.batch_write_item", {"RequestItems": todo})
            todo = reply["UnprocessedItems"]
            sizes.append(len(site.ids()))
        assert (sizes[-1], len(sizes)) == (20, 3)
        assert 0 < sizes[0] < sizes[1] < 20


@everywhere
async def test_partial_reads_of_items_come_back_in_part(place: Place) -> None:
    """What is unprocessed keeps how it was asked for."""
    async with place(Fault(kind=Kind.PARTIAL, operation="BatchGetItem", times=1)) as site:
        for number in range(10):
            await site.call("dynamodb.put_item", ITEM | {"Item": {"id": {"S": str(number)}}})
        asked = {"Keys": [{"id": {"S": str(number)}} for number in range(10)], "ConsistentRead": True}
        first = await site.call("dynamodb.batch_get_item", {"RequestItems": {"leases": asked}})
        left = first["UnprocessedKeys"]
        assert left["leases"]["ConsistentRead"] is True
        second = await site.call("dynamodb.batch_get_item", {"RequestItems": left})
        got = [item["id"]["S"] for reply in (first, second) for item in reply["Responses"]["leases"]]
        assert sorted(got) == [str(number) for number in range(10)]


@everywhere
async def test_a_stale_read_answers_as_at_the_call_before(place: Place) -> None:
    """It is one call behind; the first of all is current, and so is a consistent one."""
    key = {"TableName": "leases", "Key": {"id": {"S": "x"}}}
    async with place(Fault(kind=Kind.STALE)) as site:
        assert "Item" not in await site.call("dynamodb.get_item", key)
        await site.call("dynamodb.put_item", ITEM)
        consistent = key | {"ConsistentRead": True}
        assert "Item" in await site.call("dynamodb.get_item", consistent)
        assert "Item" not in await site.call("dynamodb.get_item", key)
        assert "Item" in await site.call("dynamodb.get_item", key)
        assert site.faults.happened == {("dynamodb", "GetItem", Kind.STALE): 2}


@everywhere
async def test_a_stale_read_repeats_no_failure(place: Place) -> None:
    """Neither one that was injected nor one of the service: what is repeated is what the service once told."""
    key = {"TableName": "leases", "Key": {"id": {"S": "x"}}}
    error = Fault(kind=Kind.ERROR, operation="GetItem", calls=(2,))
    async with place(error, Fault(kind=Kind.STALE)) as site:
        assert await site.ending("dynamodb.get_item", key) == "none"
        await site.call("dynamodb.put_item", ITEM)
        assert await site.ending("dynamodb.get_item", key) == "RequestError InternalServerError"
        assert "Item" not in await site.call("dynamodb.get_item", key)
        site.tables.call("DeleteTable", {"TableName": "leases"})
        assert await site.ending("dynamodb.get_item", key) == "MissingError ResourceNotFoundException"


@everywhere
async def test_a_stale_listing_does_not_show_a_split(place: Place) -> None:
    """Its Date is of now: the reply is new, what it says is not."""
    async with place(Fault(kind=Kind.STALE)) as site:
        listing = {"StreamName": "s"}
        first = await site.call("kinesis.list_shards", listing)
        site.world.split("shardId-000000000000")
        site.world.clock.now_s += 60
        stale = await site.call("kinesis.list_shards", listing)
        assert stale["Shards"] == first["Shards"]
        dates = [reply["ResponseMetadata"]["HTTPHeaders"]["date"] for reply in (first, stale)]
        assert dates[0] != dates[1]
        assert len((await site.call("kinesis.list_shards", listing))["Shards"]) == 3


@everywhere
@pytest.mark.parametrize("kind", [Kind.RESET, Kind.TRUNCATED])
async def test_a_subscription_breaks_in_the_middle(place: Place, kind: Kind) -> None:
    """After its first event, with what aiohttp says of a body that ends early."""
    async with place(Fault(kind=kind, operation="SubscribeToShard")) as site:
        events = (await site.call("kinesis.subscribe_to_shard", subscribing(site)))["EventStream"]
        iterator = aiter(events)
        assert len((await anext(iterator))["SubscribeToShardEvent"]["Records"]) == 1
        with pytest.raises(Exception, match="Response payload is not completed") as caught:
            await anext(iterator)
        assert type(caught.value).__name__ == "ClientPayloadError"
        if hasattr(events, "close"):
            events.close()


@everywhere
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault(kind=Kind.ERROR), "RequestError InternalFailure"),
        (Fault(kind=Kind.THROTTLE), "ThrottledError LimitExceededException"),
        (Fault(kind=Kind.LOST_REPLY), CLOSED),
    ],
)
async def test_a_subscription_fails_before_it_begins(place: Place, fault: Fault, expected: str) -> None:
    """There is no stream of events."""
    async with place(fault) as site:
        assert await site.ending("kinesis.subscribe_to_shard", subscribing(site)) == expected


def subscribing(site: Any) -> dict[str, Any]:
    """Put a record and register a consumer; return what SubscribeToShard is asked."""
    site.world.put()
    arn = site.world.call("DescribeStreamSummary", StreamName="s")["StreamDescriptionSummary"]["StreamARN"]
    consumer = site.world.call("RegisterStreamConsumer", StreamARN=arn, ConsumerName="c")["Consumer"]["ConsumerARN"]
    site.world.settle()
    return {
        "ConsumerARN": consumer,
        "ShardId": "shardId-000000000000",
        "StartingPosition": {"Type": "TRIM_HORIZON"},
    }
