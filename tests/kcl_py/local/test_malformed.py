"""Requests that no SDK would send: refused in AWS's terms, never a failure of the server."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kcl_py.local.test_server import JSON, send
from tests.kcl_py.local.world import World, serving

DEPTH = 100_000
NESTED = b'{"a":' * DEPTH + b"1" + b"}" * DEPTH
KINESIS, DYNAMODB = "Kinesis_20131202", "DynamoDB_20120810"
BOTH = pytest.mark.parametrize("target", [f"{KINESIS}.PutRecord", f"{DYNAMODB}.GetItem"])


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A local AWS with the stream ``s`` and the table ``table``."""
    with serving(World()) as url:
        table = {
            "TableName": "table",
            "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}],
            "BillingMode": "PAY_PER_REQUEST",
        }
        assert ask(url, f"{DYNAMODB}.CreateTable", json.dumps(table).encode())[0] == 200
        yield url


def ask(url: str, target: str, body: bytes, **headers: str) -> tuple[int, Any]:
    """Return status and error code (None for an answer)."""
    status, _, answer = send(url, "POST", "/", body, X_Amz_Target=target, Content_Type=JSON, **headers)
    return status, answer.get("__type", "").rpartition("#")[2] or None


@BOTH
@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"hello", b'{"a": nan}', b"\xff\xfe", b"null", b"[]", b"5", b'"text"'),
        b'{"TableName": "\xff", "StreamName": "\xff"}',
        *(NESTED, b"[" * DEPTH, b"[" * DEPTH + b"]" * DEPTH),
        b'{"TableName": "table", "StreamName": "s", "x": ' + NESTED + b"}",
    ],
    ids=lambda body: body[:12].decode("latin-1"),
)
def test_body_that_is_no_json_object_is_a_serialization_exception(url: str, target: str, body: bytes) -> None:
    """Not JSON, not an object, or nested so deep that nobody means it."""
    assert ask(url, target, body) == (400, "SerializationException")


@pytest.mark.parametrize(
    ("target", "params"),
    [
        (f"{KINESIS}.PutRecord", {"StreamName": 5}),
        (f"{KINESIS}.PutRecord", {"StreamName": "s", "PartitionKey": "k", "Data": "no base64!"}),
        (f"{KINESIS}.PutRecords", {"StreamName": "s", "Records": {}}),
        (f"{KINESIS}.PutRecords", {"StreamName": "s", "Records": [5]}),
        (f"{KINESIS}.ListShards", {"StreamName": "s", "MaxResults": "5"}),
        (f"{KINESIS}.ListShards", {"StreamName": "s", "MaxResults": 1.5}),
        (f"{DYNAMODB}.GetItem", {"TableName": 5}),
        (f"{DYNAMODB}.GetItem", {"TableName": "table", "Key": []}),
        (f"{DYNAMODB}.GetItem", {"TableName": "table", "Key": {"k": "plain"}}),
        (f"{DYNAMODB}.GetItem", {"TableName": "table", "Key": {"k": {"S": 5}}}),
        (f"{DYNAMODB}.PutItem", {"TableName": "table", "Item": {"k": {"S": "a"}, "b": {"B": "no base64!"}}}),
        (f"{DYNAMODB}.Scan", {"TableName": "table", "Limit": True}),
        (f"{DYNAMODB}.BatchGetItem", {"RequestItems": {"table": {"Keys": "k"}}}),
    ],
)
def test_value_of_another_type_is_a_serialization_exception(url: str, target: str, params: dict[str, Any]) -> None:
    """AWS reads all of a request before it looks at what is missing."""
    assert ask(url, target, json.dumps(params).encode()) == (400, "SerializationException")


def deep(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"S": "x"}
    for _ in range(levels):
        value = {"L": [value]}
    return value


