"""Streams that are resharded again and again: how fast a fleet follows, and what becomes of the rows."""

import asyncio
from collections import defaultdict

import pytest
from structlog.testing import LogCapture

from kcl_py.processor import Checkpointer
from kcl_py.records import RecordBatch
from tests.kcl_py.tree.diary import Work
from tests.kcl_py.tree.fleet import FAILOVER_S, STREAM, Fleet, running
from tests.kcl_py.tree.wire import Fault
from tests.simloop import simulated

TICK_S = FAILOVER_S / 10
HEARTBEAT_S = FAILOVER_S / 3
AUDIT_S = 6 * FAILOVER_S
CLEAN_S = AUDIT_S + 3 * FAILOVER_S + 2 * HEARTBEAT_S
"""By then a row that is done with has been deleted."""


class Keys:
    """The order in which records of each key were put and seen."""

    def __init__(self, fleet: Fleet, *keys: str) -> None:
        self._fleet, self._keys = fleet, keys
        self.put: dict[str, list[bytes]] = defaultdict(list)
        self.seen: dict[str, list[bytes]] = defaultdict(list)

    def put_each(self) -> None:
        for key in self._keys:
            self.put[key] += self._fleet.put(1, key=key)

    def work(self, for_s: float) -> Work:
        async def note(batch: RecordBatch, checkpointer: Checkpointer) -> None:
            for record in batch:
                self.seen[record.partition_key].append(record.data)
            await asyncio.sleep(for_s)

        return note


def events(log: LogCapture, name: str) -> list[dict[str, object]]:
    return [dict(entry) for entry in log.entries if entry["event"] == name]


def ended(fleet: Fleet) -> list[str]:
    return [key for key, row in fleet.rows().items() if row.has_ended]


def open_shards(fleet: Fleet) -> list[str]:
    parents = {parent for names in fleet.parents().values() for parent in names}
    return [shard_id for shard_id in fleet.shards() if shard_id not in parents]


async def reshard(fleet: Fleet, generations: int, keys: Keys) -> None:
    """Split and merge a stream of one shard in turn, with records in every shard."""
    for _ in range(generations):
        keys.put_each()
        shards = open_shards(fleet)
        if len(shards) == 1:
            fleet.split(shards[0])
        else:
            fleet.merge(*shards)
        await asyncio.sleep(1)
    keys.put_each()


async def rescale(fleet: Fleet, shards: int) -> None:
    fleet.model.call("UpdateShardCount", {
        "StreamName": STREAM, "TargetShardCount": shards, "ScalingType": "UNIFORM_SCALING"
    })  # fmt: skip
    await fleet.until(lambda: len(open_shards(fleet)) == shards, each_s=0.5)


# --- how fast a fleet follows ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 4])
@simulated
async def test_fleet_that_starts_300_generations_behind_is_through_each_within_half_a_tick(workers: int) -> None:
    """Who has read a shard opens its children at once; the order of each key is kept all the way."""
    fleet, generations = Fleet(shards=1), 300
    keys = Keys(fleet, "ash", "elm", "fir", "oak", "yew")
    await reshard(fleet, generations, keys)
    began_at = fleet.loop.time()
    for number in range(workers):
        fleet.start("ABCD"[number], work=keys.work(0.001))
    await fleet.delivered()
    assert (fleet.loop.time() - began_at) / generations < TICK_S / 2
    await asyncio.sleep(2 * CLEAN_S)
    assert list(fleet.rows()) == open_shards(fleet), "what came before is read, and needs no rows"
    await fleet.stopped()
    fleet.check()
    assert keys.seen == keys.put


