"""A function that is called for each record that can be decoded; the others are rejected."""

from typing import Any, ClassVar

from kcl_py.functions.signature import Function, Signature
from kcl_py.outcomes import RecordOutcome, Reject
from kcl_py.processor import OwnedShard, RecordProcessor
from kcl_py.records import Record


class RecordFunction(RecordProcessor):
    """Calls an ``async def``."""

    _kcl_py_function: ClassVar[Function]
    signature: ClassVar[Signature]

    async def initialize(self, shard: OwnedShard) -> None:
        self._shard = shard

    async def process(self, record: Record) -> RecordOutcome:
        given = arguments(self.signature, record, self._shard)
        return given if isinstance(given, Reject) else await self._kcl_py_function(**given)


class SyncRecordFunction(RecordProcessor):
    """Calls a ``def``."""

    _kcl_py_function: ClassVar[Function]
    signature: ClassVar[Signature]

    def initialize(self, shard: OwnedShard) -> None:  # type: ignore[override]
        self._shard = shard

    def process(self, record: Record) -> RecordOutcome:  # type: ignore[override]
        given = arguments(self.signature, record, self._shard)
        return given if isinstance(given, Reject) else self._kcl_py_function(**given)


def arguments(signature: Signature, record: Record, shard: OwnedShard) -> dict[str, Any] | Reject:
    """Return what to call the function with; what becomes of the record if it cannot be decoded."""
    payload = None if signature.decode is None else signature.decode(record.data)
    return payload if isinstance(payload, Reject) else signature.arguments(payload=payload, record=record, shard=shard)
