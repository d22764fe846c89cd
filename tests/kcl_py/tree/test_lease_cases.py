"""Leases that went wrong for users of other clients (docs/cases.md, "Leases"), on whole workers.

Each test says in its name what holds instead.
"""

import asyncio
from itertools import pairwise

import pytest
from structlog.testing import LogCapture

from kcl_py.leases.memory import MemoryLeaseStore
from kcl_py.leases.row import LeaseRow
from kcl_py.leases.store import Write
from kcl_py.processor import Checkpointer
from kcl_py.records import RecordBatch
from kcl_py.tree.opening import GATE_SLOTS
from tests.kcl_py.tree.fleet import FAILOVER_S, Fleet, Member, running
from tests.kcl_py.tree.wire import Fault
from tests.simloop import simulated

HEARTBEAT_S = FAILOVER_S / 3
TICK_S = FAILOVER_S / 10


def events(log: LogCapture, name: str) -> list[dict[str, object]]:
    return [dict(entry) for entry in log.entries if entry["event"] == name]


class SlowStore(MemoryLeaseStore):
    """A store that takes its time with takes, and counts how many are under way."""

    def __init__(self, *, take_s: float = 0.005) -> None:
        super().__init__()
        self.take_s, self.under_way, self.most = take_s, 0, 0

    async def write(self, write: Write) -> LeaseRow:
        if write.operation == "take":
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            await asyncio.sleep(self.take_s)
            self.under_way -= 1
        return await super().write(write)


def read_lately(member: Member, fleet: Fleet) -> set[str]:
    """The shards that a worker has asked for records within the last two seconds."""
    return {call.key for call in member.wire.of("fetch") if call.at > fleet.loop.time() - 2}


