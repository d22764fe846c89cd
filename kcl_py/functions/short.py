"""Checkpointers that stop before the first record that is rejected: that one has yet to be dealt with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from kcl_py.effects import Effect
from kcl_py.errors import PositionError
from kcl_py.executors.checkpointer import SyncCheckpointer, SyncPrepared
from kcl_py.outcomes import Reject
from kcl_py.processor import Checkpointer, PreparedCheckpoint
from kcl_py.records import Record, RecordBatch

P = TypeVar("P", Record, RecordBatch, Record | RecordBatch | None)


@dataclass(frozen=True, slots=True)
class Limit:
    """How far a batch can be checkpointed. Pure."""

    batch: RecordBatch
    rejected: Mapping[Record, Reject]

    def shortened(self, at: Record | RecordBatch | None) -> tuple[Record | RecordBatch | None] | tuple[()]:
        """Return what to checkpoint instead, as arguments are passed; nothing if nothing comes before the limit."""
        if self._is_short(at):
            return (at,)
        index = self.batch.records.index(self._first)
        return (self.batch.records[index - 1],) if index > 0 else ()

    def within(self, at: P, what: str) -> P:
        """Return ``at``; raise ``PositionError`` if it is beyond."""
        if self._is_short(at):
            return at
        raise PositionError(
            f"cannot {what} of {self.batch.shard_id!r}: expected a position before record "
            f"{self._first.sequence_number}, which could not be decoded and has yet to be dealt with; checkpoint what "
            "comes before it, and the rest of the batch comes again without it"
        )

    @property
    def _first(self) -> Record:
        return next(iter(self.rejected))

    def _is_short(self, at: Record | RecordBatch | None) -> bool:
        if at is None:
            return True
        return (at.last if isinstance(at, RecordBatch) else at.position) < self._first.position


@dataclass(frozen=True, slots=True)
class Short:
    """For an ``async def``."""

    inner: Checkpointer
    limit: Limit

    async def checkpoint(self, at: Record | RecordBatch | None = None) -> None:
        for place in self.limit.shortened(at):
            await self.inner.checkpoint(place)

    async def prepare(
        self, at: Record | RecordBatch | None = None, *, state: bytes | None = None
    ) -> PreparedCheckpoint:
        return await self.inner.prepare(self.limit.within(at, "prepare a checkpoint"), state=state)

    async def once(self, effects: Sequence[Effect], *, at: Record | RecordBatch) -> bool:
        self.limit.within(at, "apply effects")
        return await self.inner.once(effects, at=at)


@dataclass(frozen=True, slots=True)
class SyncShort:
    """For a ``def``."""

    inner: SyncCheckpointer
    limit: Limit

    def checkpoint(self, at: Record | RecordBatch | None = None) -> None:
        for place in self.limit.shortened(at):
            self.inner.checkpoint(place)

    def prepare(self, at: Record | RecordBatch | None = None, *, state: bytes | None = None) -> SyncPrepared:
        return self.inner.prepare(self.limit.within(at, "prepare a checkpoint"), state=state)

    def once(self, effects: Sequence[Effect], *, at: Record | RecordBatch) -> bool:
        self.limit.within(at, "apply effects")
        return self.inner.once(effects, at=at)
