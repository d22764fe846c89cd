"""Who of a fleet lists the shards, and when: one for all, others where rows and shards do not fit together."""

import asyncio

import pytest

from kcl_py.leases.assignment import rendezvous
from kcl_py.leases.store import Scan
from kcl_py.tree.audit import OTHERS_LIST
from tests.kcl_py.tree.fleet import FAILOVER_S, Fleet, Member, running
from tests.kcl_py.tree.wire import Fault
from tests.simloop import simulated

TICK_S = FAILOVER_S / 10
HEARTBEAT_S = FAILOVER_S / 3
AUDIT_S = 6 * FAILOVER_S
CLEAN_S = AUDIT_S + 3 * FAILOVER_S + 2 * HEARTBEAT_S
"""By then a row that is done with has been deleted."""


def listings(fleet: Fleet, since_at: float) -> list[str]:
    """Name who has listed the shards since then, once for each time."""
    return [member.name for member in fleet.members.values() for call in member.wire.of("list") if call.at > since_at]


def auditor(fleet: Fleet) -> Member:
    alive = [member for member in fleet.members.values() if not fleet.loop.is_dead(member.name)]
    return max(alive, key=lambda member: rendezvous(member.owner, "audit"))


@pytest.mark.parametrize("workers", [1, 10])
@simulated
async def test_one_worker_lists_the_shards_for_all(workers: int) -> None:
    """However many there are, the stream's quota of listings is used as by one."""
    fleet = Fleet(shards=10)
    for number in range(workers):
        fleet.start(f"worker-{number}")
    fleet.put(50)
    await fleet.delivered()
    await asyncio.sleep(AUDIT_S)
    since_at = fleet.loop.time()
    await asyncio.sleep(4 * AUDIT_S)
    listed = listings(fleet, since_at)
    assert set(listed) == {auditor(fleet).name}
    assert 3 <= len(listed) <= 4
    await fleet.stopped()


@simulated
async def test_shard_that_only_a_listing_shows_is_found_while_the_one_who_lists_cannot() -> None:
    """Rows without hash ranges, as older clients leave them, do not tell that the row of a shard was deleted."""
    fleet = Fleet(shards=4)
    await running(fleet, workers=3, shards=4)
    await asyncio.sleep(2 * AUDIT_S)
    auditor(fleet).wire.fail("list", Fault.REJECTED, times=10_000)
    first, *others = fleet.shards()
    for key in others:
        fleet.store.items[key] = {name: value for name, value in fleet.store.items[key].items() if "Hash" not in name}
    await asyncio.sleep(FAILOVER_S)
    del fleet.store.items[first]
    await fleet.until(lambda: first in fleet.rows(), within_s=(OTHERS_LIST + 2) * AUDIT_S)
    fleet.put(40)
    await fleet.delivered()
    await fleet.stopped()


@simulated
async def test_another_lists_when_the_one_who_did_is_dead() -> None:
    """As soon as he counts as gone."""
    fleet = Fleet(shards=4)
    await running(fleet, workers=3, shards=4)
    await asyncio.sleep(2 * AUDIT_S)
    first = auditor(fleet)
    first.crash()
    since_at = fleet.loop.time()
    await asyncio.sleep(AUDIT_S + 2 * FAILOVER_S)
    listed = listings(fleet, since_at)
    assert listed
    assert set(listed) == {auditor(fleet).name} != {first.name}
    await fleet.stopped()


@simulated
async def test_hole_that_a_consistent_look_does_not_confirm_has_nobody_list() -> None:
    """A scan may show a parent's end, and not yet its child's row."""
    fleet = Fleet(shards=2)
    await running(fleet, workers=2)
    await asyncio.sleep(2 * AUDIT_S)
    since_at, shown = fleet.loop.time(), tuple(fleet.rows().values())[:1]
    for member in fleet.members.values():
        member.wire.stale_scan = Scan(shown)
    await asyncio.sleep(FAILOVER_S / 2)
    for member in fleet.members.values():
        member.wire.stale_scan = None
    await asyncio.sleep(HEARTBEAT_S)
    assert len(listings(fleet, since_at)) <= 1
    await fleet.stopped()
    fleet.check()
