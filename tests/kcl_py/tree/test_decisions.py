"""What a worker decides about shards is said, each thing once, and is in the rows for whoever watches."""

import asyncio

from structlog.testing import LogCapture

from kcl_py.leases.row import LeaseRow
from kcl_py.local.hashing import hash_key
from kcl_py.processor import Checkpointer
from kcl_py.records import RecordBatch
from tests.kcl_py.tree.fleet import FAILOVER_S, Fleet, Member, running
from tests.kcl_py.tree.wire import Fault
from tests.simloop import simulated


def events(log: LogCapture, name: str) -> list[dict[str, object]]:
    return [dict(entry) for entry in log.entries if entry["event"] == name]


async def take_long(_: RecordBatch, __: Checkpointer) -> None:
    await asyncio.sleep(30)


def taken_by(fleet: Fleet, member: Member) -> set[str]:
    return {key for key in fleet.held_by(member) if fleet.row(key).native_is_current}


def whys(rows: dict[str, LeaseRow]) -> dict[str, str | None]:
    return {key: row.native.why for key, row in rows.items()}


@simulated
async def test_newcomer_says_why_it_waits_and_then_that_it_asks_for_balance(log: LogCapture) -> None:
    """Who starts a third worker and sees it idle finds the reason in its log, and in ``kcl status``."""
    fleet = Fleet(shards=4)
    await running(fleet, shards=4)
    newcomer = fleet.start("B")
    await fleet.until(lambda: events(log, "kcl_py.worker.held_off"))
    said = {type(line["why"]) for line in events(log, "kcl_py.worker.held_off")}
    assert said == {str}  # structlog's own default shows the repr of all else
    fleet.put(40)
    await asyncio.sleep(FAILOVER_S / 2)
    [shown] = [row for row in await fleet.store.workers() if row.worker == newcomer.owner]
    assert shown.held_off == "not seen by the others for failover_s yet"
    await fleet.until(lambda: len(taken_by(fleet, newcomer)) == 2)
    asked = events(log, "kcl_py.lease.asked_for")
    assert {(line["worker"], line["why"]) for line in asked} == {(newcomer.owner, "balance")}
    assert {fleet.row(key).native.why for key in taken_by(fleet, newcomer)} == {"balance"}
    await asyncio.sleep(FAILOVER_S)
    [shown] = [row for row in await fleet.store.workers() if row.worker == newcomer.owner]
    assert shown.held_off is None
    await fleet.stopped()


@simulated
async def test_worker_that_stood_still_waits_like_a_newcomer_before_it_asks_for_its_share() -> None:
    """The others have taken it for dead, and may do so until they have seen it move again."""
    fleet = Fleet(shards=4)
    await running(fleet, workers=2, shards=4)
    sleeper = fleet.members["A"]
    await fleet.until(lambda: len(taken_by(fleet, sleeper)) == 2)
    sleeper.pause(for_s=2 * FAILOVER_S)
    await asyncio.sleep(2 * FAILOVER_S)
    woken_at, before = fleet.loop.time(), len(sleeper.wire.of("start handoff"))
    assert not taken_by(fleet, sleeper)
    await fleet.until(lambda: len(taken_by(fleet, sleeper)) == 2)
    asked = sleeper.wire.of("start handoff")[before:]
    assert woken_at + FAILOVER_S <= min(call.at for call in asked) < woken_at + FAILOVER_S + 2
    await fleet.stopped()


@simulated
async def test_shards_of_one_who_leaves_and_of_one_who_dies_tell_so() -> None:
    """The row of a shard tells why its owner took it."""
    fleet = Fleet(shards=3)
    await running(fleet, workers=1, shards=3)
    assert set(whys(fleet.rows()).values()) == {"free"}
    second = fleet.start("B")
    await fleet.until(lambda: taken_by(fleet, second))
    await asyncio.sleep(FAILOVER_S)
    await fleet.members["A"].stop()
    await fleet.until(lambda: len(taken_by(fleet, second)) == 3)
    assert sorted(map(str, whys(fleet.rows()).values())) == ["balance", "leaver", "leaver"]
    third = fleet.start("C")
    second.crash()
    await fleet.until(lambda: len(taken_by(fleet, third)) == 3)
    assert set(whys(fleet.rows()).values()) == {"expired"}
    await fleet.stopped()


