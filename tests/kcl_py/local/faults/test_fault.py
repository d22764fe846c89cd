"""A rule that makes no sense is told of where it is written."""

from typing import Any

import pytest

from kcl_py.errors import ConfigError
from kcl_py.local.faults.fault import Fault, Kind


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"kind": "error"}, "kind: expected a member of Kind, such as Kind.THROTTLE, found 'error'"),
        (
            {"kind": Kind.ERROR, "service": "sns"},
            "service: expected kinesis, dynamodb, s3 or sqs, found 'sns'",
        ),
        (
            {"kind": Kind.ERROR, "service": "kinesis", "operation": "GetRecord"},
            "operation: expected an operation of kinesis, found 'GetRecord'; did you mean GetRecords?",
        ),
        (
            {"kind": Kind.ERROR, "operation": "Nothing"},
            "operation: expected an operation of kinesis, dynamodb, s3 or sqs, found 'Nothing'",
        ),
        (
            {"kind": Kind.PARTIAL, "operation": "GetRecords"},
            "operation: expected BatchGetItem, BatchWriteItem or PutRecords for kind partial, found 'GetRecords'",
        ),
        (
            {"kind": Kind.STALE, "operation": "PutItem"},
            "operation: expected BatchGetItem, DescribeStream, DescribeStreamSummary, DescribeTable, GetItem, "
            "ListShards, ListStreams, ListTables, Query or Scan for kind stale, found 'PutItem'",
        ),
        ({"kind": Kind.STALE, "service": "s3"}, "service: expected kinesis or dynamodb for kind stale, found 's3'"),
        ({"kind": Kind.PARTIAL, "service": "s3"}, "service: expected kinesis or dynamodb for kind partial, found 's3'"),
        ({"kind": Kind.ERROR, "calls": (1, 0)}, "calls: expected numbers of calls from 1 on, found 0"),
        ({"kind": Kind.ERROR, "probability": 1.5}, "probability: expected 0 to 1, found 1.5"),
        ({"kind": Kind.ERROR, "probability": float("nan")}, "probability: expected 0 to 1, found nan"),
        ({"kind": Kind.ERROR, "probability": "1"}, "probability: expected a number from 0 to 1, found '1'"),
        ({"kind": Kind.ERROR, "calls": 3}, "calls: expected numbers of calls, such as (3, 4), found 3"),
        ({"kind": Kind.ERROR, "calls": ["3"]}, "calls: expected numbers of calls, such as (3, 4), found ['3']"),
        ({"kind": Kind.ERROR, "times": 1.5}, "times: expected a whole number, found 1.5"),
        ({"kind": Kind.ERROR, "operation": None}, "operation: expected text, found None"),
        ({"kind": Kind.DELAY, "delay_s": "1"}, "delay_s: expected a number of seconds, found '1'"),
        ({"kind": Kind.ERROR, "times": 0}, "times: expected 1 or more, found 0"),
        (
            {"kind": Kind.ERROR, "code": "no code"},
            "code: expected an error code of AWS's, such as InternalFailure, found 'no code'",
        ),
        (
            {"kind": Kind.THROTTLE, "code": "InternalFailure"},
            "code: expected a throttling code of AWS's, such as ThrottlingException, found 'InternalFailure'",
        ),
        (
            {"kind": Kind.PARTIAL, "operation": "BatchGetItem", "code": "InternalFailure"},
            "code: expected ProvisionedThroughputExceededException or InternalFailure for PutRecords, none for others, "
            "found 'InternalFailure'",
        ),
        (
            {"kind": Kind.HANG, "code": "InternalFailure"},
            "code: expected none for kind hang, found 'InternalFailure'",
        ),
        ({"kind": Kind.DELAY}, "delay_s: expected seconds, at most 3600, for kind delay, found 0"),
        (
            {"kind": Kind.DELAY, "delay_s": float("inf")},
            "delay_s: expected seconds, at most 3600, for kind delay, found inf",
        ),
        ({"kind": Kind.DELAY, "delay_s": -1}, "delay_s: expected seconds, at most 3600, for kind delay, found -1"),
        ({"kind": Kind.HANG, "delay_s": 1}, "delay_s: expected none for kind hang, found 1"),
    ],
)
def test_fault_says_what_is_wrong_with_it(fields: dict[str, Any], expected: str) -> None:
    """One sentence: the field, what was expected, what was found."""
    with pytest.raises(ConfigError) as caught:
        Fault(**fields)
    assert caught.value.faults == (expected,)


def test_fault_says_everything_that_is_wrong_with_it() -> None:
    """So that a file is corrected in one go."""
    with pytest.raises(ConfigError) as caught:
        Fault(kind=Kind.ERROR, probability=2, times=-1, delay_s=1)
    assert [fault.partition(":")[0] for fault in caught.value.faults] == ["probability", "times", "delay_s"]


@pytest.mark.parametrize("kind", Kind)
def test_fault_of_each_kind_reaches_only_what_it_can_happen_to(kind: Kind) -> None:
    """A rule for any operation leaves those alone that its kind does not know."""
    fault = Fault(kind=kind, delay_s=1 if kind is Kind.DELAY else 0)
    assert fault.reaches("kinesis", "PutRecords") is (kind is not Kind.STALE)
    assert fault.reaches("dynamodb", "GetItem") is (kind is not Kind.PARTIAL)
    assert fault.reaches("dynamodb", "PutItem") is (kind not in (Kind.STALE, Kind.PARTIAL))
