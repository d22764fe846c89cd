"""What DynamoDB must answer about many items and about tables: pages, queries, batches, transactions, settings."""

from typing import Any

from tests.contract.dynamo_steps import BAD, LIST, TREE, Case, Step, n, put, row, s, step

LARGE = "x" * 100_000
"""Of which ten fill a page."""


def leaf(number: int, *, owner: str | None = "w", branch: str = "b", **more: Any) -> Step:
    item = {"b": s(branch), "n": n(number), "fill": s("p")} | ({"owner": s(owner)} if owner else {})
    return put(item, table=TREE, **more)


def query(condition: str, values: dict[str, Any], **more: Any) -> Step:
    asked = {"TableName": TREE, "KeyConditionExpression": condition, "ExpressionAttributeValues": values}
    return step("Query", asked, **more)


def numbers(*found: int) -> dict[str, Any]:
    """Return what a page with these leaves, reduced to their numbers, gives."""
    return {"Count": len(found), "Items": [{"n": n(number)} for number in found]}


def transact(*items: dict[str, Any], **more: Any) -> Step:
    return step("TransactWriteItems", {"TransactItems": [*items]}, **more)


def in_list(kind: str, key: str, **more: Any) -> dict[str, Any]:
    where = {"Item": {"k": s(key)}} if kind == "Put" else {"Key": {"k": s(key)}}
    return {kind: {"TableName": LIST, **where, **more}}


B = {":b": s("b")}
ONLY_N = {"ProjectionExpression": "n"}
TEN = tuple(leaf(number) for number in range(10))

PAGES = (
    Case(
        "a query reads a partition in order, either way",
        (
            *(leaf(number) for number in (10, 2, -1, 1)),
            leaf(5, branch="other"),
            query("b = :b", B, **ONLY_N, gives=numbers(-1, 1, 2, 10), lacks=("LastEvaluatedKey",)),
            query("b = :b", B, **ONLY_N, ScanIndexForward=False, gives=numbers(10, 2, 1, -1)),
        ),
    ),
    Case(
        "a query takes a range",
        (
            *TEN,
            query("b = :b AND n BETWEEN :x AND :y", B | {":x": n(3), ":y": n(5)}, **ONLY_N, gives=numbers(3, 4, 5)),
            query("b = :b AND n > :x", B | {":x": n(7)}, **ONLY_N, gives=numbers(8, 9)),
            query("n <= :x AND b = :b", B | {":x": n(1)}, **ONLY_N, gives=numbers(0, 1)),
        ),
    ),
    Case(
        "a limit counts what is looked at, not what the filter lets through",
        (
            *TEN,
            query(
                "b = :b",
                B | {":p": s("q")},
                FilterExpression="fill = :p",
                Limit=4,
                gives={"Count": 0, "ScannedCount": 4, "LastEvaluatedKey": {"b": s("b"), "n": n(3)}},
            ),
            query(
                "b = :b",
                B,
                **ONLY_N,
                ExclusiveStartKey={"b": s("b"), "n": n(7)},
                gives=numbers(8, 9),
                lacks=("LastEvaluatedKey",),
            ),
            query("b = :b", B, Select="COUNT", gives={"Count": 10, "ScannedCount": 10}, lacks=("Items",)),
        ),
    ),
    Case(
        "a query needs the whole partition key",
        (
            query("n = :x", {":x": n(1)}, code=BAD, says="Query condition missed key schema element: b"),
            query("b > :b", B, code=BAD, says="Query key condition not supported"),
            query(
                "b = :b OR n = :x",
                B | {":x": n(1)},
                code=BAD,
                says="Invalid operator used in KeyConditionExpression: OR",
            ),
            query("b = :x", {":x": n(1)}, code=BAD, says="Condition parameter type does not match schema type"),
        ),
    ),
    Case(
        "a filter does not look at keys",
        (
            query(
                "b = :b",
                B | {":x": n(1)},
                FilterExpression="n = :x",
                code=BAD,
                says="Filter Expression can only contain non-primary key attributes: Primary key attribute: n",
            ),
        ),
    ),
    Case(
        "a page ends at 1 MB",
        (
            *(put({"b": s("b"), "n": n(number), "fill": s(LARGE)}, table=TREE) for number in range(12)),
            query("b = :b", B, **ONLY_N, gives={**numbers(*range(10)), "LastEvaluatedKey": {"b": s("b"), "n": n(9)}}),
        ),
    ),
    Case(
        "an index has the items that have its key, and only what it projects",
        (
            leaf(1),
            leaf(2, owner=None),
            leaf(3, owner="v"),
            step(
                "Query",
                {
                    "TableName": TREE,
                    "IndexName": "owners",
                    "KeyConditionExpression": "#o = :o",
                    "ExpressionAttributeNames": {"#o": "owner"},
                    "ExpressionAttributeValues": {":o": s("w")},
                },
                gives={"Items": [{"b": s("b"), "n": n(1), "owner": s("w")}]},
            ),
            step("Scan", {"TableName": TREE, "IndexName": "owners"}, gives={"Count": 2}),
        ),
    ),
    Case(
        "an index cannot be read consistently",
        (
            step(
                "Scan",
                {"TableName": TREE, "IndexName": "owners", "ConsistentRead": True},
                code=BAD,
                says="Consistent reads are not supported on global secondary indexes",
            ),
            step(
                "Scan",
                {"TableName": TREE, "IndexName": "none"},
                code=BAD,
                says="does not have the specified index: none",
            ),
        ),
    ),
    Case(
        "an index's key has its type",
        (
            put(
                {"b": s("b"), "n": n(1), "owner": n(1)},
                table=TREE,
                code=BAD,
                says="Type mismatch for Index Key owner Expected: S Actual: N IndexName: owners",
            ),
        ),
    ),
    Case(
        "segments are numbered from nought",
        (
            step(
                "Scan",
                {"TableName": LIST, "Segment": 2, "TotalSegments": 2},
                code=BAD,
                says="Segment: 2 is not less than TotalSegments: 2",
            ),
            step("Scan", {"TableName": LIST, "Segment": 0}, code=BAD, says="TotalSegments parameter is required"),
            step("Scan", {"TableName": LIST, "Limit": 0}, code=BAD, says="greater than or equal to 1"),
        ),
    ),
)

