"""Stands for ``amazon_kclpy.v2.processor``."""

from typing import Any


class RecordProcessorBase:
    """The base of processors, version 2."""

    version = 2

    def initialize(self, initialize_input: Any) -> None:
        raise NotImplementedError

    def process_records(self, process_records_input: Any) -> None:
        raise NotImplementedError

    def shutdown(self, shutdown_input: Any) -> None:
        raise NotImplementedError

    def shutdown_requested(self, shutdown_requested_input: Any) -> None:
        """Nothing to do."""
