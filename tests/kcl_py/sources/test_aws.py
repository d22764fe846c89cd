"""How AWS's errors become ours: a table, and what must never be said."""

import pickle
from datetime import UTC, datetime
from errno import ECONNREFUSED
from socket import EAI_AGAIN, EAI_NONAME, gaierror
from ssl import SSLError
from typing import Any

import anyio
import pytest
from aiohttp import ClientConnectorDNSError, ClientConnectorError
from aiohttp.client_reqrep import ConnectionKey
from botocore import exceptions as boto

from actors.testing import ManualClock
from kcl_py.aws import request, translate
from kcl_py.errors import (
    ConditionFailedError,
    CredentialsError,
    EndpointError,
    IteratorExpiredError,
    KclError,
    LeaseLostError,
    MissingError,
    RejectedError,
    RequestError,
    ThrottledError,
)

URL = "http://user:hidden-secret@localhost:1/path?key=hidden-secret"


def a_service_error(code: str, message: str = "said AWS", **more: Any) -> boto.ClientError:
    """Return what botocore raises for an error reply."""
    response: Any = {"Error": {"Code": code, "Message": message}, **more}
    return boto.ClientError(response, "GetRecords")


def a_cancelled_transaction(*codes: str) -> boto.ClientError:
    """Return what DynamoDB says of a transaction with these reasons, one for each item."""
    return a_service_error("TransactionCanceledException", CancellationReasons=[{"Code": code} for code in codes])


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (a_service_error("ProvisionedThroughputExceededException"), ThrottledError),
        (a_service_error("ThrottlingException"), ThrottledError),
        (a_service_error("LimitExceededException"), ThrottledError),
        (a_service_error("RequestLimitExceeded"), ThrottledError),
        (a_service_error("KMSThrottlingException"), ThrottledError),
        (a_service_error("SlowDown"), ThrottledError),
        (a_service_error("ExpiredIteratorException"), IteratorExpiredError),
        (a_service_error("ResourceNotFoundException"), MissingError),
        (a_service_error("ConditionalCheckFailedException"), ConditionFailedError),
        (a_cancelled_transaction("None", "ConditionalCheckFailed"), ConditionFailedError),
        (a_cancelled_transaction("ThrottlingError", "ConditionalCheckFailed"), ConditionFailedError),
        (a_cancelled_transaction("None", "ThrottlingError"), ThrottledError),
        (a_cancelled_transaction("None", "ProvisionedThroughputExceeded"), ThrottledError),
        (a_cancelled_transaction("None", "TransactionConflict"), RequestError),
        (
            a_service_error("TransactionCanceledException", "reasons [None, ConditionalCheckFailed]"),
            ConditionFailedError,
        ),
        (a_service_error("ValidationException"), RejectedError),
        (a_service_error("InvalidArgumentException"), RejectedError),
        (a_service_error("AccessDeniedException"), RejectedError),
        (a_service_error("InternalFailure"), RequestError),
        (a_service_error("ExpiredNextTokenException"), RequestError),
        (boto.ParamValidationError(report="value: hidden-secret"), RejectedError),
        (boto.ReadTimeoutError(endpoint_url=URL, error=None), RequestError),
        (boto.ConnectionClosedError(endpoint_url=URL, error=None), RequestError),
        (TimeoutError(), RequestError),
        (ValueError("hidden-secret"), RequestError),
    ],
    ids=str,
)
def test_translate_gives_each_error_its_class(error: Exception, expected: type[RequestError]) -> None:
    """The class decides what the reader or lease does next; it is exactly the expected one."""
    fault = translate(error, "GetRecords", "orders/shardId-0")
    assert type(fault) is expected
    assert str(fault).startswith("cannot GetRecords on 'orders/shardId-0': ")
    assert "hidden-secret" not in str(fault)


