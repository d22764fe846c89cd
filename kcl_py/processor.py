"""The class a user writes, and what its hooks receive.

One instance serves one ownership of one shard, from the lease taken to the lease given up, over retries too. Its
hooks are called one after the other, never two at a time, in a task of that shard's Pipeline on the worker's event
loop: a hook that blocks the loop stops the heartbeats of every shard. To return is to say that the work is done.
"""

import importlib
import inspect
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Protocol

from kcl_py.errors import ProcessorError
from kcl_py.records import Record, RecordBatch, SequenceNumber


@dataclass(frozen=True, slots=True)
class OwnedShard:
    """The shard that a processor instance was made for."""

    stream: str
    shard_id: str
    epoch: int
    """Grows with each ownership of the shard: fences outside effects of an owner that is no more."""
    position: SequenceNumber | None
    """The stored checkpoint; None if there is none yet."""
    parents: tuple[str, ...]
    """Shards that this one was split or merged from, as far as they are known; none, one or two."""


class Checkpointer(Protocol):
    """Stores how far a shard is finished. Given to the hooks that may move the checkpoint."""

    async def checkpoint(self, at: Record | RecordBatch | None = None) -> None:
        """Store that everything up to and including ``at`` is finished; returns once it is stored.

        Args:
            at: a record or batch that this processor was handed; older than the stored checkpoint means nothing to
                do. None: all finished records, which inside ``process_records`` leaves out the batch in hand.

        Raises:
            LeaseLostError: the shard is another worker's now, or may be; stop working on it.
            PositionError: ``at`` is of another shard or was never handed over.
            CheckpointFailedError: it could not be stored in time; calling again may help.
        """
        ...


class RecordProcessor:
    """What happens with the records of a shard; subclass it and override ``process_records``.

    Needs a constructor without arguments. Hooks are ``async def``.
    """

    async def initialize(self, shard: OwnedShard) -> None:
        """Prepare for ``shard``: open files, load state.

        Called once per ownership, before any record. If it raises, it is called again with backoff, up to
        ``delivery.retries`` times, then the shard halts.
        """

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        """Process ``batch``: 1 to ``delivery.batch.max_records`` records of the shard, in sequence order.

        Called for each batch in order. Returning means that all its records are finished and may be checkpointed.
        If it raises, the same batch comes again with ``batch.redelivery`` set, with backoff, up to
        ``delivery.retries`` times, then the shard halts and holds its place: no record is passed over.
        """
        raise NotImplementedError

    async def lease_lost(self) -> None:
        """Let go: another worker owns the shard now, or may. Nothing can be checkpointed any more.

        Called at most once, as the last hook of the ownership. If it raises, that is logged, no more.
        """

    async def shard_ended(self, checkpointer: Checkpointer) -> None:
        """Finish with a shard whose last record has been processed; its children follow.

        Called once per ownership, after the last batch. Needs no call of ``checkpointer``: returning completes the
        shard. If it raises, it is called again with backoff, up to ``delivery.retries`` times, then the shard halts.
        """

    async def shutdown_requested(self, checkpointer: Checkpointer) -> None:
        """Wrap up: the worker stops or hands the shard over, and the lease is still held.

        Called at most once, after the running batch, as the last hook of the ownership. With ``checkpoint.mode: auto``
        all finished records are checkpointed afterwards; with ``manual`` this is the last chance to do so. If it
        raises, that is logged and stopping goes on.
        """


_HOOKS = ("initialize", "process_records", "lease_lost", "shard_ended", "shutdown_requested")


def load_processor(path: str, *, folders: Sequence[str | PathLike[str]] = ()) -> type[RecordProcessor]:
    """Import ``module:Class``.

    Args:
        path: as in the option ``processor``.
        folders: go first on ``sys.path``, in this order, and stay there for what the module imports later.

    Raises:
        ProcessorError: the import fails, or the class is not a RecordProcessor that can be used.
    """
    for folder in reversed(folders):
        if sys.path[:1] != [fspath(folder)]:
            sys.path.insert(0, fspath(folder))
    module_name, _, class_path = path.partition(":")
    try:
        found: object = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        raise ProcessorError(
            f"cannot import processor {path!r}: expected module {module_name!r} to import,"
            f" found {type(error).__name__}: {_one_line(error)}"
        ) from error
    for name in class_path.split("."):
        found = getattr(found, name, None)
    if found is None:
        raise ProcessorError(
            f"cannot import processor {path!r}: expected class {class_path!r} in module {module_name!r}, found none"
        )
    return check_processor(found, path)


def check_processor(found: object, path: str) -> type[RecordProcessor]:
    """Return ``found`` if it is a usable subclass of RecordProcessor; else raise ``ProcessorError``."""

    def fault(expected: str, but: str) -> ProcessorError:
        return ProcessorError(f"cannot use processor {path!r}: expected {expected}, found {but}")

    if not (isinstance(found, type) and issubclass(found, RecordProcessor)):
        kind = f"class {found.__name__!r}" if isinstance(found, type) else type(found).__name__
        raise fault("a subclass of kcl_py.RecordProcessor", f"{kind} that is none")
    if found.process_records is RecordProcessor.process_records:
        raise fault("process_records to be overridden", "none")
    for hook in _HOOKS:
        if not inspect.iscoroutinefunction(getattr(found, hook)):
            raise fault(f"`async def {hook}`", "`def`" if callable(getattr(found, hook)) else "no function")
    required = _required_arguments(found)
    if required:
        raise fault("a constructor without arguments", f"it needs {', '.join(required)}")
    return found


def _required_arguments(processor: type[RecordProcessor]) -> list[str]:
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(processor).parameters.values()
    return [each.name for each in parameters if each.default is each.empty and each.kind not in optional]


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
