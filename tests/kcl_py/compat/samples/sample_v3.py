#!/usr/bin/env python3
# mypy: ignore-errors
"""A processor written for amazon_kclpy, version 3 of its interface; it writes what it sees into a file.

Ran once under Amazon's own daemon, which is how ``expected_v3.json`` came to be.
"""

import json
import os

from amazon_kclpy import kcl
from amazon_kclpy.v3 import processor


class RecordProcessor(processor.RecordProcessorBase):
    """Checkpoints as users do, with the mistakes that they make."""

    def __init__(self):
        self._shard_id = None
        self._batches = 0

    def initialize(self, initialize_input):
        self._shard_id = initialize_input.shard_id
        self._write(
            "initialize",
            sequence_number=initialize_input.sequence_number,
            sub_sequence_number=initialize_input.sub_sequence_number,
            action=initialize_input.action,
        )

    def process_records(self, process_records_input):
        self._batches += 1
        records = process_records_input.records
        self._write("process_records", records=[_seen(record) for record in records])
        checkpointer = process_records_input.checkpointer
        first, last = records[0], records[-1]
        if self._batches == 1:
            self._checkpoint(checkpointer, "the first record", first.sequence_number, first.sub_sequence_number)
            self._checkpoint(checkpointer, "the first record again", first.sequence_number)
            self._checkpoint(checkpointer, "a negative sub-sequence number", last.sequence_number, -1)
            self._checkpoint(checkpointer, "beyond the batch", str(int(last.sequence_number) + 1))
            self._checkpoint(checkpointer, "no number", "abc")
            self._checkpoint(checkpointer, "the empty text", "")
            self._checkpoint(checkpointer, "a sentinel", "TRIM_HORIZON")
            self._checkpoint(checkpointer, "the end of the batch")
            self._checkpoint(checkpointer, "an older record", first.sequence_number)
            self._checkpoint(checkpointer, "the last record, as an int", int(last.sequence_number))
        elif self._batches == 2:
            self._checkpoint(checkpointer, "between two records", str(int(first.sequence_number) + 1))
            self._checkpoint(checkpointer, "the last record", last.sequence_number)

    def lease_lost(self, lease_lost_input):
        self._write("lease_lost", action=lease_lost_input.action)

    def shard_ended(self, shard_ended_input):
        self._write("shard_ended", action=shard_ended_input.action)
        self._checkpoint(shard_ended_input.checkpointer, "the end of the shard")

    def shutdown_requested(self, shutdown_requested_input):
        self._write("shutdown_requested", action=shutdown_requested_input.action)
        self._checkpoint(shutdown_requested_input.checkpointer, "the end of what was handed over")

    def _checkpoint(self, checkpointer, what, sequence_number=None, sub_sequence_number=None):
        try:
            checkpointer.checkpoint(sequence_number, sub_sequence_number)
        except kcl.CheckpointError as error:
            self._write("checkpoint", at=what, error=error.value, text=str(error))
        else:
            self._write("checkpoint", at=what, error=None)

    def _write(self, what, **facts):
        with open(os.environ["SAMPLE_OUTPUT"], "a") as file:
            file.write(json.dumps({"shard_id": self._shard_id, "what": what, **facts}) + "\n")


def _seen(record):
    arrived = record.approximate_arrival_timestamp
    return {
        "binary_data": record.binary_data.hex(),
        "data": record.data,
        "partition_key": record.partition_key,
        "sequence_number": record.sequence_number,
        "sub_sequence_number": record.sub_sequence_number,
        "timestamp_millis": record.timestamp_millis,
        "approximate_arrival_timestamp": str(arrived),
        "has_zone": arrived.tzinfo is not None,
        "get": {key: record.get(key) for key in ("action", "data", "partitionKey", "sequenceNumber")},
        "item": [record["approximateArrivalTimestamp"], record["subSequenceNumber"]],
    }


if __name__ == "__main__":
    kcl.KCLProcess(RecordProcessor()).run()
