"""The processor of ``make fleet``: writes down each record, and when, before it is finished.

One file for each process, in the folder FLEET_OUT; a line is time, shard and sequence number, separated by tabs.
"""

import os
import time
from pathlib import Path

from kcl_py import Checkpointer, OwnedShard, RecordBatch, RecordProcessor


class Noting(RecordProcessor):
    """Writes down the records of one shard."""

    async def initialize(self, shard: OwnedShard) -> None:
        self.file = (Path(os.environ["FLEET_OUT"]) / f"{os.getpid()}.tsv").open("ab")

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        now_s = time.time()
        lines = [f"{now_s:.6f}\t{batch.shard_id}\t{record.sequence_number}\n" for record in batch]
        self.file.write("".join(lines).encode())
        self.file.flush()

    async def shard_ended(self, checkpointer: Checkpointer) -> None:
        self.file.close()

    async def shutdown_requested(self, checkpointer: Checkpointer) -> None:
        self.file.close()

    async def lease_lost(self) -> None:
        self.file.close()
