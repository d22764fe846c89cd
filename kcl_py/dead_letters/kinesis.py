"""Dead letters in a Kinesis stream: each a record with the key of the record that it is about."""

from typing import Any, Protocol

from actors.clock import Clock
from kcl_py.aws import request
from kcl_py.dead_letters.address import Address
from kcl_py.dead_letters.attempt import LOOK_DEADLINE_S, attempt, too_large
from kcl_py.dead_letters.letter import DeadLetter
from kcl_py.errors import MissingError, RequestError

RECORD_KIB = 1024
"""The largest record of a stream that says nothing of it. Source: UpdateMaxRecordSize in the API reference."""


class PutClient(Protocol):
    """The requests that are made, as aiobotocore's client offers them; its own retries are off."""

    async def describe_stream_summary(self, **request: Any) -> Any: ...
    async def put_record(self, **request: Any) -> Any: ...


class KinesisDeadLetters:
    """Implements ``DeadLetters``. A reply that is lost means that the letter is there twice.

    Args:
        client: the caller closes it.
        address: the stream.
        clock: for deadlines.
    """

    def __init__(self, client: PutClient, address: Address, *, clock: Clock) -> None:
        self._client, self._address, self._clock = client, address, clock
        self._naming = {"StreamARN" if address.name.startswith("arn:") else "StreamName": address.name}
        self._most_bytes = 0

    async def look(self) -> None:
        """Make sure that the stream takes records, and see how large ones. Raises RequestError."""
        operation, name = "DescribeStreamSummary", str(self._address)
        with request(operation, name, deadline_s=LOOK_DEADLINE_S, clock=self._clock):
            reply = await self._client.describe_stream_summary(**self._naming)
        summary = reply["StreamDescriptionSummary"]
        if summary["StreamStatus"] == "CREATING":
            raise RequestError(operation, name, "CREATING", "the stream is still being created")
        if summary["StreamStatus"] == "DELETING":
            raise MissingError(operation, name, "DELETING", "the stream is being deleted")
        self._most_bytes = summary.get("MaxRecordSizeInKiB", RECORD_KIB) * 1024

    async def store(self, letter: DeadLetter) -> None:
        """Put ``letter``; see ``DeadLetters``."""
        data, key = letter.encoded(), letter.record.partition_key
        size_bytes = len(data) + len(key.encode())
        if size_bytes > self._most_bytes:  # the limit can be raised meanwhile
            with attempt("DescribeStreamSummary", letter, self._address, self._clock):
                await self.look()
        if size_bytes > self._most_bytes:
            advice = "have the stream take larger records (UpdateMaxRecordSize), or "
            raise too_large(letter, self._address, size_bytes, self._most_bytes, advice)
        with attempt("PutRecord", letter, self._address, self._clock):
            await self._client.put_record(**self._naming, PartitionKey=key, Data=data)
