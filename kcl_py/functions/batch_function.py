"""A function that is called for each batch, with the records that can be decoded; the others are rejected."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from kcl_py.executors.checkpointer import SyncCheckpointer
from kcl_py.functions.payload import Decode
from kcl_py.functions.short import Limit, Short, SyncShort
from kcl_py.functions.signature import Function, Signature
from kcl_py.outcomes import BatchOutcome, Reject
from kcl_py.processor import Checkpointer, OwnedShard, RecordProcessor
from kcl_py.records import Record, RecordBatch


@dataclass(frozen=True, slots=True)
class Decoded:
    """A batch in two parts."""

    payloads: list[Any]
    batch: RecordBatch
    """Of the records whose payloads these are."""
    rejected: Mapping[Record, Reject]
    good: tuple[Record, ...]
    """Again those records; the function may change its batch."""

    @classmethod
    def of(cls, batch: RecordBatch, decode: Decode | None) -> "Decoded":
        """Decode the payloads of a batch; None: the function takes none."""
        if decode is None:
            return cls([], batch, {}, ())
        payloads, good, rejected = list[Any](), list[Record](), dict[Record, Reject]()
        for record in batch:
            payload = decode(record.data)
            if isinstance(payload, Reject):
                rejected[record] = payload
            else:
                payloads.append(payload)
                good.append(record)
        part = replace(batch, records=list(good)) if rejected else batch
        return cls(payloads, part, rejected, tuple(good))

    def outcome(self, said: BatchOutcome | Exception) -> BatchOutcome:
        """Return what becomes of each record that is not finished, after what was said of the good ones."""
        if said is None or isinstance(said, Mapping):
            return {**(said or {}), **self.rejected}
        return {**dict.fromkeys(self.good, said), **self.rejected}


class BatchFunction(RecordProcessor):
    """Calls an ``async def``."""

    _kcl_py_function: ClassVar[Function]
    signature: ClassVar[Signature]

    async def initialize(self, shard: OwnedShard) -> None:
        self._shard = shard

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> BatchOutcome:
        decoded = Decoded.of(batch, self.signature.decode)
        if not decoded.rejected:
            return await self._call(decoded, checkpointer)
        said: BatchOutcome | Exception = None
        if decoded.good:
            try:
                said = await self._call(decoded, Short(checkpointer, Limit(batch, decoded.rejected)))
            except Exception as error:
                said = error
        return decoded.outcome(said)

    async def _call(self, decoded: Decoded, checkpointer: Checkpointer) -> BatchOutcome:
        outcome: BatchOutcome = await self._kcl_py_function(
            **arguments(self.signature, decoded, checkpointer, self._shard)
        )
        return outcome


class SyncBatchFunction(RecordProcessor):
    """Calls a ``def``."""

    _kcl_py_function: ClassVar[Function]
    signature: ClassVar[Signature]

    def initialize(self, shard: OwnedShard) -> None:  # type: ignore[override]
        self._shard = shard

    def process_records(  # type: ignore[override]
        self, batch: RecordBatch, checkpointer: SyncCheckpointer
    ) -> BatchOutcome:
        decoded = Decoded.of(batch, self.signature.decode)
        if not decoded.rejected:
            return self._call(decoded, checkpointer)
        said: BatchOutcome | Exception = None
        if decoded.good:
            try:
                said = self._call(decoded, SyncShort(checkpointer, Limit(batch, decoded.rejected)))
            except Exception as error:
                said = error
        return decoded.outcome(said)

    def _call(self, decoded: Decoded, checkpointer: SyncCheckpointer) -> BatchOutcome:
        outcome: BatchOutcome = self._kcl_py_function(**arguments(self.signature, decoded, checkpointer, self._shard))
        return outcome


def arguments(
    signature: Signature, decoded: Decoded, checkpointer: Checkpointer | SyncCheckpointer, shard: OwnedShard
) -> dict[str, Any]:
    """Return what to call the function with."""
    return signature.arguments(payload=decoded.payloads, batch=decoded.batch, checkpointer=checkpointer, shard=shard)
