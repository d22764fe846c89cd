"""Checkpointers that tell what they are asked."""

from collections.abc import Sequence

import anyio
from anyio.lowlevel import checkpoint

from kcl_py import Record, RecordBatch
from kcl_py.effects import Effect
from kcl_py.errors import EffectsRefusedError
from kcl_py.processor import PreparedCheckpoint


class Heard:
    """Notes all calls."""

    def __init__(self) -> None:
        self.called = anyio.Event()
        self.calls: list[object] = []

    async def checkpoint(self, at: Record | RecordBatch | None = None) -> None:
        await self._note("checkpoint", at)

    async def prepare(
        self, at: Record | RecordBatch | None = None, *, state: bytes | None = None
    ) -> PreparedCheckpoint:
        await self._note("prepare", at, state)
        return Prepared(self, state)

    async def once(self, effects: Sequence[Effect], *, at: Record | RecordBatch) -> bool:
        await self._note("once", effects, at)
        if not effects:
            raise EffectsRefusedError("cannot apply nothing", {0: "ConditionalCheckFailed"})
        return True

    async def _note(self, *call: object) -> None:
        await checkpoint()
        self.calls.append(call)
        self.called.set()


class Prepared:
    """Notes that it is committed."""

    def __init__(self, checkpointer: Heard, state: bytes | None) -> None:
        self._checkpointer, self._state = checkpointer, state

    async def commit(self) -> None:
        await checkpoint()
        self._checkpointer.calls.append(("commit", self._state))
