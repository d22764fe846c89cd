"""What no request asks for: tables in the making, late indexes, stale reads, expiry, throttles, lost items."""

from random import Random
from typing import Any

import pytest
from botocore.exceptions import ClientError

from kcl_py.local.dynamo.behaviour import Behaviour
from kcl_py.local.dynamo.client import DynamoDBClient
from kcl_py.local.dynamo.model import DynamoDB
from kcl_py.local.errors import ModelError
from tests.clocks import PromptClock

OWNERS = {
    "IndexName": "owners",
    "KeySchema": [{"AttributeName": "o", "KeyType": "HASH"}, {"AttributeName": "k", "KeyType": "RANGE"}],
    "Projection": {"ProjectionType": "KEYS_ONLY"},
}


class Tables:
    """A DynamoDB with one table ``leases``, indexed by ``o``."""

    def __init__(self, *, provisioned: int | None = None, **behaviour: Any) -> None:
        self.clock = PromptClock()
        self.model = DynamoDB(Behaviour(self.clock, random=Random(7), **behaviour))
        billing: dict[str, Any] = {"BillingMode": "PAY_PER_REQUEST"}
        if provisioned is not None:
            billing = {"ProvisionedThroughput": {"ReadCapacityUnits": provisioned, "WriteCapacityUnits": provisioned}}
        self.call(
            "CreateTable",
            KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("k", "o")],
            GlobalSecondaryIndexes=[OWNERS | {name: one for name, one in billing.items() if name != "BillingMode"}],
            **billing,
        )

    def call(self, operation: str, **params: Any) -> dict[str, Any]:
        return self.model.call(operation, {"TableName": "leases", **params})

    def put(self, key: str, **more: Any) -> dict[str, Any]:
        item = {"k": {"S": key}} | {name: {"S": str(value)} for name, value in more.items()}
        return self.call("PutItem", Item=item)

    def value(self, key: str, *, consistent: bool) -> str | None:
        item = self.call("GetItem", Key={"k": {"S": key}}, ConsistentRead=consistent).get("Item")
        return None if item is None else item["v"]["S"]

    def owned(self, owner: str) -> list[str]:
        values = {":o": {"S": owner}}
        condition = {"KeyConditionExpression": "o = :o", "ExpressionAttributeValues": values}
        return [item["k"]["S"] for item in self.call("Query", IndexName="owners", **condition)["Items"]]

    def status(self) -> str:
        status: str = self.call("DescribeTable")["Table"]["TableStatus"]
        return status


def test_table_is_creating_then_active_then_deleting_then_gone() -> None:
    """And has no items while it is made or goes."""
    tables = Tables(delay_s=2)
    assert tables.status() == "CREATING"
    with pytest.raises(ModelError, match="ResourceNotFoundException"):
        tables.put("a")
    with pytest.raises(ModelError, match="Table is being created"):
        tables.call("DeleteTable")
    tables.clock.now_s += 2
    assert tables.status() == "ACTIVE"
    tables.put("a")
    tables.call("DeleteTable")
    assert tables.status() == "DELETING"
    tables.clock.now_s += 2
    assert tables.model.call("ListTables", {}) == {"TableNames": []}