@simulated
async def test_shard_that_is_kept_because_who_asked_for_it_died_tells_so(log: LogCapture) -> None:
    """A handoff that does not happen is no riddle."""
    fleet = Fleet(shards=2, leases={"handoff_timeout_s": 60})
    fleet.put(40)
    fleet.start("A", work=take_long)
    await fleet.until(lambda: len(taken_by(fleet, fleet.members["A"])) == 2)
    asker = fleet.start("B")
    await fleet.until(lambda: any(row.in_handoff for row in fleet.rows().values()))
    asker.crash()
    await fleet.until(lambda: events(log, "kcl_py.lease.kept"))
    [kept] = events(log, "kcl_py.lease.kept")
    assert (kept["asked_by"], kept["why"]) == (asker.owner, "its own row has stood still for failover_s")
    await fleet.delivered()
    await fleet.stopped()


@simulated
async def test_limits_that_leave_shards_unread_are_told_once_and_when_that_is_over(log: LogCapture) -> None:
    """A shard that nobody may hold is never silent for longer than it takes to fail over."""
    fleet = Fleet(shards=3, leases={"max_leases": 2})
    fleet.start("A")
    await fleet.until(lambda: events(log, "kcl_py.worker.no_room"))
    assert FAILOVER_S <= fleet.loop.time() < 2 * FAILOVER_S
    await asyncio.sleep(5 * FAILOVER_S)
    assert [line["shards"] for line in events(log, "kcl_py.worker.no_room")] == [1]
    fleet.start("B")
    await fleet.until(lambda: events(log, "kcl_py.worker.has_room"))
    assert all(row.holder for row in fleet.rows().values())
    await fleet.stopped()


@simulated
async def test_busy_shards_are_spread_by_their_throughput() -> None:
    """By count two and two would be even; by bytes the worker with the busy one has it alone."""
    fleet = Fleet(shards=4, leases={"strategy": "throughput"})
    first, other = fleet.start("A"), None
    busy = fleet.shards()[0]
    key = next(name for name in map(str, range(99)) if hash_key(name) < 2**126)
    for second in range(120):
        fleet.put(5, key=key, size_bytes=4000)
        if second == 60:
            other = fleet.start("B")
        await asyncio.sleep(1)
    assert other is not None
    assert fleet.held_by(first) | fleet.held_by(other) == set(fleet.shards())
    assert {busy} in (fleet.held_by(first), fleet.held_by(other))
    rates = {key: row.throughput_kbps or 0 for key, row in fleet.rows().items()}
    assert 19 < rates[busy] < 21
    assert all(rate < 1 for key, rate in rates.items() if key != busy)
    moved = fleet.rows()
    await asyncio.sleep(60)
    assert {key: row.owner for key, row in fleet.rows().items()} == {key: row.owner for key, row in moved.items()}
    await fleet.stopped()


@simulated
async def test_request_that_goes_on_failing_is_said_once_in_a_failover_time_with_how_often(log: LogCapture) -> None:
    """An outage floods no log; another request that fails meanwhile is heard all the same."""
    fleet = Fleet(shards=1)
    await running(fleet)
    wire = fleet.members["A"].wire
    wire.fail("workers", Fault.BROKEN, times=1000)
    before = len(wire.of("workers"))
    await asyncio.sleep(3.5 * FAILOVER_S)
    wire.fail("put worker", Fault.BROKEN, times=1)
    await asyncio.sleep(FAILOVER_S / 2)
    failures = events(log, "kcl_py.coordinator.request_failed")
    times = [int(str(told["times"])) for told in failures if told["request"] == "members"]
    failed = len(wire.of("workers")) - before
    assert (times[0], len(times)) == (1, 4)
    assert failed * 3 / 4 < sum(times) <= failed, "all but those since the last word"
    assert [told["times"] for told in failures if told["request"] == "announce"] == [1]
    wire.recover()
    await fleet.stopped()
    fleet.check()
