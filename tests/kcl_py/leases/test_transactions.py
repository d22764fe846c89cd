"""Effects on the wire, and what the refusal of a transaction says, for every reason that DynamoDB gives."""

from typing import Any

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    EndpointConnectionError,
    HTTPClientError,
    ReadTimeoutError,
)

from kcl_py.aws import translate
from kcl_py.effects import Put, Update
from kcl_py.errors import ConditionFailedError, EffectsRefusedError, RequestError, ThrottledError
from kcl_py.leases.transactions import judge, wire

EFFECTS = wire(
    [Put("t", {"k": "a"}), Update("u", {"k": "b"}, "SET #n = :v", names={"#n": "n"}, values={":v": 1})], most=9
)
FAILED, CONFLICT, OK = "ConditionalCheckFailed", "TransactionConflict", "None"


def cancelled(*codes: str) -> RequestError:
    """Return the error of a transaction that was cancelled for these reasons."""
    response: Any = {
        "Error": {"Code": "TransactionCanceledException", "Message": f"cancelled [{', '.join(codes)}]"},
        "CancellationReasons": [{"Code": code} for code in codes],
    }
    cause = ClientError(response, "TransactWriteItems")
    error = translate(cause, "TransactWriteItems", "app/shard")
    error.__cause__ = cause
    assert isinstance(error, RequestError)
    return error


def test_effects_are_items_of_a_request() -> None:
    """With DynamoDB's names, and without empty parts, which it refuses."""
    assert EFFECTS == (
        {"Put": {"TableName": "t", "Item": {"k": {"S": "a"}}}},
        {
            "Update": {
                "TableName": "u",
                "Key": {"k": {"S": "b"}},
                "UpdateExpression": "SET #n = :v",
                "ExpressionAttributeNames": {"#n": "n"},
                "ExpressionAttributeValues": {":v": {"N": "1"}},
            }
        },
    )


@pytest.mark.parametrize(
    ("codes", "kind"),
    [
        ((FAILED, OK, OK), ConditionFailedError),
        ((FAILED, FAILED, OK), ConditionFailedError),
        ((OK, FAILED, OK), EffectsRefusedError),
        ((CONFLICT, FAILED, OK), EffectsRefusedError),
        ((OK, CONFLICT, "ValidationError"), EffectsRefusedError),
        ((OK, "ItemCollectionSizeLimitExceeded", OK), EffectsRefusedError),
        ((CONFLICT, OK, OK), ThrottledError),
        ((OK, CONFLICT, OK), ThrottledError),
        ((OK, OK, "ThrottlingError"), ThrottledError),
        ((OK, "ProvisionedThroughputExceeded", OK), ThrottledError),
    ],
)
def test_reasons_tell_whether_lease_effects_or_chance_are_at_fault(codes: tuple[str, ...], kind: type) -> None:
    """The row first; then what lasts; what may pass had no effect, and is tried again."""
    assert type(judge(cancelled(*codes), EFFECTS, with_lease=True)) is kind


def test_without_a_lease_row_the_first_reason_is_that_of_the_first_effect() -> None:
    """As for markers."""
    error = judge(cancelled(FAILED, OK), EFFECTS, with_lease=False)
    assert isinstance(error, EffectsRefusedError)
    assert error.reasons == {0: FAILED}


def test_request_without_an_answer_stays_unknown() -> None:
    """It may have been carried out."""
    error = RequestError("TransactWriteItems", "app/shard", "TimeoutError")
    assert judge(error, EFFECTS, with_lease=True) is error


@pytest.mark.parametrize(
    "cause",
    [
        ConnectionClosedError(endpoint_url="http://127.0.0.1:1"),
        ReadTimeoutError(endpoint_url="http://127.0.0.1:1"),
        HTTPClientError(error="cut off"),
        EndpointConnectionError(endpoint_url="http://127.0.0.1:1"),
        TimeoutError(),
        ValueError("no JSON"),
    ],
    ids=lambda cause: type(cause).__name__,
)
def test_transaction_whose_answer_was_cut_off_stays_unknown(cause: Exception) -> None:
    """Whatever the client raised for it: some of its errors have a ``response``, which is None."""
    error = translate(cause, "TransactWriteItems", "app/shard")
    error.__cause__ = cause
    assert isinstance(error, RequestError)
    assert judge(error, EFFECTS, with_lease=True) is error
    assert judge(error, EFFECTS, with_lease=False) is error


def test_transaction_of_which_dynamodb_names_no_part_names_its_tables() -> None:
    """One of them is missing, or has another key."""
    cause = ClientError({"Error": {"Code": "ResourceNotFoundException", "Message": "not found"}}, "TransactWriteItems")
    error = translate(cause, "TransactWriteItems", "app/shard")
    error.__cause__ = cause
    assert isinstance(error, RequestError)
    found = judge(error, EFFECTS, with_lease=True)
    assert isinstance(found, EffectsRefusedError)
    assert "found ResourceNotFoundException: not found, for one of the tables 't', 'u'; nothing was written" in str(
        found
    )


@pytest.mark.parametrize(
    ("effects", "sentence"),
    [
        ([Put("t", {"k": str(n)}) for n in range(10)], "cannot apply 10 effects: expected 9 at most"),
        (
            [Put("t", {"k": "a"}), Put("t", {"k": object()})],
            "cannot apply effect 1: expected .*, found Put: cannot store",
        ),
        ([Put("t", {"k": {1, "a"}})], "cannot apply effect 0"),
        ([{"Put": {}}], "cannot apply effect 0: expected a Put, Update, Delete or ConditionCheck .*, found dict"),
    ],
)
def test_effects_that_cannot_be_sent_are_refused_before(effects: Any, sentence: str) -> None:
    """In the call that gives them."""
    with pytest.raises(EffectsRefusedError, match=sentence):
        wire(effects, most=9)
