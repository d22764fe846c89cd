"""What a processor receives: records, batches and sequence numbers.

``Record`` is also what the wire is decoded into: a GetRecords body becomes a list of these in C, so a batch costs
no Python work per record. Its fields carry AWS's names on the wire and ours in code.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple

import msgspec

MOST_DIGITS = 129
"""Of a sequence number. Source: the GetShardIterator API reference, StartingSequenceNumber."""


def is_number(text: str) -> bool:
    """Tell whether ``text`` can be a sequence number; Python itself converts no more than some thousand digits."""
    return len(text) <= MOST_DIGITS and text.isascii() and text.isdecimal()


@dataclass(frozen=True, slots=True, order=True)
class SequenceNumber:
    """A position in a shard, ordered by number, never by text.

    Source: sequence numbers grow within a shard but are not dense; an aggregated record holds user records that share
    a number and differ by ``sub`` (the Java client's ExtendedSequenceNumber).
    """

    value: int
    """The sequence number; up to 56 digits."""
    sub: int = 0
    """Index of a user record inside an aggregated record; 0 otherwise."""

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Redelivery:
    """Why records are handed over again."""

    attempt: int
    """2 for the first repetition."""
    reason: str
    """What the attempt before ended with: the class and text of the exception, or what the processor said."""
    first_failed_s: float = 0.0
    """When the first attempt failed, in Unix seconds."""


MAYBE: Final = "maybe"
"""Of a record that an earlier owner of the shard may have had in hand: it went without saying how far it had come."""


class Identity(NamedTuple):
    """What tells a record from all others, for ever; as text ``stream/shard/number/sub``."""

    stream: str
    shard_id: str
    sequence_number: str
    sub_sequence_number: int = 0

    def __str__(self) -> str:
        return "/".join(map(str, self))


class Record(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One record of a stream."""

    sequence_number: str = msgspec.field(name="SequenceNumber")
    """Decimal digits; compare as numbers (see ``position``)."""
    data: bytes = msgspec.field(name="Data")
    """The payload as it was put."""
    partition_key: str = msgspec.field(name="PartitionKey")
    arrived_s: float = msgspec.field(name="ApproximateArrivalTimestamp", default=0.0)
    """When Kinesis received the record, in Unix seconds."""
    encryption_type: str | None = msgspec.field(name="EncryptionType", default=None)
    sub_sequence_number: int = msgspec.field(name="SubSequenceNumber", default=0)
    redelivery: Redelivery | Literal["maybe"] | None = None
    """None for what certainly comes for the first time; never set by what is read."""

    @property
    def arrival_time(self) -> datetime:
        """``arrived_s`` as an aware UTC datetime, made on each access."""
        return datetime.fromtimestamp(self.arrived_s, UTC)

    @property
    def position(self) -> SequenceNumber:
        """The record's place in its shard."""
        return SequenceNumber(int(self.sequence_number), self.sub_sequence_number)

    def identity(self, stream: str, shard_id: str) -> Identity:
        """Return what tells the record from all others; ``OwnedShard`` and ``RecordBatch`` know stream and shard."""
        return Identity(stream, shard_id, self.sequence_number, self.sub_sequence_number)


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """Records of one shard in sequence order: at least one, at most ``delivery.batch.max_records``."""

    stream: str
    shard_id: str
    records: list[Record]
    """A list of the processor's own: what it does to it changes nothing about what comes again."""
    millis_behind_latest: int
    """How far the reading was behind the tip of the shard when these were fetched."""
    redelivery: Redelivery | None = None
    first: SequenceNumber = field(init=False, repr=False, compare=False)
    last: SequenceNumber = field(init=False, repr=False, compare=False)
    """Where it begins and ends; so it does whatever becomes of the list."""

    def __post_init__(self) -> None:
        if self.records:
            object.__setattr__(self, "first", self.records[0].position)
            object.__setattr__(self, "last", self.records[-1].position)

    def identity(self, record: Record) -> Identity:
        """Return what tells a record of this batch from all others, for ever."""
        return record.identity(self.stream, self.shard_id)

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)
