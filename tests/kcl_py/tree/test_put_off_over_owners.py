"""What a processor has put off, over a change of owner."""

import asyncio

import pytest

from kcl_py import Record, RecordProcessor, Retry
from tests.kcl_py.tree.fleet import FAILOVER_S, Fleet
from tests.simloop import simulated

WAIT_S = 60.0


@pytest.mark.parametrize("is_clean", [True, False], ids=["it stops", "it dies"])
@simulated
async def test_record_that_was_put_off_is_not_due_sooner_for_the_next_owner(is_clean: bool) -> None:
    """S2-13: records of other keys do not wait for it meanwhile, and it is not lost."""
    fleet = Fleet(shards=1)
    seen: list[tuple[bytes, float]] = []

    class PutsOff(RecordProcessor):
        async def process(self, record: Record) -> Retry | None:
            seen.append((record.data, fleet.loop.time()))
            is_first = [data for data, _ in seen].count(record.data) == 1
            return Retry(after_s=WAIT_S) if record.partition_key == "later" and is_first else None

    [later] = fleet.put(1, key="later")
    first = fleet.start("A")
    first._processor = PutsOff
    await fleet.until(lambda: seen)
    put_off_at = seen[0][1]
    await asyncio.sleep(FAILOVER_S)  # with a heartbeat it comes into the row
    if is_clean:
        await first.stop()
    else:
        first.crash()
    [now] = fleet.put(1, key="now")
    fleet.start("B")._processor = PutsOff
    await fleet.until(lambda: len(seen) == 3)
    assert [data for data, _ in seen] == [later, now, later]
    assert seen[1][1] < put_off_at + WAIT_S / 2
    assert put_off_at + WAIT_S - 0.1 <= seen[2][1] < put_off_at + WAIT_S + 1
    await fleet.stopped()
