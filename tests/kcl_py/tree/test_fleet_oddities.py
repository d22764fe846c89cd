"""Fleets in unusual places: without a worker table, beside rows of the long dead, on shards that are gone."""

import asyncio

import pytest
from structlog.testing import LogCapture

from kcl_py.errors import RejectedError
from kcl_py.leases.memory import MemoryLeaseStore
from kcl_py.leases.row import WorkerRow
from kcl_py.leases.view import REMEMBERED_S
from kcl_py.processor import Checkpointer
from kcl_py.records import RecordBatch
from kcl_py.tree.audit import LONGEST_S
from tests.kcl_py.tree.fleet import FAILOVER_S, Fleet
from tests.kcl_py.tree.wire import LATENCY_S, Fault
from tests.simloop import simulated


class WithoutWorkers(MemoryLeaseStore):
    """A store whose worker table could not be made."""

    @property
    def has_workers(self) -> bool:
        return False

    async def workers(self) -> tuple[WorkerRow, ...]:
        raise RejectedError("Scan", "workers", "AccessDeniedException")

    async def put_worker(self, row: WorkerRow) -> None:
        raise RejectedError("UpdateItem", "workers", "AccessDeniedException")

    async def delete_worker(self, worker: str) -> None:
        raise RejectedError("DeleteItem", "workers", "AccessDeniedException")


@simulated
async def test_fleet_shares_and_survives_without_a_worker_table() -> None:
    """The owners that the lease rows name stand in for it: slower, but nothing is lost and nobody starves."""
    fleet = Fleet(shards=4)
    fleet.store = WithoutWorkers()
    first = fleet.start("A")
    fleet.put(40)
    await fleet.delivered()
    second = fleet.start("B")
    await fleet.until(lambda: len(fleet.held_by(second)) == 2, within_s=5 * FAILOVER_S)
    fleet.put(40)
    await fleet.delivered()
    first.crash()
    fleet.put(40)
    await fleet.delivered()
    assert fleet.held_by(second) == set(fleet.shards())
    assert second.error is None
    assert (await second.stop()).is_clean
    fleet.check()


@simulated
async def test_row_of_a_worker_that_is_long_dead_is_cleared_away() -> None:
    """A table that workers come to and crash in does not grow for ever; an hour is left for people to look."""
    fleet = Fleet(shards=1, leases={"failover_s": 300}, fetch={"idle_s": 60.0})
    dead, living = fleet.start("A"), fleet.start("B")
    await fleet.until(lambda: len(fleet.store.worker_items) == 2)
    dead.crash()
    await asyncio.sleep(REMEMBERED_S - 60)
    assert sorted(fleet.store.worker_items) == sorted([dead.owner, living.owner])
    await asyncio.sleep(180)
    assert list(fleet.store.worker_items) == [living.owner]
    await fleet.stopped()


@simulated
async def test_children_of_a_shard_that_aged_out_unread_are_read(log: LogCapture) -> None:
    """S3-55: a shard whose records have left the stream is completed, said aloud, and its children follow."""
    fleet = Fleet(shards=1)
    parent = fleet.shards()[0]
    fleet.put(10)
    first = fleet.start("A")
    await fleet.delivered()
    await first.stop()
    lost = set(fleet.put(5))
    fleet.split(parent)
    await asyncio.sleep(1)
    fleet.put_data -= lost
    fleet.put(20)
    second = fleet.start("B")
    second.wire.fail("open", Fault.MISSING, times=100, key=parent)
    second.wire.aged_out = frozenset({parent})
    await fleet.delivered()
    assert fleet.row(parent).has_ended
    assert not fleet.diary.done & lost
    [entry] = [entry for entry in log.entries if entry["event"] == "kcl_py.shard.aged_out"]
    assert entry["shard_id"] == parent
    await fleet.stopped()


@simulated
async def test_children_are_found_when_the_listing_is_behind_the_end_of_their_parent() -> None:
    """A child that the last listing did not show blocks nothing and is not forgotten."""
    fleet = Fleet(shards=1)
    parent = fleet.shards()[0]
    fleet.put(10)
    worker = fleet.start("A")
    await fleet.delivered()
    fleet.split(parent)
    await asyncio.sleep(0.1)
    worker.wire.aged_out = frozenset(fleet.shards()[1:])
    fleet.put(20)
    await asyncio.sleep(10)
    worker.wire.aged_out = frozenset()
    await fleet.delivered()
    await fleet.stopped()
    fleet.check()


