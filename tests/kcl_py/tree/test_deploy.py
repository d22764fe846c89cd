"""Deploys of four workers on 32 busy shards, workers that crash again and again, and restarts under the same name."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from hashlib import md5
from itertools import count

import pytest
from structlog.testing import LogCapture

from tests.kcl_py.tree.fleet import FAILOVER_S, Fleet, Member, running
from tests.simloop import simulated

WORKERS, SHARDS = 4, 32
PUT_EVERY_S = 0.25
STEP_S = 3.0
"""Between the steps of a deploy that waits for nothing: sooner than the default failover time."""


@asynccontextmanager
async def load(fleet: Fleet) -> AsyncIterator[None]:
    """Put a record to each shard all the time."""
    keys: dict[int, str] = {}
    for number in count():
        if len(keys) == SHARDS:
            break
        keys[int(md5(str(number).encode()).hexdigest(), 16) * SHARDS >> 128] = str(number)

    async def put() -> None:
        while True:
            for key in keys.values():
                fleet.put(1, key=key)
            await asyncio.sleep(PUT_EVERY_S)

    putting = asyncio.ensure_future(put())
    yield
    putting.cancel()


def is_balanced(fleet: Fleet, members: Sequence[Member]) -> bool:
    loads = [len(fleet.held_by(member)) for member in members]
    return sum(loads) == SHARDS and max(loads) - min(loads) <= 1


async def deployed(fleet: Fleet, log: LogCapture, *, has_surge: bool, waits: bool) -> Counter[str]:
    """Replace all workers under load; return how often each shard was taken meanwhile."""
    members = [fleet.start(f"old-{number}") for number in range(WORKERS)]
    await fleet.until(lambda: is_balanced(fleet, members))
    async with load(fleet):
        await asyncio.sleep(fleet.configured("any").leases.failover_s)
        log.entries.clear()
        for number in range(WORKERS):
            if not has_surge:
                await members.pop(0).stop()
            members.append(fleet.start(f"new-{number}"))
            if waits:
                await fleet.until(lambda: is_balanced(fleet, members))
            else:
                await asyncio.sleep(STEP_S)
            if has_surge:
                await members.pop(0).stop()
        await fleet.until(lambda: is_balanced(fleet, members))
    await fleet.delivered()
    return Counter(entry["shard_id"] for entry in log.entries if entry["event"] == "kcl_py.lease.taken")


@pytest.mark.parametrize("has_surge", [True, False], ids=["surge", "no surge"])
@simulated
async def test_rolling_deploy_delivers_nothing_twice_and_moves_each_shard_at_most_twice(
    has_surge: bool, log: LogCapture
) -> None:
    """Each step waits for even shares: what has just moved moves on, and what has settled stays."""
    fleet = Fleet(shards=SHARDS, fetch={"idle_s": 0.25})
    moves = await deployed(fleet, log, has_surge=has_surge, waits=True)
    assert max(moves.values()) <= 2
    await fleet.stopped()
    fleet.check_once()


@pytest.mark.parametrize(("has_surge", "most"), [(True, 1), (False, 3)], ids=["surge", "no surge"])
@simulated
async def test_deploy_that_waits_for_nothing_moves_shards_straight_to_the_new_workers(
    has_surge: bool, most: int, log: LogCapture
) -> None:
    """Leavers' shards are theirs before they may pull for balance, and before a processor of theirs has initialised."""
    fleet = Fleet(shards=SHARDS, fetch={"idle_s": 0.25}, leases={"failover_s": 10})
    moves = await deployed(fleet, log, has_surge=has_surge, waits=False)
    assert max(moves.values()) <= most
    await fleet.stopped()
    fleet.check_once()


@simulated
async def test_worker_that_crashes_again_and_again_takes_nobodys_shards() -> None:
    """However long each of its lives is, below F: no shard moves, none stands still, nothing comes twice."""
    fleet = Fleet(shards=4, fetch={"idle_s": 0.25})
    await running(fleet, workers=2, shards=4)
    await fleet.until(lambda: all(len(fleet.held_by(member)) == 2 for member in fleet.members.values()))
    owners = {key: row.owner for key, row in fleet.rows().items()}
    for number in range(12):
        broken = fleet.start(f"broken-{number}")
        await asyncio.sleep(FAILOVER_S * number / 12)
        broken.crash()
        fleet.put(40)
        await fleet.delivered(within_s=1)
        assert {key: row.owner for key, row in fleet.rows().items()} == owners
    await fleet.stopped()
    fleet.check_once()


@simulated
async def test_killed_worker_that_comes_back_under_its_exclusive_id_goes_on_with_its_own_shards_at_once() -> None:
    """Nobody waits for an expiry, and nobody else's shards move: not its own, and not those of the others."""
    fleet = Fleet(shards=6, leases={"exclusive_id": True})
    await running(fleet, workers=3, shards=6)
    await fleet.until(lambda: all(len(fleet.held_by(member)) == 2 for member in fleet.members.values()))
    others = [fleet.members[name] for name in "AC"]
    owned = [fleet.held_by(member) for member in (*others, fleet.members["B"])]
    fleet.members["B"].crash()
    killed_at = fleet.loop.time()
    fleet.put(60)
    again = fleet.start("B again", leases={"worker_id": "B"})
    await fleet.delivered()
    assert fleet.loop.time() < killed_at + 1.5, "an idle shard looks again after a second"
    await asyncio.sleep(3 * FAILOVER_S)
    assert [fleet.held_by(member) for member in (*others, again)] == owned
    await fleet.stopped()
    fleet.check()