@pytest.mark.parametrize(
    "error",
    [
        a_service_error("UnrecognizedClientException"),
        a_service_error("ExpiredTokenException"),
        a_service_error("InvalidSignatureException", "Canonical String: x-amz-security-token:hidden-secret"),
        a_service_error("IncompleteSignatureException", "'hidden-secret' not a valid key=value pair"),
        boto.NoCredentialsError(),
        boto.PartialCredentialsError(provider="env", cred_var="aws_secret_access_key"),
        boto.CredentialRetrievalError(provider="custom-process", error_msg="hidden-secret"),
        boto.ProfileNotFound(profile="other"),
        boto.NoRegionError(),
        boto.InvalidRegionError(region_name="not a region"),
    ],
    ids=str,
)
def test_translate_knows_missing_or_refused_credentials_without_telling_them(error: Exception) -> None:
    """At the start it is a set-up error, in a running worker a request to be repeated; secrets stay out of it."""
    fault = translate(error, "GetRecords", "orders")
    assert isinstance(fault, CredentialsError)
    assert isinstance(fault, RequestError)
    assert fault.retryable
    assert "hidden-secret" not in str(fault)


@pytest.mark.parametrize(
    "error",
    [
        boto.EndpointConnectionError(endpoint_url=URL, error=OSError("hidden-secret")),
        boto.ConnectTimeoutError(endpoint_url=URL, error=None),
        boto.SSLError(endpoint_url=URL, error=OSError()),
        boto.ProxyConnectionError(proxy_url=URL, error=OSError()),
    ],
    ids=lambda error: type(error).__name__,
)
def test_translate_says_where_no_connection_could_be_made(error: Exception) -> None:
    """Host and port are named, user and password are not."""
    fault = translate(error, "GetRecords", "orders")
    assert isinstance(fault, EndpointError)
    assert isinstance(fault, RequestError)
    assert fault.retryable
    assert "cannot connect to http://localhost:1" in str(fault)
    assert "hidden-secret" not in str(fault)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (gaierror(EAI_NONAME, "Name or service not known"), "(no such host)"),
        (gaierror(EAI_AGAIN, "Temporary failure in name resolution"), "(its name cannot be looked up now)"),
        (ConnectionRefusedError(ECONNREFUSED, "Connect call failed"), "(connection refused)"),
        (SSLError(1, "wrong version number"), "(ClientConnectorError)"),
    ],
    ids=["unknown", "for now", "refused", "no TLS"],
)
def test_translate_says_in_plain_words_why_there_is_no_connection(fault: OSError, said: str) -> None:
    """As the client library hands them over."""
    key = ConnectionKey("localhost", 1, is_ssl=False, ssl=True, proxy=None, proxy_auth=None, proxy_headers_hash=None)
    kind = ClientConnectorDNSError if isinstance(fault, gaierror) else ClientConnectorError
    error = boto.EndpointConnectionError(endpoint_url=URL, error=kind(key, fault))
    assert str(translate(error, "GetRecords", "orders")).endswith(f"cannot connect to http://localhost:1 {said}")


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (boto.ProfileNotFound(profile="nope"), "correct aws.profile or AWS_PROFILE"),
        (boto.PartialCredentialsError(provider="env", cred_var="AWS_SECRET_ACCESS_KEY"), "set both AWS_ACCESS_KEY_ID"),
        (boto.NoCredentialsError(), "set aws.profile"),
        (boto.InvalidRegionError(region_name="not a region"), "correct aws.region or AWS_DEFAULT_REGION"),
        (boto.ConfigParseError(path="config"), "check aws.profile"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_translate_says_what_to_do_about_credentials(error: Exception, remedy: str) -> None:
    """Whatever is missing."""
    assert f"; {remedy}" in str(translate(error, "connect", "kinesis"))


def test_translate_leaves_out_the_values_that_validation_quotes() -> None:
    """A partition key or payload that AWS quotes back is record data."""
    message = "1 validation error detected: Value 'a private\nkey' at 'partitionKey' failed to satisfy constraint"
    text = str(translate(a_service_error("ValidationException", message), "PutRecords", "orders"))
    assert "private" not in text
    assert text.endswith("value at 'partitionKey' failed to satisfy constraint")


def test_translate_returns_our_own_errors_as_they_are() -> None:
    """Translating twice changes nothing."""
    own = LeaseLostError("gone")
    assert translate(own, "GetRecords", "orders") is own


def test_translated_errors_pickle() -> None:
    """Errors cross processes: Spark's workers are some."""
    for error in (
        a_service_error("ThrottlingException"),
        boto.NoRegionError(),
        boto.SSLError(endpoint_url=URL, error=OSError()),
    ):
        fault = translate(error, "GetRecords", "orders")
        copy = pickle.loads(pickle.dumps(fault))
        assert (type(copy), str(copy)) == (type(fault), str(fault))


@pytest.mark.asyncio
async def test_request_ends_at_its_deadline_with_an_unknown_outcome() -> None:
    """What hangs becomes a plain RequestError; nothing waits for ever."""
    with (
        pytest.raises(RequestError, match="no reply before the deadline"),
        request("GetRecords", "orders", deadline_s=0.01),
    ):
        await anyio.sleep_forever()


@pytest.mark.asyncio
async def test_request_ends_at_its_deadline_of_the_clock_that_tests_move() -> None:
    """So a request that hangs takes no real time in a test, and none before its time has come."""
    clock, ended = ManualClock(), list[KclError]()

    async def hang() -> None:
        try:
            with request("GetRecords", "orders", deadline_s=20, clock=clock):
                await anyio.sleep_forever()
        except KclError as error:
            ended.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hang)
        await clock.advance(19.9)
        assert ended == []
        await clock.advance(0.1)
    assert [type(error) for error in ended] == [RequestError]


