"""Fleets whose table is too large to be read all the time: as quick as others, at a fraction of the reads."""

import asyncio
from collections import Counter

import pytest
from structlog.testing import LogCapture

from kcl_py.leases import wide
from tests.kcl_py.tree.fleet import FAILOVER_S, Fleet, running
from tests.kcl_py.tree.wire import Fault
from tests.simloop import sim_loop, simulated

HEARTBEAT_S, TICK_S = FAILOVER_S / 3, FAILOVER_S / 10


@pytest.fixture(autouse=True)
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let any table count as large, and be read as a whole once a minute."""
    monkeypatch.setattr(wide, "LARGE", 0)
    monkeypatch.setattr(wide, "ROWS_A_SECOND", 0.01)


async def settled(fleet: Fleet, *, workers: int, shards: int) -> None:
    """Start workers and wait until each has its share and the rows are quiet."""
    await running(fleet, workers=workers, shards=shards)
    share = shards // workers
    await fleet.until(lambda: all(len(fleet.held_by(member)) == share for member in fleet.members.values()))
    begin = sim_loop().time()
    await fleet.until(lambda: sim_loop().time() > begin + 2 * FAILOVER_S)


@simulated
async def test_quiet_fleet_reads_the_whole_table_once_a_minute_and_no_row() -> None:
    """Workers that beat vouch for their rows."""
    fleet = Fleet(shards=6)
    await settled(fleet, workers=3, shards=6)
    before = {name: len(member.wire.of("scan", "read")) for name, member in fleet.members.items()}
    begin = sim_loop().time()
    await fleet.until(lambda: sim_loop().time() > begin + 240, within_s=300)
    for name, member in fleet.members.items():
        assert len(member.wire.of("scan", "read")) - before[name] <= 6
    fleet.check()


@simulated
async def test_shards_of_a_dead_worker_are_taken_within_the_bound() -> None:
    """F after its silence was noticed, which takes a heartbeat and two ticks; one tick later by who is not first."""
    fleet = Fleet(shards=6)
    await settled(fleet, workers=3, shards=6)
    first, *others = fleet.members.values()
    first.crash()
    begin = sim_loop().time()
    await fleet.until(lambda: not fleet.held_by(first))
    assert sim_loop().time() - begin < FAILOVER_S + HEARTBEAT_S + 5 * TICK_S
    fleet.put(60)
    await fleet.delivered()
    assert sum(len(member.wire.of("scan")) for member in others) < 20
    fleet.check()


@simulated
async def test_holder_hears_of_a_request_within_a_tick_or_two() -> None:
    """The receiver's row names the shard: at F = 30 s, the holder's own heartbeat would show it ten seconds later."""
    fleet = Fleet(shards=6, leases={"failover_s": 30})
    await running(fleet, workers=1, shards=6)
    second, asked_at, waited_s = fleet.start("Z"), dict[str, float](), list[float]()

    def is_even() -> bool:
        for key, row in fleet.rows().items():
            if row.in_handoff:
                asked_at.setdefault(key, sim_loop().time())
            elif key in asked_at:
                waited_s.append(sim_loop().time() - asked_at.pop(key))
        return len(fleet.held_by(second)) == 3

    await fleet.until(is_even)
    assert len(waited_s) == 3
    assert max(waited_s) < 2 * 30 / 10
    fleet.put(60)
    await fleet.delivered()
    fleet.check()


@simulated
async def test_child_that_its_parent_has_no_room_for_is_found_by_its_key() -> None:
    """The ended parent is named, and names its children: no look at the whole table, and none at the stream."""
    fleet = Fleet(shards=1, leases={"max_leases": 1})
    await running(fleet, workers=2, shards=1)
    begin = sim_loop().time()
    await fleet.until(lambda: sim_loop().time() > begin + 4 * FAILOVER_S)
    fleet.split(fleet.shards()[0])
    await fleet.until(lambda: all(len(fleet.held_by(member)) == 1 for member in fleet.members.values()), within_s=10)
    fleet.put(60)
    await fleet.delivered()
    fleet.check()


@pytest.mark.parametrize("holder_lives", [True, False])
@simulated
async def test_row_that_somebody_deletes_is_made_again_long_before_the_next_whole_look(holder_lives: bool) -> None:
    """Its holder finds it gone at the next heartbeat; if that one is dead, so do those who look after the silent."""
    fleet = Fleet(shards=6)
    await settled(fleet, workers=3, shards=6)
    first = next(iter(fleet.members.values()))
    key = min(fleet.held_by(first))
    if not holder_lives:
        first.crash()
    del fleet.store.items[key]
    begin = sim_loop().time()
    await fleet.until(lambda: key in fleet.rows() and fleet.row(key).owner)
    assert sim_loop().time() - begin < 3 * FAILOVER_S + 6 * HEARTBEAT_S
    fleet.put(60)
    await fleet.delivered()


@simulated
async def test_row_that_is_no_lease_any_more_keeps_nobody_from_the_other_rows() -> None:
    """One of a dead worker's rows cannot be read, and is due with all the others that it held."""
    fleet = Fleet(shards=6)
    await settled(fleet, workers=3, shards=6)
    first = next(iter(fleet.members.values()))
    broken, other = sorted(fleet.held_by(first))
    first.crash()
    fleet.store.items[broken] = {**fleet.store.items[broken], "checkpoint": "no position"}
    begin = sim_loop().time()
    await fleet.until(lambda: fleet.store.items[other]["leaseOwner"] != first.owner)
    assert sim_loop().time() - begin < FAILOVER_S + HEARTBEAT_S + 5 * TICK_S


@simulated
async def test_worker_whose_first_listing_failed_lists_again_a_heartbeat_later() -> None:
    """Before that it does nothing, and the next look at the whole table is far."""
    fleet = Fleet(shards=6)
    await settled(fleet, workers=1, shards=6)
    second = fleet.start("Z")
    second.wire.fail("list", Fault.THROTTLED, times=2)
    begin = sim_loop().time()
    await fleet.until(lambda: len(fleet.held_by(second)) == 3)
    assert sim_loop().time() - begin < 2 * FAILOVER_S + 4 * HEARTBEAT_S
    fleet.check()


@simulated
async def test_workers_that_read_rates_at_different_times_take_no_shard_from_each_other(log: LogCapture) -> None:
    """What one of them read a minute ago is no reason to move anything."""
    fleet = Fleet(shards=5, leases={"strategy": "throughput"})
    fleet.start("A")
    fleet.put(50, size_bytes=10_000)
    await asyncio.sleep(20)
    fleet.start("B")
    for _ in range(20):
        await asyncio.sleep(1)
        fleet.put(1, key="busy", size_bytes=50_000)
    await asyncio.sleep(120)
    taken = Counter(entry["shard_id"] for entry in log.entries if entry["event"] == "kcl_py.lease.taken")
    assert max(taken.values()) <= 3, "free, for its share, and once more when what was busy is quiet"
    await fleet.stopped()
    fleet.check()
