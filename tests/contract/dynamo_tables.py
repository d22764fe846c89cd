"""What DynamoDB must answer about batches, transactions and tables."""

from typing import Any

from tests.contract.dynamo_steps import BAD, LIST, Case, Step, n, put, row, s, step


def transact(*items: dict[str, Any], **more: Any) -> Step:
    return step("TransactWriteItems", {"TransactItems": [*items]}, **more)


def in_list(kind: str, key: str, **more: Any) -> dict[str, Any]:
    where = {"Item": {"k": s(key)}} if kind == "Put" else {"Key": {"k": s(key)}}
    return {kind: {"TableName": LIST, **where, **more}}


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

CASES = (*BATCHES, *TRANSACTIONS, *SETTINGS)
