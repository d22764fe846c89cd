"""Counts the flights of a stream: the worker of ``make demo``.

Each record that is handed over is written down as one line (shard, sequence number, flight, partition key, separated
by tabs) in a file of this process, in the folder FLIGHTS_OUT, or here. The lines are on disk's side of the process
before ``process_records`` returns: what a killed worker was handed stays known.
"""

import json
import os
from pathlib import Path

from kcl_py import Checkpointer, OwnedShard, RecordBatch, RecordProcessor


def identity(payload: bytes) -> str:
    """Return what makes a flight unique: the hour it was to leave, its carrier and its number."""
    flight = json.loads(payload)
    return f"{flight['time_hour']} {flight['carrier']} {flight['flight']}"


class FlightCounter(RecordProcessor):
    """Writes down each flight of one shard."""

    async def initialize(self, shard: OwnedShard) -> None:
        folder = Path(os.environ.get("FLIGHTS_OUT", "."))
        self.facts = (folder / f"{os.getpid()}.tsv").open("ab")

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        lines = [
            f"{batch.shard_id}\t{record.sequence_number}\t{identity(record.data)}\t{record.partition_key}\n"
            for record in batch
        ]
        self.facts.write("".join(lines).encode())
        self.facts.flush()

    async def shard_ended(self, checkpointer: Checkpointer) -> None:
        self.facts.close()

    async def shutdown_requested(self, checkpointer: Checkpointer) -> None:
        self.facts.close()

    async def lease_lost(self) -> None:
        self.facts.close()
