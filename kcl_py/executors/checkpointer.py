"""The checkpointer of hooks that are ``def``: its methods block until what they ask for is stored."""

from collections.abc import Sequence
from typing import Protocol

from kcl_py.effects import Effect
from kcl_py.records import Record, RecordBatch


class SyncPrepared(Protocol):
    """What hooks that are ``def`` receive in the place of a ``PreparedCheckpoint``."""

    def commit(self) -> None:
        """Make it count, before the hook returns."""
        ...


class SyncCheckpointer(Protocol):
    """What hooks that are ``def`` receive in the place of a ``Checkpointer``; raises the same errors."""

    def checkpoint(self, at: Record | RecordBatch | None = None) -> None:
        """Do what ``Checkpointer.checkpoint`` does."""
        ...

    def prepare(self, at: Record | RecordBatch | None = None, *, state: bytes | None = None) -> SyncPrepared:
        """Do what ``Checkpointer.prepare`` does."""
        ...

    def once(self, effects: Sequence[Effect], *, at: Record | RecordBatch) -> bool:
        """Do what ``Checkpointer.once`` does."""
        ...
