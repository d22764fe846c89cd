"""What is kept of a record that is given up, and its form in bytes: one JSON object of ASCII characters.

So it can be a line of a file and a message of SQS, whatever is in a key or a reason. Pure. Times are Unix seconds.
"""

import json
from base64 import b64encode
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

import msgspec

from kcl_py.processor import Failure
from kcl_py.records import Record

REASON_CHARS = 4096
"""How much of a reason is kept: an exception may quote all that it was about."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that is not tried again, where it was and why."""

    record: Record
    stream: str
    """Name of the stream."""
    shard_id: str
    attempts: int
    reason: str
    """What the last attempt ended with: the class and text of the exception, or what the processor said."""
    first_failed_s: float
    failed_s: float
    """When the record was given up."""
    app: str
    worker: str

    @classmethod
    def of(cls, failure: Failure, *, stream: str, shard_id: str, failed_s: float, app: str, worker: str) -> Self:
        """Make the letter of a failure; a reason of more than ``REASON_CHARS`` is cut."""
        return cls(
            record=msgspec.structs.replace(failure.record, redelivery=None),
            stream=stream,
            shard_id=shard_id,
            attempts=failure.attempts,
            reason=failure.reason[:REASON_CHARS],
            first_failed_s=failure.first_failed_s,
            failed_s=failed_s,
            app=app,
            worker=worker,
        )

    @property
    def name(self) -> str:
        """What is the same for all letters of one record to one app, and no others: a path of four parts."""
        record = self.record
        sub = f"-{record.sub_sequence_number}" if record.sub_sequence_number else ""
        return f"{self.app}/{self.stream}/{self.shard_id}/{record.sequence_number}{sub}"

    def encoded(self) -> bytes:
        """Return the letter as one JSON object, without line breaks; ``parse`` reads it."""
        record = self.record
        encryption = {"encryption_type": record.encryption_type} if record.encryption_type is not None else {}
        form = {
            "stream": self.stream,
            "shard_id": self.shard_id,
            "sequence_number": record.sequence_number,
            "sub_sequence_number": record.sub_sequence_number,
            "partition_key": record.partition_key,
            "arrived_at": _iso(record.arrived_s),
            "attempts": self.attempts,
            "error": self.reason,
            "first_failed_at": _iso(self.first_failed_s),
            "failed_at": _iso(self.failed_s),
            "app": self.app,
            "worker": self.worker,
            **encryption,
            "data": b64encode(record.data).decode("ascii"),
        }
        return json.dumps(form).encode("ascii")


class _Form(msgspec.Struct, frozen=True):
    """The keys of a letter; what is beside them is passed over."""

    stream: str
    shard_id: str
    sequence_number: str
    sub_sequence_number: int
    partition_key: str
    arrived_at: datetime
    attempts: int
    error: str
    first_failed_at: datetime
    failed_at: datetime
    app: str
    worker: str
    data: bytes
    encryption_type: str | None = None


def parse(text: bytes | str) -> DeadLetter:
    """Return the letter that was stored as ``text``: a line of a file, an object's body, a message, a record's data.

    Raises:
        ValueError: it is none, or not the whole of one.
    """
    try:
        form = msgspec.convert(json.loads(text), _Form)
    except (ValueError, RecursionError, msgspec.ValidationError) as error:
        raise ValueError(
            f"cannot read a dead letter: expected the JSON object that was stored, found {error}"
        ) from error
    record = Record(
        sequence_number=form.sequence_number,
        data=form.data,
        partition_key=form.partition_key,
        arrived_s=form.arrived_at.timestamp(),
        encryption_type=form.encryption_type,
        sub_sequence_number=form.sub_sequence_number,
    )
    return DeadLetter(
        record=record,
        stream=form.stream,
        shard_id=form.shard_id,
        attempts=form.attempts,
        reason=form.error,
        first_failed_s=form.first_failed_at.timestamp(),
        failed_s=form.failed_at.timestamp(),
        app=form.app,
        worker=form.worker,
    )


def _iso(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
