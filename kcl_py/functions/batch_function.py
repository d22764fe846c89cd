"""A function that is called for each batch."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from kcl_py.effects import Effect
from kcl_py.errors import PositionError
from kcl_py.functions.payload import Decode
from kcl_py.functions.signature import Signature
from kcl_py.outcomes import BatchOutcome, Reject, Verdict
from kcl_py.processor import Checkpointer, OwnedShard, PreparedCheckpoint, RecordProcessor
from kcl_py.records import Record, RecordBatch

P = TypeVar("P", Record, RecordBatch, Record | RecordBatch | None)


class BatchFunction(RecordProcessor):
    """Has its class's function process the records of a batch that can be decoded, and rejects the others."""

    function: ClassVar[Callable[..., Awaitable[BatchOutcome]]]
    signature: ClassVar[Signature]

    async def initialize(self, shard: OwnedShard) -> None:
        self._shard = shard

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> BatchOutcome:
        decode = self.signature.decode
        if decode is None:
            return await self._call([], batch, checkpointer)
        payloads, rejected = decoded(batch, decode)
        if not rejected:
            return await self._call(payloads, batch, checkpointer)
        good = [record for record in batch if record not in rejected]
        verdicts = await self._verdicts(payloads, replace(batch, records=good), Short(checkpointer, batch, rejected))
        return {**verdicts, **rejected}

    async def _verdicts(
        self, payloads: list[Any], batch: RecordBatch, checkpointer: Checkpointer
    ) -> Mapping[Record, Verdict]:
        """Call the function and return what it says of each record that is not finished."""
        if not batch.records:
            return {}
        records = list(batch.records)
        try:
            outcome: BatchOutcome | Exception = await self._call(payloads, batch, checkpointer)
        except Exception as error:
            outcome = error
        if outcome is None or isinstance(outcome, Mapping):
            return outcome or {}
        return dict.fromkeys(records, outcome)

    async def _call(self, payloads: list[Any], batch: RecordBatch, checkpointer: Checkpointer) -> BatchOutcome:
        values = {"payload": payloads, "batch": batch, "checkpointer": checkpointer, "shard": self._shard}
        return await self.function(**self.signature.arguments(**values))


def decoded(batch: RecordBatch, decode: Decode) -> tuple[list[Any], dict[Record, Reject]]:
    """Decode the payloads of a batch, and reject the records for which that fails."""
    payloads: list[Any] = []
    rejected: dict[Record, Reject] = {}
    for record in batch:
        payload = decode(record.data)
        if isinstance(payload, Reject):
            rejected[record] = payload
        else:
            payloads.append(payload)
    return payloads, rejected


@dataclass(frozen=True, slots=True)
class Short:
    """A checkpointer that stops before the first record that is rejected: that one has yet to be dealt with."""

    inner: Checkpointer
    batch: RecordBatch
    rejected: Mapping[Record, Reject]

    async def checkpoint(self, at: Record | RecordBatch | None = None) -> None:
        if self._is_short(at):
            await self.inner.checkpoint(at)
        elif (index := self.batch.records.index(self._first)) > 0:
            await self.inner.checkpoint(self.batch.records[index - 1])

    async def prepare(
        self, at: Record | RecordBatch | None = None, *, state: bytes | None = None
    ) -> PreparedCheckpoint:
        return await self.inner.prepare(self._within(at, "prepare a checkpoint"), state=state)

    async def once(self, effects: Sequence[Effect], *, at: Record | RecordBatch) -> bool:
        self._within(at, "apply effects")
        return await self.inner.once(effects, at=at)

    @property
    def _first(self) -> Record:
        return next(iter(self.rejected))

    def _is_short(self, at: Record | RecordBatch | None) -> bool:
        end = at.records[-1] if isinstance(at, RecordBatch) else at
        return end is None or end.position < self._first.position

    def _within(self, at: P, what: str) -> P:
        if self._is_short(at):
            return at
        raise PositionError(
            f"cannot {what} of {self.batch.shard_id!r}: expected a position before record "
            f"{self._first.sequence_number}, which could not be decoded and has yet to be dealt with; checkpoint what "
            "comes before it, and the rest of the batch comes again without it"
        )
