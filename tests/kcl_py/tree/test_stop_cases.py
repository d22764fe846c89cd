"""Stops and ends that went wrong for users of other clients (docs/cases.md, "Stopping"), on whole workers.

Each test says in its name what holds instead.
"""

import asyncio
import gc
import random
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest
from structlog.testing import LogCapture

from kcl_py.leases.items import item_from_row
from kcl_py.leases.row import Native
from kcl_py.processor import Checkpointer
from kcl_py.records import RecordBatch
from tests.kcl_py.tree.fleet import FAILOVER_S, Fleet, Member, running
from tests.kcl_py.tree.wire import Fault
from tests.simloop import simulated

HEARTBEAT_S = FAILOVER_S / 3


def steal(fleet: Fleet, shard_id: str, epoch: int) -> None:
    """Let another worker have taken a shard, that then does not renew it."""
    row = fleet.row(shard_id)
    native = Native(token=f"stolen {epoch}", owner=f"thief/{epoch}")
    theft = replace(row, owner=native.owner, counter=row.counter + 9, native=native)
    fleet.store.items[shard_id] = item_from_row(theft)


def has_begun(fleet: Fleet, member: Member) -> bool:
    """Whether a worker has been handed records."""
    return any(handover.worker == member.name for handover in fleet.diary.handovers)


def has_called(fleet: Fleet, hook: str, times: int) -> bool:
    return len(fleet.diary.called(hook)) == times


def longest_gap_s(fleet: Fleet, member: Member, shard_id: str, since: float) -> float:
    """How long a shard was not renewed."""
    sent = [call.at for call in member.wire.of("heartbeat", key=shard_id) if call.at > since]
    return max(after - before for before, after in pairwise([since, *sent, fleet.loop.time()]))


