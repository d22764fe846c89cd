"""What runs before and after each call of a processor: for logging, tracing and metrics."""

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kcl_py.batchers import Batched
from kcl_py.outcomes import BatchOutcome, RecordOutcome
from kcl_py.records import Record, RecordBatch

if TYPE_CHECKING:
    from kcl_py.processor import OwnedShard


class Middleware:
    """Hears of each call of a processor; subclass it and override what you need.

    Its methods are plain ``def``, called in the task of the call, and must not wait. One that raises is logged, once
    for each kind of error, and changes nothing of what becomes of a record.
    """

    def initialize(self, shard: "OwnedShard") -> None:
        """Prepare for ``shard``, before the processor does.

        Whoever overrides this is one shard's: list the class then, or a function that makes one, not an instance.
        """

    def before_record(self, record: Record) -> None:
        """Hear that ``process`` is called; calls for other records may be under way."""

    def after_record(self, record: Record, outcome: RecordOutcome | BaseException, took_s: float) -> None:
        """Hear that it has ended.

        Args:
            record: the one that was processed.
            outcome: what was returned, or the exception; a ``CancelledError`` too.
            took_s: how long it took, in seconds of the system's clock.
        """

    def before_batch(self, batch: RecordBatch) -> None:
        """Hear that ``process_records`` is called."""

    def after_batch(self, batch: RecordBatch, outcome: BatchOutcome | BaseException, took_s: float) -> None:
        """Hear that it has ended; see ``after_record``."""

    def before_batched(self, batch: Batched) -> None:
        """Hear that ``handle_batch`` is called; calls for other keys may be under way."""

    def after_batched(self, batch: Batched, outcome: BatchOutcome | BaseException, took_s: float) -> None:
        """Hear that it has ended; see ``after_record``."""


Listed = Middleware | Callable[[], Middleware]
"""What stands in ``middlewares``: an instance counts for all shards of the worker; a class, or another function that
makes one, is called for each ownership of a shard, as the processor's class is."""

_METHODS = (
    "initialize",
    "before_record",
    "after_record",
    "before_batch",
    "after_batch",
    "before_batched",
    "after_batched",
)


def middleware_faults(listed: object) -> list[str]:
    """Say what keeps a processor's ``middlewares`` from being called: ``expected X, found Y`` for each fault."""
    if not isinstance(listed, Sequence):
        return [f"expected middlewares to be a sequence, found {type(listed).__name__}"]
    return [fault for each in listed for fault in _faults(each)]


def _faults(each: object) -> list[str]:
    if isinstance(each, type) and issubclass(each, Middleware):
        return _async_faults(each)
    if not isinstance(each, Middleware):
        is_maker = callable(each) and not isinstance(each, type)
        found = f"class {each.__name__!r}" if isinstance(each, type) else type(each).__name__
        return [] if is_maker else [f"expected a kcl_py.Middleware in middlewares, found {found} that is none"]
    if type(each).initialize is not Middleware.initialize:
        return [
            f"expected the class {type(each).__name__!r} in middlewares, or a function that makes one, since it has an "
            "`initialize` and so is one shard's, found an instance"
        ]
    return _async_faults(type(each))


def _async_faults(kind: type[Middleware]) -> list[str]:
    return [
        f"expected `def {name}` in middleware {kind.__name__!r}, found `async def`"
        for name in _METHODS
        if inspect.iscoroutinefunction(getattr(kind, name))
    ]