@pytest.mark.asyncio
async def test_request_lets_cancellation_through() -> None:
    """A cancelled caller is not told of a failed request."""
    faults: list[KclError] = []
    with anyio.move_on_after(0.01) as scope:
        try:
            with request("GetRecords", "orders", deadline_s=60):
                await anyio.sleep_forever()
        except KclError as fault:
            faults.append(fault)
    assert scope.cancelled_caught
    assert faults == []


def test_a_refusal_without_a_date_that_can_be_read_blames_no_clock() -> None:
    """A proxy can have written anything."""
    for date in ("tomorrow", "", "Sat, 99 Nov 2026 12:00:00 GMT", "Sat, 28 Nov 2026 12:00:00 +" + "9" * 30):
        error = a_service_error("SignatureDoesNotMatch", ResponseMetadata={"HTTPHeaders": {"date": date}})
        assert "AWS does not accept the credentials" in str(translate(error, "GetRecords", "orders", now_s=1.0))


@pytest.mark.parametrize(("ahead_s", "is_blamed"), [(-3600, True), (600, True), (60, False)])
def test_a_signature_that_a_wrong_clock_made_is_told_with_both_times(ahead_s: float, is_blamed: bool) -> None:
    """Whoever looks for wrong credentials at night looks in the wrong place."""
    answered = {"HTTPHeaders": {"date": "Sat, 28 Nov 2026 12:00:00 GMT"}}
    error = a_service_error("InvalidSignatureException", "Signature expired: hidden-secret", ResponseMetadata=answered)
    found = translate(error, "GetRecords", "orders", now_s=1_795_867_200 + ahead_s)
    assert isinstance(found, CredentialsError)
    assert "hidden-secret" not in str(found)
    assert ("AWS says 2026-11-28 12:00:00+00:00; set it right" in str(found)) is is_blamed
    if is_blamed:
        local = datetime.fromtimestamp(1_795_867_200 + ahead_s, UTC)
        assert f"this machine's clock is wrong: it says {local}," in str(found)