@simulated
async def test_child_waits_for_a_parent_whose_row_was_deleted() -> None:
    """With one leg of a merge lost from the table its child is not begun, and both are read."""
    fleet = Fleet(shards=3)
    slow = fleet.shards()[0]

    async def work(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        await asyncio.sleep(5.0 if batch.shard_id == slow else 0.02)

    fleet.start("A", work=work)
    await fleet.until(lambda: len(fleet.rows()) == 3)
    fleet.split(fleet.shards()[2])
    await fleet.until(lambda: len(fleet.rows()) == 5)
    slow, other = fleet.shards()[3], fleet.shards()[1]
    fleet.put(60)
    fleet.merge(other, slow)
    await fleet.until(lambda: fleet.row(other).has_ended and fleet.diary.of(slow))
    fleet.put(40)
    fleet.start("B")
    await asyncio.sleep(1.5)
    del fleet.store.items[slow]
    await fleet.delivered()
    await fleet.stopped()
    fleet.check()


@pytest.mark.parametrize("start", ["trim_horizon", "latest", "2023-11-14T22:13:21Z"])
@pytest.mark.parametrize("has_crashed", [False, True])
@pytest.mark.parametrize("reshard", ["merge", "split"])
@pytest.mark.parametrize("without", [0, 1])
@simulated
async def test_nothing_is_lost_when_the_row_of_one_first_shard_could_not_be_made(
    start: str, has_crashed: bool, reshard: str, without: int
) -> None:
    """The shard closes before its row can be made, and is read from where the others began, whoever reads it."""
    fleet = Fleet(shards=2, start=start)
    missing = fleet.shards()[without]
    await asyncio.sleep(5)
    first = fleet.start("A")
    first.wire.fail("create", Fault.THROTTLED, times=10**9, key=missing)
    await fleet.until(lambda: first.wire.of("create", key=missing) and fleet.rows())
    fleet.put(40)
    if reshard == "merge":
        fleet.merge(*fleet.shards())
    else:
        fleet.split(missing)
    await asyncio.sleep(30)
    fleet.put(20)
    if has_crashed:
        first.crash()
        fleet.start("B")
    else:
        first.wire.recover()
    await fleet.delivered()
    await fleet.stopped()
    fleet.check()


@simulated
async def test_reading_begins_at_the_first_listing_when_no_row_can_be_made_for_minutes() -> None:
    """At ``latest``: what is put meanwhile is not passed over, not even in shards that have closed by then."""
    fleet = Fleet(shards=2, start="latest")
    await asyncio.sleep(5)
    worker = fleet.start("A")
    worker.wire.fail("create", Fault.THROTTLED, times=10**9)
    await fleet.until(lambda: worker.wire.of("create"))
    fleet.put(40)
    fleet.merge(*fleet.shards())
    await asyncio.sleep(200)
    fleet.put(20)
    worker.wire.recover()
    await fleet.delivered()
    await fleet.stopped()
    fleet.check()


@simulated
async def test_first_rows_are_made_with_the_next_tick_when_their_creation_was_throttled() -> None:
    """No new listing is waited for, which comes each minute."""
    fleet = Fleet(shards=2)
    fleet.put(10)
    worker = fleet.start("A")
    worker.wire.fail("create", Fault.THROTTLED)
    await fleet.delivered(within_s=2)
    await fleet.stopped()


@simulated
async def test_first_rows_of_a_large_stream_are_made_side_by_side() -> None:
    """The first record of 256 shards waits for a few round trips, not for 256."""
    fleet = Fleet(shards=256)
    worker = fleet.start("A")
    await fleet.until(lambda: len(fleet.rows()) == 256)
    began_at = worker.wire.of("create")[0].at
    assert fleet.loop.time() < began_at + 256 * 2 * LATENCY_S[0] / 4
    await fleet.stopped()


@simulated
async def test_child_of_a_merge_waits_for_the_parent_that_a_stale_listing_hides() -> None:
    """One leg has ended, the other has no row yet: what an old listing does not show is not as good as read."""
    fleet, released = Fleet(shards=2), asyncio.Event()
    first, second = fleet.shards()

    async def work(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        if batch.shard_id == first:
            await released.wait()

    fleet.put(40)
    fleet.split(first)
    await asyncio.sleep(1)
    fleet.put(40)
    leg = fleet.shards()[3]
    fleet.merge(leg, second)
    await asyncio.sleep(1)
    fleet.put(40)
    child = fleet.shards()[4]
    worker = fleet.start("A", work=work)
    await fleet.until(lambda: child in fleet.rows())
    assert leg not in fleet.rows()
    worker.wire.aged_out = frozenset({leg, child})
    await asyncio.sleep(LONGEST_S + 10)
    assert fleet.row(child).counter == 0, "nobody has taken it"
    worker.wire.aged_out = frozenset()
    released.set()
    await fleet.delivered()
    await fleet.stopped()
    fleet.check()
