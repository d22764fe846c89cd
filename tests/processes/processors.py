"""Processors that the workers under test run: each record is a line on stdout before its batch is finished.

The file is copied into the folder of a test. A line is ``time shard sequence key number``; it is written at once, so
what was said is known even of a worker that is killed in the next moment.
"""

import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Event

import anyio

from kcl_py import Checkpointer, OwnedShard, RecordBatch, RecordProcessor
from kcl_py.executors.checkpointer import SyncCheckpointer

PACE_S = float(os.environ.get("PACE_S", "0"))
"""How long each batch takes."""
POISON = os.environ.get("POISON")
"""The number of the record that cannot be processed."""


class Recorder(RecordProcessor):
    """Says what it gets."""

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        self.say(batch)
        await anyio.sleep(PACE_S)

    def say(self, batch: RecordBatch) -> None:
        now_s = time.time()
        sys.stdout.writelines(
            f"{now_s:.6f} {batch.shard_id} {record.sequence_number} {record.partition_key} {record.data.decode()}\n"
            for record in batch
        )
        sys.stdout.flush()


class Stuck(Recorder):
    """Says what it gets, and never returns."""

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        self.say(batch)
        await anyio.sleep_forever()


class Stubborn(Recorder):
    """Says what it gets, and does not let itself be cancelled."""

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        self.say(batch)
        while True:
            with suppress(BaseException):
                await anyio.sleep_forever()


class Muttering(Recorder):
    """Says what it gets, and of each batch something on stderr, which it closes, off the event loop."""

    def process_records(self, batch: RecordBatch, checkpointer: SyncCheckpointer) -> None:  # type: ignore[override]
        sys.stderr.write(f"{len(batch)} records\n")
        sys.stderr.close()
        self.say(batch)


class HangsOnce(Recorder):
    """Takes two seconds to begin, and blocks at the first batch that any of them gets."""

    def initialize(self, shard: OwnedShard) -> None:  # type: ignore[override]
        time.sleep(2.0)

    def process_records(self, batch: RecordBatch, checkpointer: SyncCheckpointer) -> None:  # type: ignore[override]
        if not Path("hung").exists():
            Path("hung").touch()
            Event().wait()
        self.say(batch)


class Blocked(Recorder):
    """Says what it gets, and blocks its thread or its process for ever."""

    def process_records(self, batch: RecordBatch, checkpointer: SyncCheckpointer) -> None:  # type: ignore[override]
        self.say(batch)
        Event().wait()


class Blocking(Recorder):
    """Computes on the event loop until there is a file of that name."""

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        self.say(batch)
        compute()


def compute() -> None:
    while not Path("computed").exists():
        pass


class Interrupting(Recorder):
    """Ends the program, or so it believes."""

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        raise KeyboardInterrupt


class Picky(Recorder):
    """Raises instead of taking a batch with the poison."""

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        if any(record.data.decode() == POISON for record in batch):
            raise ValueError("cannot stomach this")
        self.say(batch)