@pytest.mark.parametrize("slow", [0, 1])
@simulated
async def test_child_of_a_merge_starts_soon_after_the_second_of_its_parents_has_ended(slow: int) -> None:
    """B041: on two workers, in either order, never before and within a tick after."""
    fleet = Fleet(shards=2)
    parents = fleet.shards()

    async def work(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        await asyncio.sleep(6.0 if batch.shard_id == parents[slow] else 0.01)

    fleet.start("A", work=work)
    fleet.start("B", work=work)
    await fleet.until(lambda: all(len(fleet.held_by(member)) == 1 for member in fleet.members.values()))
    fleet.put(40)
    fleet.merge(*parents)
    await asyncio.sleep(1)
    fleet.put(20)
    await fleet.until(lambda: fleet.row(parents[slow]).has_ended, each_s=0.001)
    ended_at, child = fleet.loop.time(), fleet.shards()[2]
    assert not fleet.diary.called("initialize", shard_id=child)
    assert fleet.row(parents[1 - slow]).has_ended
    await fleet.until(lambda: fleet.diary.called("initialize", shard_id=child), each_s=0.001)
    assert fleet.loop.time() < ended_at + TICK_S
    await fleet.delivered()
    await fleet.stopped()
    fleet.check()


@simulated
async def test_children_go_to_those_who_have_less_when_their_closer_has_its_share() -> None:
    """Of four children two stay where their parents were read; with one on each worker nothing moves."""
    fleet = Fleet(shards=2)
    await running(fleet, workers=2)
    await asyncio.sleep(3 * FAILOVER_S)
    for shard_id in fleet.shards():
        fleet.split(shard_id)
        await asyncio.sleep(0.2)
    fleet.put(80)
    await fleet.delivered()
    await asyncio.sleep(3 * FAILOVER_S)
    assert [len(fleet.held_by(member)) for member in fleet.members.values()] == [2, 2]
    await fleet.stopped()
    fleet.check()


@simulated
async def test_shard_count_goes_from_64_to_128_to_32_under_load() -> None:
    """Nothing is lost, keys keep their order, in the end shares are even and only open shards have rows."""
    fleet = Fleet(shards=64)
    keys = Keys(fleet, *(f"key-{number}" for number in range(60)))
    for name in "ABCD":
        fleet.start(name, work=keys.work(0.005))
    for target in (128, 64, 32):  # AWS takes no less than half at once
        for _ in range(10):
            keys.put_each()
            fleet.put(100)
            await asyncio.sleep(0.3)
        await rescale(fleet, target)
    fleet.put(600)
    keys.put_each()
    await fleet.delivered()
    await asyncio.sleep(3 * CLEAN_S)
    assert sorted(len(fleet.held_by(member)) for member in fleet.members.values()) == [8, 8, 8, 8]
    assert sorted(fleet.rows()) == sorted(open_shards(fleet))
    await fleet.stopped()
    fleet.check()
    assert {key: keys.seen[key] for key in keys.put} == keys.put


# --- rows that are done with -----------------------------------------------------------------------------------------


@simulated
async def test_row_is_kept_while_a_child_has_no_progress_and_deleted_once_all_have(log: LogCapture) -> None:
    """Until then it says where the children come from; the log says when it goes, and nothing each minute."""
    fleet = Fleet(shards=1)
    await running(fleet)
    parent = fleet.shards()[0]
    fleet.split(parent)
    await fleet.until(lambda: len(fleet.rows()) == 3 and fleet.row(parent).has_ended)
    await asyncio.sleep(3 * CLEAN_S)
    assert parent in fleet.rows(), "its children are at their beginning"
    lines = [entry for entry in log.entries if entry.get("shard_id") == parent]
    fleet.put(40)
    await fleet.delivered()
    await fleet.until(lambda: parent not in fleet.rows(), within_s=CLEAN_S)
    assert [entry["shard_id"] for entry in events(log, "kcl_py.lease.deleted")] == [parent]
    assert len([entry for entry in log.entries if entry.get("shard_id") == parent]) == len(lines) + 1
    await fleet.stopped()
    fleet.check()


@simulated
async def test_what_is_kept_of_a_shard_goes_with_its_row() -> None:
    """A worker that runs for years beside a stream that is resharded daily meets any number of shards."""
    fleet = Fleet(shards=1)
    await running(fleet)
    stream, parent = fleet.members["A"].stream, fleet.shards()[0]
    assert stream is not None
    fleet.split(parent)
    await fleet.until(lambda: len(fleet.rows()) == 3)
    child = fleet.shards()[1]
    of_parent, of_child = map(stream._worker.quota, (parent, child))
    fleet.put(40)
    await fleet.delivered()
    await fleet.until(lambda: parent not in fleet.rows(), within_s=2 * CLEAN_S)
    await asyncio.sleep(FAILOVER_S)
    assert stream._worker.quota(parent) is not of_parent
    assert stream._worker.quota(child) is of_child
    await fleet.stopped()


@pytest.mark.parametrize("start", ["trim_horizon", "latest"])
@simulated
async def test_shard_whose_row_was_deleted_is_never_read_again(start: str) -> None:
    """It stays listed as long as the stream keeps data; restarts and later reshards make no row of it."""
    fleet = Fleet(shards=2, start=start)
    fleet.start("A")
    await fleet.until(lambda: len(fleet.rows()) == 2)
    for name in "BCD":
        fleet.put(20)
        fleet.split(open_shards(fleet)[0])
        await asyncio.sleep(1)
        fleet.put(40)
        await fleet.delivered()
        await asyncio.sleep(CLEAN_S)
        assert sorted(fleet.rows()) == sorted(open_shards(fleet))
        await fleet.stopped()
        fleet.start(name)
    await asyncio.sleep(CLEAN_S)
    assert sorted(fleet.rows()) == sorted(open_shards(fleet))
    await fleet.stopped()
    fleet.check()
    assert [len(fleet.diary.called("shard_ended", shard_id=key)) for key in fleet.shards()[:3]] == [1, 1, 1]


@simulated
async def test_worker_that_may_not_delete_says_so_once(log: LogCapture) -> None:
    """The rows stay, and nothing else is the worse for it."""
    fleet = Fleet(shards=1)
    await running(fleet)
    fleet.members["A"].wire.fail("delete", Fault.REJECTED, times=1000)
    parent = fleet.shards()[0]
    fleet.split(parent)
    await asyncio.sleep(1)
    fleet.put(40)
    await fleet.delivered()
    await asyncio.sleep(3 * CLEAN_S)
    assert fleet.row(parent).has_ended
    assert len(fleet.members["A"].wire.of("delete")) == 1
    [told] = events(log, "kcl_py.coordinator.request_failed")
    assert told["request"] == "delete completed"
    await fleet.stopped()
    fleet.check()


@pytest.mark.parametrize("fault", [Fault.THROTTLED, Fault.LOST_REPLY, Fault.LOST_REQUEST])
@simulated
async def test_deletion_that_fails_is_made_up_for_at_the_next_audit(fault: Fault) -> None:
    """Whether it had an effect or not."""
    fleet = Fleet(shards=1)
    await running(fleet)
    fleet.members["A"].wire.fail("delete", fault)
    fleet.split(fleet.shards()[0])
    await asyncio.sleep(1)
    fleet.put(40)
    await fleet.delivered()
    await asyncio.sleep(CLEAN_S + AUDIT_S)
    assert sorted(fleet.rows()) == open_shards(fleet)
    await fleet.stopped()
    fleet.check()


@simulated
async def test_no_row_is_deleted_beside_one_that_cannot_be_read() -> None:
    """It may be a parent or a child."""
    fleet = Fleet(shards=1)
    await running(fleet)
    parent = fleet.shards()[0]
    fleet.store.items["shardId-broken"] = {"leaseKey": "shardId-broken", "leaseCounter": "many"}
    fleet.split(parent)
    await asyncio.sleep(1)
    fleet.put(40)
    await fleet.delivered()
    await asyncio.sleep(CLEAN_S)
    del fleet.store.items["shardId-broken"]
    assert fleet.row(parent).has_ended
    await fleet.until(lambda: parent not in fleet.rows(), within_s=CLEAN_S)
    await fleet.stopped()
    fleet.check()


@simulated
async def test_merge_with_one_unknown_parent_is_read_and_its_known_parent_deleted() -> None:
    """The other one has aged out unread while no worker ran: it counts as ended, and comes back never."""
    fleet = Fleet(shards=2)
    known, unknown = fleet.shards()
    fleet.put(20)
    fleet.merge(known, unknown)
    await asyncio.sleep(1)
    fleet.put_data -= set(fleet.truth(unknown))
    fleet.put(20)
    fleet.start("A").wire.aged_out = frozenset({unknown})
    await fleet.delivered()
    await asyncio.sleep(CLEAN_S)
    assert list(fleet.rows()) == open_shards(fleet)
    fleet.members["A"].wire.aged_out = frozenset()  # an old listing that shows it once more
    await asyncio.sleep(2 * AUDIT_S)
    assert list(fleet.rows()) == open_shards(fleet)
    await fleet.stopped()
    fleet.check()


@simulated
async def test_descendants_two_generations_on_are_read_when_all_that_had_rows_has_aged_out() -> None:
    """The stream was rescaled twice while no worker ran, and what it knew left the stream."""
    fleet = Fleet(shards=2)
    await running(fleet)
    await fleet.stopped()
    old = list(fleet.shards())
    lost = set(fleet.put(10))
    for shard_id in old:
        fleet.split(shard_id)
        await asyncio.sleep(1)
    middle = fleet.shards()[2:]
    lost |= set(fleet.put(10))
    for shard_id in middle:
        fleet.split(shard_id)
        await asyncio.sleep(1)
    fleet.put_data -= lost
    fleet.put(40)
    worker = fleet.start("B")
    worker.wire.aged_out = frozenset([*old, *middle])
    for shard_id in old:
        worker.wire.fail("open", Fault.MISSING, times=100, key=shard_id)
    await fleet.delivered()
    assert worker.error is None
    assert not fleet.diary.done & lost
    await fleet.stopped()
    fleet.check()


# --- who lists -------------------------------------------------------------------------------------------------------
