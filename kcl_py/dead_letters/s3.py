"""Dead letters in an S3 bucket: each an object that is named after its record, so that there is never a second one."""

from typing import Any, Protocol

from actors.clock import Clock
from kcl_py.aws import request
from kcl_py.dead_letters.address import Address
from kcl_py.dead_letters.attempt import LOOK_DEADLINE_S, attempt
from kcl_py.dead_letters.letter import DeadLetter
from kcl_py.errors import MissingError, RejectedError, RequestError


class BucketClient(Protocol):
    """The requests that are made, as aiobotocore's client offers them; its own retries are off."""

    async def head_bucket(self, **request: Any) -> Any: ...
    async def put_object(self, **request: Any) -> Any: ...


class S3DeadLetters:
    """Implements ``DeadLetters``.

    Args:
        client: the caller closes it.
        address: the bucket and the prefix.
        clock: for deadlines.
    """

    def __init__(self, client: BucketClient, address: Address, *, clock: Clock) -> None:
        self._client, self._address, self._clock = client, address, clock
        self._bucket, _, prefix = address.name.partition("/")
        self._prefix = f"{prefix.strip('/')}/".lstrip("/")

    async def look(self) -> None:
        """Make sure that the bucket is there. Raises RequestError."""
        try:
            with request("HeadBucket", str(self._address), deadline_s=LOOK_DEADLINE_S, clock=self._clock):
                await self._client.head_bucket(Bucket=self._bucket)
        except RequestError as error:
            raise _told(error) from error

    async def store(self, letter: DeadLetter) -> None:
        """Write ``letter``; see ``DeadLetters``."""
        with attempt("PutObject", letter, self._address, self._clock):
            await self._client.put_object(
                Bucket=self._bucket,
                Key=f"{self._prefix}{letter.name}.json",
                Body=letter.encoded(),
                ContentType="application/json",
            )


def _told(error: RequestError) -> RequestError:
    """Return what a refusal means: the reply to HeadBucket has no body, so its code is the HTTP status alone."""
    match error.code:
        case "404":
            return MissingError(error.operation, error.target, "NoSuchBucket")
        case "400" | "403":
            detail = "the bucket is not yours, or s3:ListBucket on it or the credentials are refused"
            return RejectedError(error.operation, error.target, error.code, detail)
    return error
