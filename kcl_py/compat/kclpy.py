"""Processors written for amazon_kclpy, used as they are.

``adapt`` makes a RecordProcessor of a class of that package's interface, versions 1 to 3; ``kcl run`` does so by
itself. Nothing is checkpointed but what the class asks for; in words: docs/kclpy.md.
"""

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, ClassVar

from kcl_py.compat import positions
from kcl_py.compat.stand_in import messages
from kcl_py.compat.stand_in.checkpoint_error import CheckpointError
from kcl_py.compat.versions import VERSIONS, Version3, version_of
from kcl_py.errors import KclError, ProcessorError
from kcl_py.executors.checkpointer import SyncCheckpointer
from kcl_py.processor import Executor, OwnedShard, RecordProcessor
from kcl_py.records import Record, RecordBatch, SequenceNumber

PACKAGE = "amazon_kclpy"
_PLACES = ("", ".kcl", ".messages", ".checkpoint_error", ".v2", ".v2.processor", ".v3", ".v3.processor")


def adapt(found: object) -> "type[Adapted]":
    """Return a RecordProcessor that calls a class written for amazon_kclpy.

    Raises:
        ProcessorError: it has the hooks of no version.
    """
    version = version_of(found)
    if version is None or not isinstance(found, type):
        raise ProcessorError(
            f"cannot adapt {found!r}: expected a class with the hooks of amazon_kclpy, that is initialize and "
            "process_records, and lease_lost and shard_ended or shutdown, found none"
        )
    names = {"__module__": found.__module__, "__qualname__": found.__qualname__, "__doc__": found.__doc__}
    return type(found.__name__, (Adapted,), {"adapted": found, "version": version, **names})


@contextmanager
def standing_in() -> Iterator[None]:
    """Have ``import amazon_kclpy`` find our modules of the same names, within this block, if it is not installed."""
    if find_spec(PACKAGE) is not None:
        yield
        return
    for place in _PLACES:
        sys.modules[PACKAGE + place] = importlib.import_module(f"kcl_py.compat.stand_in{place}")
    try:
        yield
    finally:
        for place in _PLACES:
            sys.modules.pop(PACKAGE + place, None)


class Adapted(RecordProcessor):
    """Calls an instance of the user's class."""

    preferred_executor: ClassVar[Executor] = "thread"
    preferred_checkpoint_mode: ClassVar[str] = "manual"
    adapted: ClassVar[type]
    version: ClassVar[int]

    def __init__(self) -> None:
        self._user: Version3 = VERSIONS[self.version](self.adapted(), Lost())
        self._is_lost = False
        """Whether the user's instance has been told so."""

    def initialize(self, shard: OwnedShard) -> None:  # type: ignore[override] # runs in a thread
        position = shard.position
        self._last = self._finished = position
        number, sub = (shard.checkpoint, 0) if position is None else (str(position), position.sub)
        self._user.initialize(messages.InitializeInput(shard.shard_id, number, sub))

    def process_records(self, batch: RecordBatch, checkpointer: SyncCheckpointer) -> None:  # type: ignore[override]
        records = [messages.Record(record) for record in batch]
        given = KclpyCheckpointer(self, checkpointer, list(batch))
        self._user.process_records(messages.ProcessRecordsInput(records, batch.millis_behind_latest, given))
        self._finished = batch.last

    def lease_lost(self) -> None:  # type: ignore[override]
        self._is_lost = True
        self._user.lease_lost()

    def shard_ended(self, checkpointer: SyncCheckpointer) -> None:  # type: ignore[override]
        self._user.shard_ended(KclpyCheckpointer(self, checkpointer, ()))

    def shutdown_requested(self, checkpointer: SyncCheckpointer) -> None:  # type: ignore[override]
        try:
            self._user.shutdown_requested(KclpyCheckpointer(self, checkpointer, ()))
        finally:
            self.lease_lost()  # as the daemon does, once it has let go

    def store(
        self,
        sequence_number: object,
        sub_sequence_number: object,
        checkpointer: SyncCheckpointer,
        hand: Sequence[Record],
    ) -> None:
        """Checkpoint by Java's rules."""
        if self._is_lost:
            raise checkpoint_error("ShutdownException")
        newest = hand[-1].position if hand else self._finished
        at: SequenceNumber | None = newest
        if sequence_number is not None:
            at = positions.asked_for(sequence_number, sub_sequence_number, self._last, newest)
            if at is None:
                raise checkpoint_error(positions.ILLEGAL)
        try:
            if at is None or (not hand and at == newest):
                checkpointer.checkpoint()
            else:
                checkpointer.checkpoint(positions.record_at(at, hand, self._finished))
        except KclError as error:
            raise checkpoint_error(positions.java_name(error)) from error
        self._last = at


class KclpyCheckpointer:
    """The checkpointer that a hook of the user's receives.

    Args:
        owner: knows what was checkpointed before.
        checkpointer: ours.
        hand: the records of the batch in hand.
    """

    def __init__(self, owner: Adapted, checkpointer: SyncCheckpointer, hand: Sequence[Record]) -> None:
        self._owner, self._checkpointer, self._hand = owner, checkpointer, hand

    def checkpoint(self, sequence_number: Any = None, sub_sequence_number: Any = None) -> None:
        """Store that everything up to a record is finished; None: up to the end of what was handed over.

        Raises:
            CheckpointError: amazon_kclpy's, if that is installed.
        """
        self._owner.store(sequence_number, sub_sequence_number, self._checkpointer, self._hand)


class Lost:
    """The checkpointer of a lost lease."""

    def checkpoint(self, sequence_number: Any = None, sub_sequence_number: Any = None) -> None:
        raise checkpoint_error("ShutdownException")


def checkpoint_error(value: str) -> Exception:
    """Make the error that the user's module expects: of the package that it has imported."""
    if find_spec(PACKAGE) is None:
        return CheckpointError(value)
    error: Exception = importlib.import_module(f"{PACKAGE}.kcl").CheckpointError(value)
    return error