@pytest.mark.parametrize(
    ("target", "params"),
    [
        (f"{KINESIS}.PutRecord", {"StreamName": "s"}),
        (f"{KINESIS}.PutRecord", {"StreamName": "s", "PartitionKey": None, "Data": ""}),
        (f"{KINESIS}.PutRecord", {"StreamName": "s", "PartitionKey": "", "Data": ""}),
        (f"{KINESIS}.PutRecords", {"StreamName": "s", "Records": []}),
        (f"{KINESIS}.PutRecords", {"StreamName": "s", "Records": [None]}),
        (f"{KINESIS}.CreateStream", {"StreamName": "line\n", "ShardCount": 1}),
        (f"{KINESIS}.SplitShard", {"StreamName": "s", "ShardToSplit": "shardId-0", "NewStartingHashKey": "5\n"}),
        (f"{DYNAMODB}.GetItem", {}),
        (f"{DYNAMODB}.GetItem", {"TableName": "table", "Key": None}),
        (f"{DYNAMODB}.GetItem", {"TableName": "table", "Key": {"k": {}}}),
        (f"{DYNAMODB}.PutItem", {"TableName": "table", "Item": {"k": {"S": "a"}, "deep": deep(200)}}),
        (f"{DYNAMODB}.Scan", {"TableName": "table", "FilterExpression": "a = :missing"}),
        (f"{DYNAMODB}.TransactWriteItems", {"TransactItems": [{}]}),
        (f"{DYNAMODB}.TransactWriteItems", {"TransactItems": [None]}),
        (f"{DYNAMODB}.TransactGetItems", {"TransactItems": [None]}),
        (f"{DYNAMODB}.BatchWriteItem", {"RequestItems": {"table": [{"UnknownRequest": {}}]}}),
        (f"{DYNAMODB}.PutItem", {"TableName": "table", "Item": {"k": {"S": "a"}, "v": {"UNKNOWN": "x"}}}),
        (f"{DYNAMODB}.PutItem", {"TableName": "table", "Item": {"k": {"S": "a"}, "v": None}}),
    ],
)
def test_value_that_is_missing_or_makes_no_sense_is_a_validation_exception(
    url: str, target: str, params: dict[str, Any]
) -> None:
    """At whatever depth."""
    assert ask(url, target, json.dumps(params).encode()) == (400, "ValidationException")


def test_value_nested_as_deep_as_dynamodb_allows_is_taken(url: str) -> None:
    """32 levels."""
    item = {"TableName": "table", "Item": {"k": {"S": "a"}, "deep": deep(31)}}
    assert ask(url, f"{DYNAMODB}.PutItem", json.dumps(item).encode()) == (200, None)


@pytest.mark.parametrize(
    ("target", "params"),
    [
        (f"{KINESIS}.PutRecord", {"StreamName": "s", "PartitionKey": "k", "Data": "", "Unknown": [1]}),
        (f"{DYNAMODB}.PutItem", {"TableName": "table", "Item": {"k": {"S": "a", "Unknown": 1}}, "Unknown": [1]}),
        (
            f"{DYNAMODB}.BatchWriteItem",
            {
                "RequestItems": {
                    "table": [{"PutRequest": {"Item": {"k": {"S": "b"}}, "ConditionExpression": "k = :no"}, "New": 1}]
                }
            },
        ),
    ],
)
def test_member_that_aws_does_not_know_is_passed_over(url: str, target: str, params: dict[str, Any]) -> None:
    """A later SDK may send more."""
    assert ask(url, target, json.dumps(params).encode()) == (200, None)


def test_time_beyond_all_numbers_is_a_time(url: str) -> None:
    """Before every record, or after now."""
    start = {"StreamName": "s", "ShardId": "shardId-000000000000", "ShardIteratorType": "AT_TIMESTAMP"}
    for time_s, answer in ((-1e308, (200, None)), (1e308, (400, "InvalidArgumentException"))):
        body = json.dumps(start | {"Timestamp": time_s}).encode()
        assert ask(url, f"{KINESIS}.GetShardIterator", body) == answer


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
@BOTH
def test_body_that_cannot_be_unpacked_is_a_serialization_exception(url: str, target: str, encoding: str) -> None:
    """It is not what its header says."""
    assert ask(url, target, b"plain", Content_Encoding=encoding) == (400, "SerializationException")


@pytest.mark.parametrize("service", [KINESIS, DYNAMODB])
def test_unknown_operation_is_said_to_be_one(url: str, service: str) -> None:
    """In AWS's terms."""
    assert ask(url, f"{service}.Dance", b"{}") == (400, "UnknownOperationException")


@pytest.mark.parametrize(("operation", "name"), [(f"{KINESIS}.ListStreams", "s"), (f"{DYNAMODB}.ListTables", "table")])
@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "AWS4-HMAC-SHA256 Credential=a/20260101/mars-1/any/aws4_request, Signature=0"},
        {"Authorization": "AWS4-HMAC-SHA256 Credential=a/20260101/eu-west-1/any/aws4_request, Signature=0"},
        {"Authorization": "nonsense"},
        {"Host": "dynamodb.mars-1.amazonaws.com"},
        {"X_Moto_Account_Id": "nobody"},
    ],
    ids=["unknown region", "another region", "nonsense", "host", "account"],
)
def test_all_is_in_one_account_and_region_whatever_a_request_says(
    url: str, operation: str, name: str, headers: dict[str, str]
) -> None:
    """A worker in eu-west-1 finds what a script put there without a thought of regions."""
    status, _, answer = send(url, "POST", "/", b"{}", X_Amz_Target=operation, Content_Type=JSON, **headers)
    assert (status, answer.get("StreamNames", answer.get("TableNames"))) == (200, [name])
