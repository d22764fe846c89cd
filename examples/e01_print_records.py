"""Print each record of a stream: the smallest processor there is.

kcl local --stream example:2                     # in one terminal; it says how to put a record
kcl run examples/e01_print_records.yaml          # in another
"""

from kcl_py import Checkpointer, RecordBatch, RecordProcessor


class PrintRecords(RecordProcessor):
    """One instance for each shard that this worker holds."""

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        for record in batch:
            print(batch.shard_id, record.partition_key, record.data.decode(errors="replace"), flush=True)
        # To return is to be finished: the checkpoint follows by itself, with the next heartbeat.
