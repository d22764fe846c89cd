"""Cases.md B090: a hook that blocks for longer than a lease lasts, in a thread."""

import threading
from itertools import pairwise
from typing import ClassVar

import pytest
from anyio.lowlevel import checkpoint

from kcl_py import RecordBatch, RecordProcessor
from kcl_py.executors.checkpointer import SyncCheckpointer
from kcl_py.testing import FakeStream

pytestmark = pytest.mark.asyncio
SHARD = "shardId-000000000000"
FAILOVER_S = 3.0


class Blocking(RecordProcessor):
    """Blocks its thread until the test lets it go."""

    has_begun: ClassVar[threading.Event]
    may_end: ClassVar[threading.Event]

    def process_records(self, batch: RecordBatch, checkpointer: SyncCheckpointer) -> None:  # type: ignore[override]
        self.has_begun.set()
        assert self.may_end.wait(30)


async def test_lease_of_a_hook_that_blocks_its_thread_is_renewed() -> None:
    """For three failover times: with each heartbeat, so nobody takes it, and the batch is finished once."""
    Blocking.has_begun, Blocking.may_end = threading.Event(), threading.Event()
    stream = FakeStream()
    stream.put("a")
    options = {"delivery": {"executor": "thread"}, "leases": {"failover_s": FAILOVER_S}}
    table = stream.service.leases(stream.config(**options))
    counters = []
    async with stream.worker(Blocking, **options):
        while not Blocking.has_begun.is_set():
            await stream.clock.advance(0.1)
            await checkpoint()  # the thread begins when it likes
        owner = table.rows()[SHARD].owner
        for _ in range(9):
            await stream.clock.advance(FAILOVER_S / 3)
            counters.append(table.rows()[SHARD].counter)
        assert table.rows()[SHARD].owner == owner
        Blocking.may_end.set()
    assert all(before < after for before, after in pairwise(counters)), counters
    assert stream.checkpoints == {SHARD: stream.records(SHARD)[0].sequence_number}
