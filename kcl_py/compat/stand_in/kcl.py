"""Stands for ``amazon_kclpy.kcl``, with the first version of the interface."""

from typing import Any

from kcl_py.compat.stand_in.checkpoint_error import CheckpointError
from kcl_py.errors import ProcessorError

__all__ = ["CheckpointError", "Checkpointer", "KCLProcess", "RecordProcessorBase"]


class Checkpointer:
    """For annotations; what processors receive has the same method."""

    def checkpoint(self, sequence_number: str | None = None, sub_sequence_number: int | None = None) -> None:
        raise NotImplementedError


class RecordProcessorBase:
    """The base of processors, version 1."""

    version = 1

    def initialize(self, shard_id: str) -> None:
        raise NotImplementedError

    def process_records(self, records: Any, checkpointer: Any) -> None:
        raise NotImplementedError

    def shutdown(self, checkpointer: Any, reason: str) -> None:
        raise NotImplementedError

    def shutdown_requested(self, checkpointer: Any) -> None:
        """Nothing to do."""


class KCLProcess:
    """What a file ends with that the daemon starts.

    Args:
        record_processor: an instance.
    """

    def __init__(self, record_processor: object, *_: object, **__: object) -> None:
        self._name = type(record_processor).__qualname__

    def run(self) -> None:
        raise ProcessorError(
            f"cannot run KCLProcess({self._name}()): expected amazon_kclpy and its daemon, found kcl_py, which needs "
            "no daemon; put the call under `if __name__ == '__main__':` and start the class with `kcl run`"
        )
