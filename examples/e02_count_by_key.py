"""Count the records of each partition key, exactly: a record that comes again after a crash is not counted twice.

The counts of a shard lie in one file with the position up to which they count; both change in one rename, and only
then the checkpoint moves. So the file may be ahead of the checkpoint, never behind, and what comes again is known.

COUNTS_OUT=/tmp/counts kcl run examples/e02_count_by_key.yaml
"""

import json
import os
from collections import Counter
from pathlib import Path

from kcl_py import Checkpointer, OwnedShard, RecordBatch, RecordProcessor


class CountByKey(RecordProcessor):
    """Keeps the counts of one shard; here in a folder, in earnest in a database."""

    async def initialize(self, shard: OwnedShard) -> None:
        self.file = Path(os.environ.get("COUNTS_OUT", "."), f"{shard.shard_id}.json")
        stored = self.file.read_text() if self.file.exists() else '{"position": -1, "counts": {}}'
        state = json.loads(stored)
        self.position: int = state["position"]
        self.counts: Counter[str] = Counter(state["counts"])

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        new = [record for record in batch if record.position.value > self.position]
        self.counts.update(record.partition_key for record in new)
        self.position = max(self.position, batch.last.value)
        self.store()
        await checkpointer.checkpoint(batch)  # mode: manual, so nothing else moves the checkpoint
        print(f"{self.file.stem}: {self.counts.total()} records, {len(self.counts)} keys", flush=True)

    def store(self) -> None:
        """Replace the file as a whole: a crash leaves the old one or the new one."""
        unfinished = self.file.with_suffix(".tmp")
        unfinished.write_text(json.dumps({"position": self.position, "counts": self.counts}))
        unfinished.replace(self.file)