BATCHES = (
    Case(
        "a batch puts and deletes",
        (
            put({"k": s("a")}),
            step(
                "BatchWriteItem",
                {
                    "RequestItems": {
                        LIST: [{"PutRequest": {"Item": {"k": s("b")}}}, {"DeleteRequest": {"Key": {"k": s("a")}}}]
                    }
                },
                gives={"UnprocessedItems": {}},
            ),
            step("Scan", {"TableName": LIST}, gives={"Items": [{"k": s("b")}]}),
        ),
    ),
    Case(
        "a batch writes 25 items at most",
        (
            step(
                "BatchWriteItem",
                {"RequestItems": {LIST: [{"PutRequest": {"Item": {"k": s(str(i))}}} for i in range(26)]}},
                code=BAD,
            ),
        ),
    ),
    Case(
        "a batch writes no item twice",
        (
            step(
                "BatchWriteItem",
                {"RequestItems": {LIST: [{"PutRequest": {"Item": {"k": s("a")}}}] * 2}},
                code=BAD,
                says="Provided list of item keys contains duplicates",
            ),
        ),
    ),
    Case(
        "a batch reads 100 items at most, and none twice",
        (
            step(
                "BatchGetItem",
                {"RequestItems": {LIST: {"Keys": [{"k": s(str(i))} for i in range(101)]}}},
                code=BAD,
            ),
            step("BatchGetItem", {"RequestItems": {LIST: {"Keys": [{"k": s("a")}] * 2}}}, code=BAD, says="duplicates"),
            put({"k": s("a")}),
            step(
                "BatchGetItem",
                {"RequestItems": {LIST: {"Keys": [{"k": s("a")}, {"k": s("b")}]}}},
                gives={"Responses": {LIST: [{"k": s("a")}]}, "UnprocessedKeys": {}},
            ),
        ),
    ),
)

