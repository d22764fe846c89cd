"""Large fleets: what they cost is in proportion, and a quiet one costs no more than docs/leases.md says."""

import asyncio
import gc
import tracemalloc
from typing import Any

import pytest

from bench import cost
from kcl_py.leases import wide
from kcl_py.leases.assignment import Fleet as Seen
from kcl_py.leases.assignment import Plan, plan
from kcl_py.tree import outlook
from tests.kcl_py.tree.fleet import Fleet
from tests.simloop import sim_loop, simulated

SHARD_BYTES = 64 * 1024
"""What a held shard may take beside its buffers."""
SLOW: dict[str, Any] = {"fetch": {"idle_s": 30}, "leases": {"failover_s": 30}}


@simulated
async def test_worker_takes_thousands_of_shards_at_once_and_a_new_coordinator_adopts_them() -> None:
    """No mailbox is too small for what concerns each shard."""
    shards = 1100
    fleet = Fleet(shards=shards, **SLOW)
    worker = fleet.start("A")
    await fleet.until(lambda: len(worker.wire.of("take")) >= shards, each_s=0.5)
    await asyncio.sleep(1)
    takes = len(worker.wire.of("take"))
    worker.kill_actor("coordinator")
    await asyncio.sleep(10)
    assert worker.error is None
    assert len(fleet.held_by(worker)) == shards
    assert len(worker.wire.of("take")) == takes, "it goes on with what it has"
    await worker.stop()
    assert not any(row.holder for row in fleet.rows().values())


@simulated
async def test_rows_of_a_new_stream_are_made_about_once_whoever_starts_with_others() -> None:
    """Each try that comes second is a write in vain, and there are as many as workers."""
    fleet = Fleet(shards=400, **SLOW)
    members = [fleet.start(name) for name in "ABCDEFGH"]
    await fleet.until(lambda: len(fleet.rows()) == 400 and all(row.holder for row in fleet.rows().values()), each_s=0.5)
    assert sum(len(member.wire.of("create")) for member in members) < 3 * 400
    await fleet.stopped()


@simulated
async def test_workers_of_a_large_fleet_do_not_reach_for_what_others_have_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They have seen each row when it was free, and see only after a while again that hardly any still is."""
    monkeypatch.setattr(wide, "LARGE", 100)
    monkeypatch.setattr(wide, "ROWS_A_SECOND", 10.0)
    fleet = Fleet(shards=400, **SLOW)
    members = [fleet.start(name) for name in "ABCDEFGH"]
    await asyncio.sleep(25)
    assert sum(len(fleet.held_by(member)) for member in members) == 400
    assert sum(len(member.wire.of("take")) for member in members) < 3 * 400
    await fleet.stopped()


@simulated
async def test_held_shard_takes_little_memory() -> None:
    """Its actors, their mailboxes, timers and loggers, its row in the worker, and its part of the service in memory."""
    loop = sim_loop()
    loop.set_task_factory(None)  # else it keeps every task
    sizes = {}
    for shards in (20, 120):
        tracemalloc.start()
        fleet = Fleet(shards=shards, seed=shards, **SLOW)
        worker = fleet.start(f"A{shards}")
        await asyncio.sleep(30)
        assert len(fleet.held_by(worker)) == shards
        worker.wire.calls.clear()
        gc.collect()
        sizes[shards] = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        await worker.stop()
    assert (sizes[120] - sizes[20]) / 100 < SHARD_BYTES


@simulated
async def test_quiet_fleet_plans_nothing_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heartbeats are no news, however many shards there are."""
    fleet = Fleet(shards=12, fetch={"idle_s": 30}, leases={"failover_s": 10})
    members = [fleet.start(name) for name in "ABC"]
    fleet.put(100)
    await asyncio.sleep(65)
    plans: list[Plan] = []

    def noted(seen: Seen) -> Plan:
        plans.append(plan(seen))
        return plans[-1]

    with monkeypatch.context() as patch:
        patch.setattr(outlook, "plan", noted)
        scans = len(members[0].wire.of("scan"))
        await asyncio.sleep(60)
        assert plans == []
        assert len(members[0].wire.of("scan")) >= scans + 10
        members[1].crash()
        await asyncio.sleep(60)
        assert any(each.takes for each in plans)
    await fleet.stopped()


@pytest.mark.parametrize(("shards", "workers"), [(10, 1), (12, 3)])
def test_quiet_fleet_costs_what_the_formulas_say(shards: int, workers: int) -> None:
    """Requests of each kind, and units; heartbeats vary by their jitter."""
    found, told = cost.measured(shards, workers), cost.steady(shards, workers)
    assert found.quiet.requests.keys() == told.requests.keys()
    for name, count in found.quiet.requests.items():
        assert count == pytest.approx(told.requests[name], rel=0.02), name
    assert found.quiet.writes == pytest.approx(told.writes, rel=0.02)
    assert found.quiet.reads == pytest.approx(told.reads, rel=0.15), "units are rounded up"
    assert found.row_bytes == pytest.approx(cost.ROW_BYTES, rel=0.02)
    assert found.worker_bytes < cost.WORKER_BYTES
    assert found.listings == 1, "one worker lists for all"
