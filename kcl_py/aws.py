"""AWS's errors as ours, in one place: nothing above this module sees a class of botocore or aiohttp.

Error texts never hold secrets or record data: what AWS says about a signature and the values that it quotes back are
left out. botocore is imported only when there is something to translate. Durations are seconds.
"""

import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from actors.clock import Clock, move_on_after
from kcl_py.errors import (
    ConditionFailedError,
    CredentialsError,
    EndpointError,
    IteratorExpiredError,
    KclError,
    MissingError,
    RejectedError,
    RequestError,
    ThrottledError,
)

if TYPE_CHECKING:
    from botocore.exceptions import ClientError

THROTTLES = frozenset(
    {
        "BandwidthLimitExceeded",
        "KMS.ThrottlingException",
        "KMSThrottlingException",
        "LimitExceededException",
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "Throttling",
        "ThrottledException",
        "ThrottlingError",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
"""Source: botocore's retry table (data/_retry.json), the KMS, Kinesis and SQS API references, DynamoDB's
transactions."""

REFUSED_CREDENTIALS = frozenset(
    {
        "AuthFailure",
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "IncompleteSignatureException",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "RequestExpired",
        "RequestTimeTooSkewed",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
"""Source: the common errors of AWS's API references."""

REJECTED = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AllAccessDisabled",
        "InvalidArgumentException",
        "InvalidBucketState",
        "InvalidMessageContents",
        "InvalidParameterValue",
        "InvalidRequest",
        "KMS.AccessDeniedException",
        "KMS.DisabledException",
        "KMS.InvalidKeyUsageException",
        "KMS.InvalidStateException",
        "KMS.NotFoundException",
        "KMS.OptInRequired",
        "KMSAccessDeniedException",
        "KMSDisabledException",
        "KMSInvalidStateException",
        "KMSNotFoundException",
        "KMSOptInRequired",
        "MethodNotAllowed",
        "NotAuthorized",
        "SerializationException",
        "UnknownOperationException",
        "ValidationError",
        "ValidationException",
    }
)
"""Source: the API references of Kinesis, DynamoDB, SQS and S3."""

MISSING = frozenset(
    {"AWS.SimpleQueueService.NonExistentQueue", "NoSuchBucket", "QueueDoesNotExist", "ResourceNotFoundException"}
)
"""Source: the same."""

BY_CODE: dict[str, type[RequestError]] = {
    **dict.fromkeys(THROTTLES, ThrottledError),
    **dict.fromkeys(REJECTED, RejectedError),
    **dict.fromkeys(MISSING, MissingError),
    "ConditionalCheckFailedException": ConditionFailedError,
    "ExpiredIteratorException": IteratorExpiredError,
}

SIGNED_FOR_S = 300
"""How far the clock of who signs may be off. Source: the Signature Version 4 guide, 5 minutes for most services."""
_NO_SUCH_HOST = frozenset({socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)})
"""Of ``getaddrinfo``; its other errors may pass. Source: RFC 3493; glibc has the second one, too."""
DETAIL_CHARS = 300
"""How much of AWS's sentence is kept."""


class UnreachableError(RequestError, EndpointError):
    """No connection: at the start a set-up error, later a request that failed and may be repeated."""


class RefusedError(RequestError, CredentialsError):
    """No usable credentials or region: at the start a set-up error, later a request that may be repeated."""


@contextmanager
def request(operation: str, target: str, *, deadline_s: float, clock: Clock | None = None) -> Iterator[None]:
    """Run one AWS request under a total deadline, by ``clock`` if it can tell, raising only errors of ours.

    Whatever the deadline cuts off has an unknown outcome: a plain ``RequestError``. Cancellation passes through.
    """
    try:
        with move_on_after(clock, deadline_s) as limit:
            yield
        if limit.cancelled_caught:
            raise TimeoutError
    except Exception as error:
        raise translate(error, operation, target, now_s=None if clock is None else clock.time()) from error


def translate(error: BaseException, operation: str, target: str, *, now_s: float | None = None) -> KclError:
    """Return our error for one that AWS's client library raised; one of ours comes back as it is.

    Always a ``RequestError``, so that a loop that repeats requests catches one class. No connection is an
    ``EndpointError`` too, and missing or refused credentials (or region) are a ``CredentialsError`` too.

    Args:
        error: what was raised.
        operation: the API operation, such as ``GetRecords``.
        target: what it was about: a stream, shard, table or lease key.
        now_s: Unix time by this machine's clock; without it nothing is said of a clock that is wrong.
    """
    from botocore import exceptions as boto

    match error:
        case KclError():
            return error
        case boto.ClientError():
            return _service_error(error, operation, target, now_s)
        case TimeoutError():
            return RequestError(operation, target, "TimeoutError", "no reply before the deadline")
        case boto.ConnectionError():
            return UnreachableError(operation, target, type(error).__name__, _unreachable(error))
        case boto.ParamValidationError():
            return RejectedError(operation, target, "ParamValidationError", "the request has not the API's shape")
    if isinstance(error, _credential_errors()):
        return RefusedError(operation, target, type(error).__name__, _no_credentials(error))
    return RequestError(operation, target, type(error).__name__)


def origin(url: str) -> str:
    """Return scheme, host and port of ``url``: what may be shown, as a URL can hold a password."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _service_error(error: "ClientError", operation: str, target: str, now_s: float | None) -> RequestError:
    found = error.response.get("Error", {})
    code, detail = str(found.get("Code", "Unknown")), _clean(str(found.get("Message") or ""))
    if code in REFUSED_CREDENTIALS:
        return RefusedError(operation, target, code, _refusal(error, now_s))
    if error.operation_name.startswith("AssumeRole") and code in REJECTED:
        return RefusedError(operation, target, code, f"the role cannot be assumed: {detail}")
    if code == "TransactionCanceledException":
        return _cancelled(error.response, detail)(operation, target, code, detail)
    return BY_CODE.get(code, RequestError)(operation, target, code, detail)


def _refusal(error: "ClientError", now_s: float | None) -> str:
    """Why a signature is not accepted; what AWS says of it can hold secrets."""
    server_s = server_time_s(error.response)
    if now_s is None or server_s is None or abs(server_s - now_s) < SIGNED_FOR_S:
        return "AWS does not accept the credentials or their signature"
    local, server = (
        datetime.fromtimestamp(at_s, UTC).isoformat(sep=" ", timespec="seconds") for at_s in (now_s, server_s)
    )
    return f"this machine's clock is wrong: it says {local}, AWS says {server}; set it right"


def server_time_s(response: Any) -> float | None:
    """Return AWS's Unix time by a reply's Date header; None where there is none that can be read."""
    date = response.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date")
    try:
        return parsedate_to_datetime(date).timestamp() if date else None
    except (ValueError, OverflowError):  # whoever is in between has written something else
        return None


def _cancelled(response: Any, detail: str) -> type[RequestError]:
    """Class of a cancelled transaction; a failed condition outweighs the other reasons."""
    reasons = [str(reason.get("Code")) for reason in response.get("CancellationReasons") or ()]
    if "ConditionalCheckFailed" in reasons or "ConditionalCheckFailed" in detail:
        return ConditionFailedError
    return next((BY_CODE[reason] for reason in reasons if reason in BY_CODE), RequestError)


def _clean(message: str) -> str:
    """AWS's sentence on one line, without the values that validation quotes back (keys, payloads, iterators)."""
    quoted = re.sub(r"[Vv]alue '.*?' at ", "value at ", message, flags=re.DOTALL)
    return " ".join(quoted.split())[:DETAIL_CHARS]


def _unreachable(error: Any) -> str:
    cause = error.kwargs.get("error")
    place = origin(str(error.kwargs.get("endpoint_url") or error.kwargs.get("proxy_url") or ""))
    return f"cannot connect to {place}" + (f" ({_reason(cause)})" if cause is not None else "")


def _reason(cause: object) -> str:
    """Why there is no connection, in the words of the system where it has some."""
    from ssl import SSLError  # its numbers are not the system's

    reason = getattr(cause, "os_error", cause)  # aiohttp's errors carry the one that they stand for
    if isinstance(reason, socket.gaierror):
        return "no such host" if reason.errno in _NO_SUCH_HOST else "its name cannot be looked up now"
    if isinstance(reason, OSError) and not isinstance(reason, SSLError) and reason.errno is not None:
        return os.strerror(reason.errno).lower()
    return type(cause).__name__


def _credential_errors() -> tuple[type[Exception], ...]:
    from botocore import exceptions as boto

    return (
        boto.NoCredentialsError,
        boto.PartialCredentialsError,
        boto.CredentialRetrievalError,
        boto.TokenRetrievalError,
        boto.NoAuthTokenError,
        boto.MetadataRetrievalError,
        boto.SSOError,
        boto.ProfileNotFound,
        boto.ConfigNotFound,
        boto.ConfigParseError,
        boto.InvalidConfigError,
        boto.RefreshWithMFAUnsupportedError,
        boto.UnknownCredentialError,
        boto.NoRegionError,
        boto.InvalidRegionError,
    )


def _no_credentials(error: BaseException) -> str:
    """What is missing and what to do; never what a credential process or service answered."""
    from botocore import exceptions as boto

    match error:
        case boto.NoRegionError():
            return "no region is set; set aws.region or AWS_DEFAULT_REGION"
        case boto.InvalidRegionError():
            return "the region is not a valid name; correct aws.region or AWS_DEFAULT_REGION"
        case boto.NoCredentialsError():
            return (
                "no credentials were found; set aws.profile, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
                "or give the machine a role"
            )
        case boto.PartialCredentialsError():
            return f"{error}; set both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or neither"
        case boto.ProfileNotFound():
            return f"{error}; correct aws.profile or AWS_PROFILE, or add the profile to AWS's files"
    return "the credentials could not be loaded; check aws.profile, aws.role and AWS's files"
