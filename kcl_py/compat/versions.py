"""The three versions of amazon_kclpy's interface, and how each is called. Source: docs/kclpy.md, "Interfaces"."""

import inspect
from typing import Any

from kcl_py.compat.stand_in.messages import (
    InitializeInput,
    LeaseLostInput,
    ProcessRecordsInput,
    ShardEndedInput,
    ShutdownInput,
    ShutdownRequestedInput,
)


class Version3:
    """Calls a processor of version 3.

    Args:
        processor: the user's instance.
        lost: a checkpointer that can store nothing, for when the lease is lost.
    """

    def __init__(self, processor: Any, lost: Any) -> None:
        self._processor, self._lost = processor, lost

    def initialize(self, given: InitializeInput) -> None:
        self._processor.initialize(given)

    def process_records(self, given: ProcessRecordsInput) -> None:
        self._processor.process_records(given)

    def lease_lost(self) -> None:
        self._processor.lease_lost(LeaseLostInput())

    def shard_ended(self, checkpointer: Any) -> None:
        self._processor.shard_ended(ShardEndedInput(checkpointer))

    def shutdown_requested(self, checkpointer: Any) -> None:
        if hasattr(self._processor, "shutdown_requested"):
            self._processor.shutdown_requested(ShutdownRequestedInput(checkpointer))


class Version2(Version3):
    """Calls a processor of version 2, which has one hook for both ends."""

    def lease_lost(self) -> None:
        self._processor.shutdown(ShutdownInput("ZOMBIE", self._lost))

    def shard_ended(self, checkpointer: Any) -> None:
        self._processor.shutdown(ShutdownInput("TERMINATE", checkpointer))


class Version1(Version3):
    """Calls a processor of version 1, whose hooks take what they need one by one."""

    def initialize(self, given: InitializeInput) -> None:
        self._processor.initialize(given.shard_id)

    def process_records(self, given: ProcessRecordsInput) -> None:
        self._processor.process_records(given.records, given.checkpointer)

    def lease_lost(self) -> None:
        self._processor.shutdown(self._lost, "ZOMBIE")

    def shard_ended(self, checkpointer: Any) -> None:
        self._processor.shutdown(checkpointer, "TERMINATE")

    def shutdown_requested(self, checkpointer: Any) -> None:
        if hasattr(self._processor, "shutdown_requested"):
            self._processor.shutdown_requested(checkpointer)


VERSIONS: dict[int, type[Version3]] = {1: Version1, 2: Version2, 3: Version3}


def version_of(found: object) -> int | None:
    """Return which version of the interface a class is written for; None if it is none of them.

    By its hooks; where those of several are there, by ``version``, which amazon_kclpy's bases set.
    """
    fitting = [version for version, hooks in _HOOKS.items() if all(_takes(found, *hook) for hook in hooks.items())]
    said = getattr(found, "version", None)
    return said if said in fitting else next(iter(fitting), None)


_HOOKS = {
    3: {"initialize": 1, "process_records": 1, "lease_lost": 1, "shard_ended": 1},
    2: {"initialize": 1, "process_records": 1, "shutdown": 1},
    1: {"initialize": 1, "process_records": 2, "shutdown": 2},
}
"""How much each hook takes besides ``self``."""


def _takes(found: object, hook: str, count: int) -> bool:
    method = getattr(found, hook, None) if isinstance(found, type) else None
    if not inspect.isfunction(method) or inspect.iscoroutinefunction(method):
        return False
    try:
        inspect.signature(method).bind(None, *range(count))
    except TypeError:
        return False
    return True
