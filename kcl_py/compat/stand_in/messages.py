"""Stands for ``amazon_kclpy.messages``: what the hooks of versions 2 and 3 receive, and records.

Source of all names: amazon_kclpy 3.1's interface, and what its daemon was seen to hand over (docs/kclpy.md).
"""

from base64 import b64encode
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from kcl_py import records


@dataclass(frozen=True)
class InitializeInput:
    """For ``initialize``."""

    shard_id: str
    sequence_number: str
    """The checkpoint; ``TRIM_HORIZON``, ``LATEST`` or ``AT_TIMESTAMP`` if there is none."""
    sub_sequence_number: int
    action: ClassVar[str] = "initialize"


@dataclass(frozen=True)
class ProcessRecordsInput:
    """For ``process_records``."""

    records: "list[Record]"
    millis_behind_latest: int
    checkpointer: Any
    action: ClassVar[str] = "processRecords"


@dataclass(frozen=True)
class LeaseLostInput:
    """For ``lease_lost``."""

    action: ClassVar[str] = "leaseLost"


@dataclass(frozen=True)
class ShardEndedInput:
    """For ``shard_ended``."""

    checkpointer: Any
    action: ClassVar[str] = "shardEnded"


@dataclass(frozen=True)
class ShutdownRequestedInput:
    """For ``shutdown_requested``."""

    checkpointer: Any
    action: ClassVar[str] = "shutdownRequested"


@dataclass(frozen=True)
class ShutdownInput:
    """For ``shutdown`` of version 2."""

    reason: str
    """``ZOMBIE``: the lease is lost; ``TERMINATE``: the shard has ended."""
    checkpointer: Any
    action: ClassVar[str] = "shutdown"


class Record:
    """A record.

    Args:
        record: the same as kcl_py has it.
    """

    def __init__(self, record: records.Record) -> None:
        self._record = record

    @property
    def binary_data(self) -> bytes:
        return self._record.data

    @property
    def data(self) -> str:
        """The payload in base64."""
        return b64encode(self._record.data).decode()

    @property
    def sequence_number(self) -> str:
        return self._record.sequence_number

    @property
    def sub_sequence_number(self) -> int:
        return self._record.sub_sequence_number

    @property
    def partition_key(self) -> str:
        return self._record.partition_key

    @property
    def timestamp_millis(self) -> int:
        """When Kinesis received it, in Unix milliseconds."""
        return round(self._record.arrived_s * 1000)

    @property
    def approximate_arrival_timestamp(self) -> datetime:
        """The same in this machine's time zone, which it does not name."""
        return datetime.fromtimestamp(self.timestamp_millis / 1000)  # noqa: DTZ006 - amazon_kclpy has it so

    def get(self, field: str) -> Any:
        """Return a field by the name that the daemon gives it; raises ``KeyError`` for another."""
        fields = {
            "action": "record",
            "data": self.data,
            "partitionKey": self.partition_key,
            "sequenceNumber": self.sequence_number,
            "subSequenceNumber": self.sub_sequence_number,
            "approximateArrivalTimestamp": self.timestamp_millis,
        }
        return fields[field]

    def __getitem__(self, field: str) -> Any:
        return self.get(field)
