"""Which operations there are, what they are called in Python, and which of them can fail in a way of their own.

botocore, which has AWS's models, is imported when an operation is first looked up.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from kcl_py.local.shape import api

SERVICES = ("kinesis", "dynamodb", "s3", "sqs")
PUT_RECORDS, BATCH_WRITE, BATCH_GET = "PutRecords", "BatchWriteItem", "BatchGetItem"
SUBSCRIBE, GET_OBJECT = "SubscribeToShard", "GetObject"
PARTS = frozenset({PUT_RECORDS, BATCH_WRITE, BATCH_GET})
"""Operations that can succeed in part."""
STALE_READS = frozenset(
    {
        "BatchGetItem",
        "DescribeStream",
        "DescribeStreamSummary",
        "DescribeTable",
        "GetItem",
        "ListShards",
        "ListStreams",
        "ListTables",
        "Query",
        "Scan",
    }
)
"""Reads that need not be current; DynamoDB's of items only where they are not consistent; none of S3's since 2020.
Source: the API references."""
_POLLING = frozenset({"GetRecords", "GetShardIterator", "PutRecord", "PutRecords"})
_TABLES = frozenset(
    {"CreateTable", "DeleteTable", "DescribeTable", "DescribeTimeToLive", "ListTables", "UpdateTable"}
    | {"DescribeContinuousBackups", "ListTagsOfResource", "TagResource", "UntagResource"}
    | {"UpdateContinuousBackups", "UpdateTimeToLive"}
)


def names(service: str) -> frozenset[str]:
    """Return AWS's names of all operations of a service."""
    return api(service).operations


@cache
def methods(service: str) -> Mapping[str, str]:
    """Return AWS's name of each operation of a service by that of the client's method."""
    from botocore import xform_name

    return {xform_name(name): name for name in names(service)}


def internal_code(service: str) -> str:
    """Return the code with which a service says that it failed. Source: the common errors of each API reference."""
    return {"dynamodb": "InternalServerError", "s3": "InternalError"}.get(service, "InternalFailure")


def throttling_code(service: str, operation: str) -> str:
    """Return the code with which an operation is refused for its rate. Source: its errors in the API reference."""
    if service in ("s3", "sqs"):
        return "SlowDown" if service == "s3" else "RequestThrottled"
    if service == "kinesis":
        return "ProvisionedThroughputExceededException" if operation in _POLLING else "LimitExceededException"
    return "ThrottlingException" if operation in _TABLES else "ProvisionedThroughputExceededException"


def is_consistent(params: Mapping[str, Any]) -> bool:
    """Return whether a read of DynamoDB asks for what is current."""
    asked = params.get("RequestItems")
    tables = [params, *(asked.values() if isinstance(asked, Mapping) else ())]
    return any(isinstance(table, Mapping) and table.get("ConsistentRead") is True for table in tables)