CANCELLED = "TransactionCanceledException"
TRANSACTIONS = (
    Case(
        "a transaction does all",
        (
            put({"k": s("a"), "n": n(1)}),
            transact(
                in_list("ConditionCheck", "a", ConditionExpression="attribute_exists(k)"),
                in_list("Put", "b", ConditionExpression="attribute_not_exists(k)"),
            ),
            row({"k": s("a"), "n": n(1)}),
            row({"k": s("b")}, key="b"),
        ),
    ),
    Case(
        "a transaction does nothing if one condition fails, and says which",
        (
            put({"k": s("a"), "n": n(1)}),
            transact(
                in_list("Put", "b"),
                in_list(
                    "Put",
                    "a",
                    ConditionExpression="attribute_not_exists(k)",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                ),
                in_list("ConditionCheck", "c", ConditionExpression="attribute_exists(k)"),
                code=CANCELLED,
                says="for specific reasons [None, ConditionalCheckFailed, ConditionalCheckFailed]",
                gives={
                    "CancellationReasons": [
                        {"Code": "None"},
                        {
                            "Code": "ConditionalCheckFailed",
                            "Message": "The conditional request failed",
                            "Item": {"k": s("a"), "n": n(1)},
                        },
                        {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"},
                    ]
                },
            ),
            row(None, key="b"),
        ),
    ),
    Case(
        "a transaction touches no item twice",
        (
            transact(
                in_list("Put", "a"),
                in_list("Delete", "a"),
                code=BAD,
                says="Transaction request cannot include multiple operations on one item",
            ),
        ),
    ),
    Case(
        "a transaction has 100 items at most",
        (transact(*(in_list("Put", str(i)) for i in range(101)), code=BAD, says="less than or equal to 100"),),
    ),
    Case(
        "a transaction has 4 MB at most",
        (
            transact(
                *({"Put": {"TableName": LIST, "Item": {"k": s(str(i)), "x": s("x" * 399_000)}}} for i in range(11)),
                code=BAD,
            ),
        ),
    ),
    Case(
        "a transaction that comes again by its token is done once",
        (
            *(
                transact(
                    in_list("Update", "a", UpdateExpression="ADD n :v", ExpressionAttributeValues={":v": n(1)}),
                    ClientRequestToken="a-token",
                )
                for _ in range(2)
            ),
            row({"k": s("a"), "n": n(1)}),
            transact(in_list("Put", "a"), ClientRequestToken="a-token", code="IdempotentParameterMismatchException"),
        ),
    ),
)

SETTINGS = (
    Case(
        "a table is there once",
        (
            step(
                "CreateTable",
                {
                    "TableName": LIST,
                    "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
                    "AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}],
                    "BillingMode": "PAY_PER_REQUEST",
                },
                code="ResourceInUseException",
                says="Table already exists",
            ),
        ),
    ),
    Case(
        "a table describes its keys",
        (
            step(
                "DescribeTable",
                {"TableName": LIST},
                gives={
                    "Table": {
                        "TableName": LIST,
                        "TableStatus": "ACTIVE",
                        "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
                        "AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}],
                        "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"},
                        "DeletionProtectionEnabled": False,
                    }
                },
            ),
            step(
                "DescribeTable",
                {"TableName": "no-such-table"},
                code="ResourceNotFoundException",
                says="Requested resource not found: Table: no-such-table not found",
            ),
        ),
    ),
    Case(
        "a protected table stays",
        (
            step("UpdateTable", {"TableName": LIST, "DeletionProtectionEnabled": True}),
            step("DeleteTable", {"TableName": LIST}, code=BAD, says="protected against deletion"),
            step("UpdateTable", {"TableName": LIST, "DeletionProtectionEnabled": False}),
            step("DeleteTable", {"TableName": LIST}),
        ),
    ),
    Case(
        "every key attribute is defined",
        (
            step(
                "CreateTable",
                {
                    "TableName": "new-table",
                    "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
                    "AttributeDefinitions": [{"AttributeName": "x", "AttributeType": "S"}],
                    "BillingMode": "PAY_PER_REQUEST",
                },
                code=BAD,
            ),
        ),
    ),
    Case(
        "expiry is switched on once",
        (
            step(
                "UpdateTimeToLive",
                {"TableName": LIST, "TimeToLiveSpecification": {"AttributeName": "ttl", "Enabled": True}},
            ),
            step(
                "DescribeTimeToLive",
                {"TableName": LIST},
                gives={"TimeToLiveDescription": {"TimeToLiveStatus": "ENABLED", "AttributeName": "ttl"}},
            ),
            step(
                "UpdateTimeToLive",
                {"TableName": LIST, "TimeToLiveSpecification": {"AttributeName": "ttl", "Enabled": True}},
                code=BAD,
                says="TimeToLive is already enabled",
            ),
        ),
    ),
    Case(
        "recovery can be switched on",
        (
            step(
                "UpdateContinuousBackups",
                {"TableName": LIST, "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}},
            ),
            step(
                "DescribeContinuousBackups",
                {"TableName": LIST},
                gives={
                    "ContinuousBackupsDescription": {
                        "PointInTimeRecoveryDescription": {"PointInTimeRecoveryStatus": "ENABLED"}
                    }
                },
            ),
        ),
    ),
    Case(
        "an index can be added to a table that has items",
        (
            put({"k": s("a"), "o": s("w")}),
            step(
                "UpdateTable",
                {
                    "TableName": LIST,
                    "AttributeDefinitions": [
                        {"AttributeName": "k", "AttributeType": "S"},
                        {"AttributeName": "o", "AttributeType": "S"},
                    ],
                    "GlobalSecondaryIndexUpdates": [
                        {
                            "Create": {
                                "IndexName": "later",
                                "KeySchema": [{"AttributeName": "o", "KeyType": "HASH"}],
                                "Projection": {"ProjectionType": "ALL"},
                            }
                        }
                    ],
                },
            ),
            step("Scan", {"TableName": LIST, "IndexName": "later"}, gives={"Items": [{"k": s("a"), "o": s("w")}]}),
        ),
    ),
)

CASES = (*PAGES, *BATCHES, *TRANSACTIONS, *SETTINGS)
