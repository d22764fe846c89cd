"""Stands for ``amazon_kclpy.v3.processor``."""

from typing import Any


class RecordProcessorBase:
    """The base of processors, version 3."""

    version = 3

    def initialize(self, initialize_input: Any) -> None:
        raise NotImplementedError

    def process_records(self, process_records_input: Any) -> None:
        raise NotImplementedError

    def lease_lost(self, lease_lost_input: Any) -> None:
        raise NotImplementedError

    def shard_ended(self, shard_ended_input: Any) -> None:
        raise NotImplementedError

    def shutdown_requested(self, shutdown_requested_input: Any) -> None:
        raise NotImplementedError
