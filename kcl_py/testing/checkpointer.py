"""A checkpointer for hooks that hold the clock: storing takes time."""

from collections.abc import Sequence
from dataclasses import replace

from actors.testing import ManualClock
from kcl_py.effects import Effect
from kcl_py.processor import Checkpointer, OwnedShard, PreparedCheckpoint
from kcl_py.records import Record, RecordBatch


def waiting(shard: OwnedShard, clock: ManualClock) -> OwnedShard:
    """Return the shard with a checkpointer, if it has one, that lets time pass."""
    inner = shard.checkpointer
    return shard if inner is None else replace(shard, checkpointer=AwaitedCheckpointer(inner, clock))


class AwaitedCheckpointer:
    """Lets time pass while a checkpoint is stored."""

    def __init__(self, inner: Checkpointer, clock: ManualClock) -> None:
        self._inner, self._clock = inner, clock

    async def checkpoint(self, at: Record | RecordBatch | None = None) -> None:
        with self._clock.awaited():
            await self._inner.checkpoint(at)

    async def prepare(
        self, at: Record | RecordBatch | None = None, *, state: bytes | None = None
    ) -> PreparedCheckpoint:
        with self._clock.awaited():
            return _Prepared(await self._inner.prepare(at, state=state), self._clock)

    async def once(self, effects: Sequence[Effect], *, at: Record | RecordBatch) -> bool:
        with self._clock.awaited():
            return await self._inner.once(effects, at=at)


class _Prepared:
    """Lets time pass while a prepared checkpoint is committed."""

    def __init__(self, inner: PreparedCheckpoint, clock: ManualClock) -> None:
        self._inner, self._clock = inner, clock

    async def commit(self) -> None:
        with self._clock.awaited():
            await self._inner.commit()
