"""Cases.md B090: a hook that blocks for longer than a lease lasts, in a thread."""

from itertools import pairwise

import pytest

from kcl_py.testing import FakeStream
from tests.kcl_py.executors.blocking import Blocking, begin_anew, until_begun

pytestmark = pytest.mark.asyncio
SHARD = "shardId-000000000000"
FAILOVER_S = 3.0


async def test_lease_of_a_hook_that_blocks_its_thread_is_renewed() -> None:
    """For three failover times: with each heartbeat, so nobody takes it, and the batch is finished once."""
    begin_anew()
    stream = FakeStream()
    stream.put("a")
    options = {"delivery": {"executor": "thread"}, "leases": {"failover_s": FAILOVER_S}}
    table = stream.service.leases(stream.config(**options))
    counters = []
    async with stream.worker(Blocking, **options):
        await until_begun(stream)
        owner = table.rows()[SHARD].owner
        for _ in range(9):
            await stream.clock.advance(FAILOVER_S / 3)
            counters.append(table.rows()[SHARD].counter)
        assert table.rows()[SHARD].owner == owner
        Blocking.may_end.set()
    assert all(before < after for before, after in pairwise(counters)), counters
    assert stream.checkpoints == {SHARD: stream.records(SHARD)[0].sequence_number}