def test_new_index_is_backfilled_before_it_can_be_read() -> None:
    """As the Java client adds its index to a table that has leases."""
    tables = Tables(delay_s=2)
    tables.clock.now_s += 2
    tables.put("a", p="x")
    create = OWNERS | {"IndexName": "later", "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}]}
    tables.call(
        "UpdateTable",
        AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
        GlobalSecondaryIndexUpdates=[{"Create": create}],
    )
    assert tables.status() == "UPDATING"
    with pytest.raises(ModelError, match="Cannot read from backfilling"):
        tables.call("Scan", IndexName="later")
    tables.clock.now_s += 2
    assert tables.call("Scan", IndexName="later")["Count"] == 1


def test_index_follows_its_table_late_and_in_order() -> None:
    """An owner that changed is seen under the old name for a while, never under both."""
    tables = Tables(index_lag_s=1)
    tables.put("a", o="w1")
    tables.clock.now_s += 1
    assert tables.owned("w1") == ["a"]
    tables.put("a", o="w2")
    assert (tables.owned("w1"), tables.owned("w2")) == (["a"], [])
    tables.call("DeleteItem", Key={"k": {"S": "a"}})
    tables.clock.now_s += 1
    assert (tables.owned("w1"), tables.owned("w2")) == ([], [])


def test_reads_that_are_not_consistent_may_be_behind() -> None:
    """Sometimes old, sometimes not; consistent ones never, and after a while none."""
    tables = Tables(stale_s=1)
    tables.put("a", v=1)
    tables.clock.now_s += 1
    tables.put("a", v=2)
    assert {tables.value("a", consistent=False) for _ in range(20)} == {"1", "2"}
    assert {tables.value("a", consistent=True) for _ in range(20)} == {"2"}
    tables.clock.now_s += 1
    assert {tables.value("a", consistent=False) for _ in range(20)} == {"2"}


def test_expired_items_are_read_until_they_are_swept() -> None:
    """Items that never expire, or will, or did so years ago, stay."""
    tables = Tables(ttl_sweep_s=60)
    now = int(tables.clock.now_s)
    for key, ttl in (("past", now - 1), ("future", now + 1000), ("ancient", now - 6 * 365 * 86400)):
        tables.call("PutItem", Item={"k": {"S": key}, "ttl": {"N": str(ttl)}})
    tables.call("PutItem", Item={"k": {"S": "text"}, "ttl": {"S": "1"}})
    tables.call("UpdateTimeToLive", TimeToLiveSpecification={"Enabled": True, "AttributeName": "ttl"})
    assert tables.call("Scan")["Count"] == 4
    tables.clock.now_s += 60
    assert sorted(item["k"]["S"] for item in tables.call("Scan")["Items"]) == ["ancient", "future", "text"]


def test_provisioned_table_refuses_what_is_above_its_capacity() -> None:
    """A second's worth at the start; what is not used is kept."""
    tables = Tables(provisioned=2, throttles=True)
    tables.put("a")
    tables.put("b")
    with pytest.raises(ModelError, match=r"ProvisionedThroughputExceededException: The level of configured"):
        tables.put("c")
    with pytest.raises(ModelError) as caught:
        tables.model.call(
            "TransactWriteItems", {"TransactItems": [{"Put": {"TableName": "leases", "Item": {"k": {"S": "c"}}}}]}
        )
    assert "[ProvisionedThroughputExceeded]" in caught.value.message
    tables.clock.now_s += 5
    for number in range(10):
        tables.put(f"d{number}")
    with pytest.raises(ModelError, match="ProvisionedThroughputExceededException"):
        tables.put("e")


def test_on_demand_table_throttles_only_far_above() -> None:
    """At 4,000 writes in one second, in its own words."""
    tables = Tables(throttles=True)
    for number in range(4_000):
        tables.put(f"k{number % 10}")
    with pytest.raises(ModelError, match="ThrottlingException: Throughput exceeds"):
        tables.put("a")
    tables.clock.now_s += 1
    tables.put("a")


def test_capacity_is_counted_by_size_and_consistency() -> None:
    """4 KB a read unit, half if it may be stale; 1 KB a write unit, of the larger of old and new."""
    tables = Tables()
    tables.call("PutItem", Item={"k": {"S": "a"}, "v": {"S": "x" * 5000}})
    for consistent, units in ((True, 2.0), (False, 1.0)):
        asked = {"ConsistentRead": consistent, "ReturnConsumedCapacity": "TOTAL"}
        reply = tables.call("GetItem", Key={"k": {"S": "a"}}, **asked)
        assert reply["ConsumedCapacity"] == {"TableName": "leases", "CapacityUnits": units}
    reply = tables.call("PutItem", Item={"k": {"S": "a"}}, ReturnConsumedCapacity="TOTAL")
    assert reply["ConsumedCapacity"]["CapacityUnits"] == 5.0
    assert tables.model.table("leases").capacity.writes.taken == 10.0


def test_batch_leaves_items_unprocessed_and_is_done_when_they_are_sent_again() -> None:
    """The loop that every writer of batches needs."""
    tables = Tables(unprocessed=0.5)
    left: dict[str, Any] = {"leases": [{"PutRequest": {"Item": {"k": {"S": str(n)}}}} for n in range(25)]}
    rounds = 0
    while left:
        left = tables.model.call("BatchWriteItem", {"RequestItems": left})["UnprocessedItems"]
        rounds += 1
    assert rounds > 1
    assert tables.call("Scan")["Count"] == 25


def test_segments_of_a_scan_share_the_items_out() -> None:
    """Each item once, page by page, whatever the number of segments."""
    tables = Tables()
    keys = {f"shardId-{number:012d}" for number in range(100)}
    for key in sorted(keys):
        tables.put(key)
    found: list[str] = []
    for segment in range(7):
        start: dict[str, Any] = {}
        while True:
            page = tables.call("Scan", Segment=segment, TotalSegments=7, Limit=4, **start)
            found += [item["k"]["S"] for item in page["Items"]]
            if "LastEvaluatedKey" not in page:
                break
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
    assert sorted(found) == sorted(keys)


def test_settings_of_a_table_are_kept() -> None:
    """Tags, a key of KMS, recovery and protection, as they were asked for."""
    tables = Tables()
    arn = tables.call("DescribeTable")["Table"]["TableArn"]
    tables.model.call("TagResource", {"ResourceArn": arn, "Tags": [{"Key": "team", "Value": "a"}]})
    assert tables.model.call("ListTagsOfResource", {"ResourceArn": arn}) == {"Tags": [{"Key": "team", "Value": "a"}]}
    tables.model.call("UntagResource", {"ResourceArn": arn, "TagKeys": ["team"]})
    assert tables.model.call("ListTagsOfResource", {"ResourceArn": arn}) == {"Tags": []}
    tables.call("UpdateTable", SSESpecification={"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": "alias/k"})
    assert tables.call("DescribeTable")["Table"]["SSEDescription"]["KMSMasterKeyArn"] == "alias/k"


@pytest.mark.asyncio
async def test_client_raises_boto_errors_and_gives_answers_of_its_own() -> None:
    """What a caller does to an answer does nothing to the table."""
    tables = Tables()
    client = DynamoDBClient(tables.model, tables.clock)
    tables.put("a", v=1)
    answer = await client.get_item(TableName="leases", Key={"k": {"S": "a"}})
    answer["Item"]["v"]["S"] = "changed"
    assert tables.value("a", consistent=True) == "1"
    asked = {"ConditionExpression": "attribute_not_exists(k)", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    with pytest.raises(ClientError) as caught:
        await client.put_item(TableName="leases", Item={"k": {"S": "a"}}, **asked)
    response: Any = caught.value.response
    assert response["Error"] == {
        "Code": "ConditionalCheckFailedException",
        "Message": "The conditional request failed",
    }
    assert response["Item"] == {"k": {"S": "a"}, "v": {"S": "1"}}


def test_same_seed_gives_the_same_answers() -> None:
    """Nothing is taken from the machine's clock or chance."""

    def run() -> list[Any]:
        tables = Tables(stale_s=1, index_lag_s=1, unprocessed=0.3)
        seen: list[Any] = [tables.call("DescribeTable")]
        for number in range(30):
            tables.put(f"k{number % 3}", v=number, o=f"w{number % 2}")
            tables.clock.now_s += 0.1
            seen += [tables.call("Scan"), tables.owned("w1")]
        return seen

    assert run() == run()


@pytest.mark.parametrize(
    ("operation", "wish", "what"),
    [
        ("CreateTable", {"StreamSpecification": {"StreamEnabled": True}}, "streams"),
        ("UpdateTable", {"StreamSpecification": {"StreamEnabled": True}}, "streams"),
        ("UpdateTable", {"ReplicaUpdates": [{"Create": {"RegionName": "eu-west-1"}}]}, "replicas"),
        ("CreateTable", {"LocalSecondaryIndexes": [OWNERS]}, "local secondary indexes"),
        ("CreateTable", {"ResourcePolicy": "{}"}, "resource policies"),
    ],
)
def test_table_that_shall_have_what_is_not_there_is_refused(operation: str, wish: dict[str, Any], what: str) -> None:
    """When it is made and when it is changed: who was told yes would wait for it."""
    tables = Tables()
    made: dict[str, Any] = {
        "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
        "TableName": "more",
    }
    with pytest.raises(ModelError, match=f"The local DynamoDB has no {what}"):
        tables.call(operation, **(made if operation == "CreateTable" else {}), **wish)
    assert tables.call("CreateTable", **made, StreamSpecification={"StreamEnabled": False})