@pytest.mark.parametrize("mode", ["auto", "manual"])
@simulated
async def test_drain_longer_than_a_lease_keeps_it_and_stores_what_it_has_finished(mode: str) -> None:
    """B077: twenty stops in the middle, each while a batch takes two failover times; nothing ever comes twice."""
    fleet = Fleet(shards=2, delivery={"batch": {"max_records": 5}}, checkpoint={"mode": mode})

    async def take_long(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        await asyncio.sleep(2 * FAILOVER_S)
        if mode == "manual":
            await checkpointer.checkpoint(batch)

    fleet.put(400)
    for number in range(20):
        member = fleet.start(f"w{number}", work=take_long)
        await fleet.until(partial(has_begun, fleet, member))
        await asyncio.sleep(0.3 * number)
        stopped_at = fleet.loop.time()
        assert (await member.stop()).is_clean
        assert fleet.loop.time() < stopped_at + 2 * FAILOVER_S + 1
        assert not fleet.diary.called("lease_lost")
    times = Counter(data for handover in fleet.diary.handovers for data in handover.data)
    assert set(times.values()) == {1}
    for shard_id in fleet.shards():
        assert fleet.row(shard_id).checkpoint == fleet.diary.of(shard_id)[-1].records[-1].sequence_number
    assert len(fleet.diary.called("shutdown_requested")) == 40


@simulated
async def test_shard_that_ends_takes_nothing_from_nine_others() -> None:
    """B080: one of ten is stolen; before it is back, each of the others has been handed all that was put meanwhile."""
    fleet = Fleet(shards=10)
    await running(fleet, shards=10)
    [stolen, *others] = fleet.shards()
    steal(fleet, stolen, 1)
    for _ in range(10):
        fleet.put(100)
        await asyncio.sleep(0.1)
    await asyncio.sleep(1.5)  # a read each second
    assert [call.shard_id for call in fleet.diary.called("lease_lost")] == [stolen]
    assert fleet.row(stolen).owner == "thief/1"
    for shard_id in others:
        assert set(fleet.truth(shard_id)) <= fleet.diary.done
        assert len(fleet.diary.called("initialize", shard_id=shard_id)) == 1
    await fleet.delivered()
    await fleet.stopped()
    fleet.check()


@simulated
async def test_shard_that_is_lost_and_won_fifty_times_leaves_nothing_behind() -> None:
    """B081: as many tasks, timers and processors as at first, and one request for one heartbeat."""
    fleet = Fleet(shards=2)
    await running(fleet, shards=2)
    worker, [coming_and_going, other] = fleet.members["A"], fleet.shards()

    async def census() -> tuple[int, int, int]:
        """The least of several looks: what is on its way at one of them is not at another."""
        looks = []
        for _ in range(40):
            await asyncio.sleep(0.1)
            timers = [timer for _, _, timer in fleet.loop._timers if not timer.cancelled()]
            looks.append((len(fleet.loop.left()), len(timers)))
        gc.collect()
        processors = [each for each in gc.get_objects() if type(each) is worker._processor]
        least_tasks, least_timers = (min(each) for each in zip(*looks, strict=True))
        return least_tasks, least_timers, len(processors)

    at_first = await census()
    for number in range(50):
        steal(fleet, coming_and_going, number)
        await fleet.until(partial(has_called, fleet, "lease_lost", number + 1))
        await fleet.until(partial(has_called, fleet, "initialize", number + 3))
    assert fleet.held_by(worker) == {coming_and_going, other}
    assert await census() == at_first
    sent = worker.wire.of("heartbeat", key=coming_and_going)[-5:]
    assert all(after.at - before.at > HEARTBEAT_S / 2 for before, after in pairwise(sent))
    fleet.put(20)
    await fleet.delivered()
    await fleet.stopped()
    fleet.check()


@pytest.mark.parametrize("seed", range(20))
@simulated
async def test_worker_that_is_cancelled_at_any_moment_stores_what_is_finished_and_lets_go(seed: int) -> None:
    """B083: while it reads, hands over, renews and stores, all at once."""
    fleet = Fleet(shards=3, seed=seed, delivery={"batch": {"max_records": 3}})
    chance = random.Random(seed)
    await running(fleet, shards=3)
    member = fleet.members["A"]
    cancelled_at = fleet.loop.time() + chance.uniform(0.0, 2.5)
    while fleet.loop.time() < cancelled_at:
        fleet.put(9)
        await asyncio.sleep(chance.uniform(0.0, 0.05))
    member.cancel()
    await member.ended()
    assert fleet.loop.time() < cancelled_at + 2
    assert not fleet.store.worker_items
    for shard_id in fleet.shards():
        assert fleet.row(shard_id).owner is None
        done = [each for each in fleet.diary.of(shard_id) if each.is_done]
        assert fleet.row(shard_id).checkpoint == done[-1].records[-1].sequence_number
    assert not fleet.loop.left()


@simulated
async def test_hook_that_swallows_its_cancellation_is_named_and_keeps_no_sibling_from_being_renewed(
    log: LogCapture,
) -> None:
    """B088: its shard is stolen while it goes on for ever; the others are renewed and handed records as before."""
    fleet = Fleet(shards=3)
    deaf_one = fleet.shards()[0]

    async def swallow(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        while batch.shard_id == deaf_one:
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                continue

    worker = fleet.start("A", work=swallow)
    fleet.put(30)
    await fleet.until(lambda: len(fleet.diary.handovers) == 3 and len(fleet.held_by(worker)) == 3)
    begun_at = fleet.loop.time()
    steal(fleet, deaf_one, 1)
    for _ in range(10):
        fleet.put(30)
        await asyncio.sleep(0.5)
    [named] = [entry for entry in log.entries if entry["event"] == "kcl_py.processor.abandoned"]
    assert "process_records" in named["hook"]
    assert deaf_one in str(named)
    for shard_id in fleet.shards()[1:]:
        assert longest_gap_s(fleet, worker, shard_id, begun_at) <= 1.5 * HEARTBEAT_S
        assert set(fleet.truth(shard_id)[:-30]) <= fleet.diary.done
    stopped_at = fleet.loop.time()
    await worker.stop(grace_s=2)
    assert fleet.loop.time() < stopped_at + 2 + 1.1


@simulated
async def test_shard_whose_reads_are_never_answered_keeps_no_other_from_its_records() -> None:
    """B146: each read ends at its deadline; the others are read and all are renewed, and it is read once it can be."""
    fleet = Fleet(shards=3)
    await running(fleet, shards=3)
    worker, [mute, *others] = fleet.members["A"], fleet.shards()
    for operation in ("fetch", "open"):
        worker.wire.fail(operation, Fault.LOST_REQUEST, times=1_000_000, key=mute)
    begun_at = fleet.loop.time()
    for _ in range(60):
        fleet.put(30)
        await asyncio.sleep(0.5)
    assert all(longest_gap_s(fleet, worker, shard_id, begun_at) <= 1.5 * HEARTBEAT_S for shard_id in fleet.shards())
    for shard_id in others:
        assert set(fleet.truth(shard_id)[:-60]) <= fleet.diary.done
    assert len(worker.wire.of("fetch", "open", key=mute)) > 5
    worker.wire.recover()
    await fleet.delivered()
    await fleet.stopped()
    fleet.check()