# --- a worker's own writes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
@simulated
async def test_own_writes_that_cross_each_other_never_pass_for_a_theft(seed: int, log: LogCapture) -> None:
    """B002: hundreds of renewals and checkpoints of one worker; some get no reply, some come late: nothing is lost."""
    fleet = Fleet(shards=1, seed=seed, checkpoint={"mode": "manual"})

    async def store_each(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        await asyncio.gather(*(checkpointer.checkpoint(record) for record in batch))

    worker = fleet.start("A", work=store_each)
    for number in range(300):
        fleet.put(3)
        if number % 20 == 0:
            fault = worker.random.choice([Fault.LOST_REPLY, Fault.LATE, Fault.BROKEN])
            worker.wire.fail(worker.random.choice(["heartbeat", "checkpoint"]), fault)
        await asyncio.sleep(0.1)
    await fleet.delivered()
    await asyncio.sleep(HEARTBEAT_S)
    assert not events(log, "kcl_py.lease.lost")
    assert len(fleet.diary.called("initialize")) == 1
    assert str(fleet.row(fleet.shards()[0]).position) == str(fleet.diary.handovers[-1].records[-1].position)
    await fleet.stopped()


@pytest.mark.parametrize("fault", [Fault.THROTTLED, Fault.BROKEN, Fault.LOST_REPLY])
@simulated
async def test_one_renewal_that_fails_leaves_tree_table_and_reading_agreed(fault: Fault) -> None:
    """B003: whichever it is, one heartbeat later each shard is owned, run and read by the worker, and no other is."""
    fleet = Fleet(shards=3)
    await running(fleet, shards=3)
    worker, failing = fleet.members["A"], fleet.shards()[1]
    for _ in range(20):
        worker.wire.fail("heartbeat", fault, key=failing)
        await asyncio.sleep(FAILOVER_S + TICK_S)
        assert fleet.held_by(worker) == set(worker.shards) == read_lately(worker, fleet) == set(fleet.shards())
    await fleet.stopped()


@simulated
async def test_renewals_that_fail_until_the_lease_is_over_leave_tree_table_and_reading_agreed(log: LogCapture) -> None:
    """B003: a shard that was given up for it is taken again by its worker, within F and a tick of being reachable."""
    fleet = Fleet(shards=3)
    await running(fleet, shards=3)
    worker, failing = fleet.members["A"], fleet.shards()[1]
    worker.wire.fail("heartbeat", Fault.THROTTLED, times=1000, key=failing)
    await fleet.until(lambda: events(log, "kcl_py.lease.lost"))
    worker.wire.recover()
    await asyncio.sleep(FAILOVER_S + TICK_S + 2)
    assert fleet.held_by(worker) == set(worker.shards) == read_lately(worker, fleet) == set(fleet.shards())
    await fleet.stopped()


@simulated
async def test_takes_that_hang_delay_no_renewal_of_what_is_held() -> None:
    """B010: more takes than there are slots, each of 30 s: renewals come no later than 1.5 H, and reading goes on."""
    fleet = Fleet(shards=GATE_SLOTS + 8)
    fleet.store = store = SlowStore()
    await running(fleet, workers=2, shards=GATE_SLOTS + 8)
    worker, other = fleet.members["A"], fleet.members["B"]
    await fleet.until(lambda: len(fleet.held_by(other)) == len(fleet.held_by(worker)) > GATE_SLOTS // 2)
    await fleet.until(lambda: not store.under_way)
    held = fleet.held_by(worker)
    store.take_s = 30.0
    other.crash()
    began_at = fleet.loop.time()
    await fleet.until(lambda: store.under_way)
    for _ in range(20):
        fleet.put(50)
        await asyncio.sleep(1)
    assert store.under_way == GATE_SLOTS // 2
    for shard_id in held:
        sent = [began_at, *(call.at for call in worker.wire.of("heartbeat", key=shard_id) if call.at > began_at)]
        assert max(after - before for before, after in pairwise([*sent, fleet.loop.time()])) <= 1.5 * HEARTBEAT_S
        assert set(fleet.truth(shard_id)[:-5]) <= fleet.diary.done
    store.take_s = 0.0
    await fleet.delivered()
    await fleet.stopped()
    fleet.check()


# --- who gets what ---------------------------------------------------------------------------------------------------


@simulated
async def test_shards_that_have_ended_use_up_nobodys_limit() -> None:
    """B005: one is named in three rows at their end, and yet has as many of the six live ones as it may."""
    fleet = Fleet(shards=3)
    await running(fleet, shards=3)
    parents = fleet.shards()
    for shard_id in parents:
        fleet.split(shard_id)
        await asyncio.sleep(1)
    await fleet.until(lambda: all(fleet.row(shard_id).has_ended for shard_id in parents))
    await fleet.members["A"].stop()
    members = [fleet.start(name, leases={"max_leases": 3}) for name in "BC"]
    await fleet.until(lambda: all(member.stream for member in members), each_s=0.0005)
    for shard_id in parents:  # as the Java client leaves them
        fleet.store.items[shard_id] = {**fleet.store.items[shard_id], "leaseOwner": members[0].owner}
    live = set(fleet.shards()) - set(parents)
    await fleet.until(lambda: sorted(members[0].shards + members[1].shards) == sorted(live), within_s=4 * FAILOVER_S)
    assert len(members[0].shards) == len(members[1].shards) == 3
    await fleet.stopped()


@simulated
async def test_lone_worker_has_all_free_shards_after_two_ticks_and_never_asks_for_all_at_once() -> None:
    """B006: 64 rows; the first is opened to see that the processor initialises, the rest follows a tick later."""
    fleet = Fleet(shards=64)
    fleet.store = store = SlowStore()
    worker = fleet.start("A")
    await fleet.until(lambda: fleet.rows() and len(fleet.rows()) == 64)
    made_at = fleet.loop.time()
    await fleet.until(lambda: len(fleet.held_by(worker)) == 64)
    assert fleet.loop.time() - made_at <= 2 * TICK_S
    assert 1 < store.most <= GATE_SLOTS // 2
    await fleet.stopped()


@simulated
async def test_newcomer_asks_for_what_it_lacks_and_nothing_moves_back() -> None:
    """B007: from nine and none to five and four by four requests, one before its processor has initialised."""
    fleet = Fleet(shards=9)
    await running(fleet, shards=9)
    newcomer = fleet.start("B")
    await fleet.until(lambda: len(fleet.held_by(newcomer)) == 4)
    asked = newcomer.wire.of("start handoff")
    assert len({call.key for call in asked}) == len(asked) == 4
    [first, *_] = fleet.diary.called("initialize", worker="B")
    assert [call.at < first.at for call in asked] == [True, False, False, False]
    owners = {key: row.owner for key, row in fleet.rows().items()}
    for _ in range(40):
        await asyncio.sleep(TICK_S)
        assert {key: row.owner for key, row in fleet.rows().items()} == owners
    assert len(newcomer.wire.of("start handoff")) == 4
    assert not fleet.members["A"].wire.of("start handoff")
    await fleet.stopped()


@simulated
async def test_of_two_workers_that_reach_for_a_shard_at_once_one_never_reads_it() -> None:
    """B016: both takes are under way at the same time; who loses has asked for no record and called no hook."""
    fleet = Fleet(shards=1)
    fleet.store = store = SlowStore(take_s=3 * TICK_S)
    fleet.put(10)
    members = [fleet.start(name) for name in "AB"]
    await fleet.until(lambda: store.under_way == 2, within_s=5)
    assert not any(member.wire.of("open", "fetch") for member in members)
    await fleet.delivered()
    [owner] = [member for member in members if fleet.held_by(member)]
    [loser] = [member for member in members if member is not owner]
    assert not loser.wire.of("open", "fetch")
    assert {handover.worker for handover in fleet.diary.handovers} == {owner.name}
    assert {call.worker for call in fleet.diary.hooks} == {owner.name}
    await fleet.stopped()


# --- workers that go, and that come back -----------------------------------------------------------------------------


@simulated
async def test_worker_that_has_stopped_is_given_nothing_any_more() -> None:
    """B014: the others have all within two ticks of the stop, far sooner than F; no row ever names it again."""
    failover_s = 30.0
    fleet = Fleet(shards=6, leases={"failover_s": failover_s})
    await running(fleet, workers=3, shards=6)
    leaver = fleet.members["A"]
    await fleet.until(lambda: len(fleet.held_by(leaver)) == 2)
    assert leaver.stream is not None
    leaver.stream.stop(20)
    await asyncio.sleep(2 * failover_s / 10)
    for _ in range(20):
        assert not [row for row in fleet.rows().values() if leaver.owner in (row.owner, row.checkpoint_owner)]
        assert all(row.owner for row in fleet.rows().values())
        await asyncio.sleep(failover_s / 10)
    await fleet.stopped()


@pytest.mark.parametrize("cut", ["A", "AB"])
@simulated
async def test_outage_of_the_lease_table_leaves_no_shard_behind(cut: str) -> None:
    """B017: 1.5 F without the table, for one worker or for both: then each shard has one reader within F and a tick."""
    fleet = Fleet(shards=5)
    await running(fleet, workers=2, shards=5)
    members = [fleet.members[name] for name in "AB"]
    for name in cut:
        fleet.members[name].wire.is_store_cut = True
    await asyncio.sleep(1.5 * FAILOVER_S)
    for member in members:
        member.wire.is_store_cut = False
    await asyncio.sleep(FAILOVER_S + TICK_S)
    assert sorted([*members[0].shards, *members[1].shards]) == fleet.shards()
    assert [fleet.held_by(member) for member in members] == [set(member.shards) for member in members]
    fleet.put(50)
    await fleet.delivered(within_s=1)
    assert all(member.error is None for member in members)
    await fleet.stopped()
    fleet.check()


@simulated
async def test_two_workers_under_one_name_never_read_a_shard_together() -> None:
    """B018: a deploy under a fixed id, the old worker still there: for others and for each other they are two."""
    fleet = Fleet(shards=4, leases={"worker_id": "w1"})
    await running(fleet, shards=4)
    fleet.start("B")
    for _ in range(100):
        fleet.put(8)
        await asyncio.sleep(0.1)
    members = [fleet.members[name] for name in "AB"]
    assert not set(members[0].shards) & set(members[1].shards)
    await fleet.delivered()
    assert {handover.worker for handover in fleet.diary.handovers} == {"A", "B"}
    await members[0].stop()
    await fleet.stopped()
    fleet.check()


@simulated
async def test_each_owner_of_a_shard_has_a_higher_epoch_and_a_sleeper_hears_first_that_it_lost() -> None:
    """B021: by stop, death, failure and sleep; who wakes up after its lease hands nothing over under the old epoch."""
    fleet = Fleet(shards=1)
    await running(fleet, shards=1)
    shard_id = fleet.shards()[0]
    await fleet.members["A"].stop()
    dying = fleet.start("B")
    await fleet.until(lambda: fleet.held_by(dying))
    dying.crash()
    sleeper = fleet.start("C")
    await fleet.until(lambda: fleet.held_by(sleeper) and fleet.diary.called("initialize", worker="C"))
    sleeper.kill_actor(f"shards/{shard_id}/pipeline")
    await fleet.until(lambda: len(fleet.diary.called("initialize", worker="C")) == 2)
    fleet.put(10)
    await fleet.delivered()
    sleeper.pause(for_s=3 * FAILOVER_S)
    fleet.start("D")
    fleet.put(10)
    await fleet.until(lambda: fleet.diary.called("initialize", worker="D"))
    fleet.put(10)
    await asyncio.sleep(4 * FAILOVER_S)
    epochs = [call.epoch for call in fleet.diary.called("initialize")]
    assert all(after > before for before, after in pairwise(epochs)), epochs
    old = max(call.epoch for call in fleet.diary.called("initialize", worker="C"))
    [lost] = fleet.diary.called("lease_lost", worker="C")
    assert not [each for each in fleet.diary.of(shard_id) if each.epoch == old and each.begun_at >= lost.at]
    woke_at = lost.at - 0.5
    assert not [each for each in fleet.diary.of(shard_id) if each.epoch == old and each.begun_at > woke_at]
    await fleet.delivered()
    await fleet.stopped()
    fleet.check()
