#!/usr/bin/env python3
# mypy: ignore-errors
"""A processor written for amazon_kclpy, version 2 of its interface; it writes what it sees into a file.

Ran once under Amazon's own daemon, which is how ``expected_v2.json`` came to be.
"""

import json
import os

from amazon_kclpy import kcl
from amazon_kclpy.v2 import processor


class RecordProcessor(processor.RecordProcessorBase):
    """Checkpoints each batch as a whole."""

    def __init__(self):
        self._shard_id = None

    def initialize(self, initialize_input):
        self._shard_id = initialize_input.shard_id
        self._write("initialize", sequence_number=initialize_input.sequence_number)

    def process_records(self, process_records_input):
        self._write("process_records", records=[record.data for record in process_records_input.records])
        self._checkpoint(process_records_input.checkpointer)

    def shutdown(self, shutdown_input):
        self._write("shutdown", reason=shutdown_input.reason, action=shutdown_input.action)
        self._checkpoint(shutdown_input.checkpointer)

    def shutdown_requested(self, shutdown_requested_input):
        self._write("shutdown_requested", action=shutdown_requested_input.action)
        self._checkpoint(shutdown_requested_input.checkpointer)

    def _checkpoint(self, checkpointer):
        try:
            checkpointer.checkpoint()
        except kcl.CheckpointError as error:
            self._write("checkpoint", error=error.value)
        else:
            self._write("checkpoint", error=None)

    def _write(self, what, **facts):
        with open(os.environ["SAMPLE_OUTPUT"], "a") as file:
            file.write(json.dumps({"shard_id": self._shard_id, "what": what, **facts}) + "\n")


if __name__ == "__main__":
    kcl.KCLProcess(RecordProcessor()).run()
