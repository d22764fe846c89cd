"""What a running fleet does about rows, shards and parts of itself that go wrong, and how it shares its shards."""

import asyncio
from itertools import pairwise

import pytest
from structlog.testing import LogCapture

from kcl_py import LeaseTableError
from kcl_py.processor import Checkpointer
from kcl_py.records import RecordBatch
from kcl_py.tree.holding import FAILURES
from kcl_py.tree.messages import CloseShard
from tests.kcl_py.tree.fleet import FAILOVER_S, Fleet, running
from tests.kcl_py.tree.wire import Fault
from tests.simloop import simulated

HEARTBEAT_S = FAILOVER_S / 3


def events(log: LogCapture, name: str) -> list[dict[str, object]]:
    return [dict(entry) for entry in log.entries if entry["event"] == name]


# --- rows that go wrong ----------------------------------------------------------------------------------------------


@simulated
async def test_malformed_row_hurts_nobody_and_is_reported(log: LogCapture) -> None:
    """One item that is no lease costs a warning; the shards around it go on."""
    fleet = Fleet(shards=2)
    fleet.store.items["shardId-broken"] = {"leaseKey": "shardId-broken", "leaseCounter": "many"}
    await running(fleet)
    assert "shardId-broken" in str(events(log, "kcl_py.table.malformed_row")[0]["error"])
    await fleet.stopped()
    fleet.check()
    assert fleet.store.items["shardId-broken"]["leaseCounter"] == "many", "it is left as it was"


@simulated
async def test_malformed_row_is_reported_once_and_again_when_it_has_been_mended_between(log: LogCapture) -> None:
    """Not with each look at the table, for as long as it lies there."""
    fleet = Fleet(shards=1)
    await running(fleet)
    for key in ("one", "other", "one"):
        fleet.store.items[key] = {"leaseKey": key, "leaseCounter": "many"}
        await asyncio.sleep(10 * FAILOVER_S)
        if key == "other":
            del fleet.store.items["one"]
            await asyncio.sleep(FAILOVER_S)
    said = [str(line["error"]).split("'")[1] for line in events(log, "kcl_py.table.malformed_row")]
    assert said == ["one", "other", "one"]
    await fleet.stopped()


@simulated
async def test_row_of_a_running_shard_that_turns_malformed_costs_that_shard_alone() -> None:
    """What the store cannot read as a lease is no reason to end the worker."""
    fleet = Fleet(shards=2)
    await running(fleet)
    broken, other = fleet.shards()
    fleet.store.items[broken] = {**fleet.store.items[broken], "leaseCounter": "many"}
    await asyncio.sleep(20)
    payloads = fleet.put(40)
    kept = set(fleet.truth(other)) & set(payloads)
    fleet.put_data = kept
    await fleet.delivered()
    assert fleet.members["A"].error is None
    await fleet.stopped()


@simulated
async def test_running_worker_stops_with_a_typed_error_when_the_lease_table_is_gone() -> None:
    """A table that disappears mid-run is fatal within a heartbeat or two, and is never made anew."""
    fleet = Fleet(shards=2)
    await running(fleet)
    worker, gone_at = fleet.members["A"], fleet.loop.time()
    for operation in ("scan", "workers", "put worker", "heartbeat", "read", "take"):
        worker.wire.fail(operation, Fault.MISSING, times=10_000)
    before = len(worker.wire.of("ensure", "create"))
    await worker.ended()
    assert isinstance(worker.error, LeaseTableError)
    assert "test-app" in str(worker.error)
    assert fleet.loop.time() < gone_at + 30
    assert len(worker.wire.of("ensure", "create")) == before


# --- parts of a worker that fail -------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["", "/lease", "/pipeline", "/pipeline/producer"])
@simulated
async def test_shard_that_dies_is_opened_again_by_its_own_worker(part: str, log: LogCapture) -> None:
    """S3-21, B-09: killed in any part, a shard runs again soon, alone, under a new token, after its checkpoint."""
    fleet = Fleet(shards=2)
    await running(fleet)
    worker, (shard_id, other) = fleet.members["A"], fleet.shards()
    token = fleet.row(shard_id).native.token
    worker.kill_actor(f"shards/{shard_id}{part}")
    died_at = fleet.loop.time()
    fleet.put(40)
    await fleet.delivered()
    assert fleet.loop.time() < died_at + 2.0
    assert fleet.row(shard_id).native.token != token
    assert len(fleet.diary.called("initialize", shard_id=shard_id)) == 2
    assert len(fleet.diary.called("initialize", shard_id=other)) == 1
    assert events(log, "kcl_py.shard.failed")
    await fleet.stopped()
    fleet.check()


@simulated
async def test_read_that_is_refused_once_restarts_the_shard_visibly(log: LogCapture) -> None:
    """No shard is renewed without being read: its reader's end is logged, once, and the shard opened again."""
    fleet = Fleet(shards=2)
    await running(fleet)
    worker, shard_id = fleet.members["A"], fleet.shards()[0]
    worker.wire.fail("fetch", Fault.REJECTED, key=shard_id)
    await fleet.until(lambda: events(log, "kcl_py.shard.failed"), within_s=5)
    fleet.put(40)
    await fleet.delivered()
    [failed], [actor] = events(log, "kcl_py.shard.failed"), events(log, "kcl_py.actor.failed")
    assert (actor["actor"], actor["error"]) == (f"stream/shards/{shard_id}/pipeline/producer", failed["error"])
    await fleet.stopped()
    fleet.check()


@simulated
async def test_shard_that_keeps_failing_is_released_with_its_fault_for_others_to_try(log: LogCapture) -> None:
    """After five failures in a row a worker lets go of the shard, says why in the row, and leaves it alone."""
    fleet = Fleet(shards=2)
    await running(fleet)
    worker, (shard_id, other) = fleet.members["A"], fleet.shards()
    worker.wire.fail("fetch", Fault.REJECTED, times=10_000, key=shard_id)
    await fleet.until(lambda: fleet.row(shard_id).native.fault is not None)
    assert (fleet.row(shard_id).owner, fleet.row(other).owner) == (None, worker.owner)
    assert "RejectedError" in str(fleet.row(shard_id).native.fault)
    failures = events(log, "kcl_py.shard.failed")
    assert [entry["is_given_up"] for entry in failures] == [False] * (FAILURES - 1) + [True]
    await asyncio.sleep(60)
    assert worker.shards == [other]
    fleet.put(40)
    fleet.start("B")
    await fleet.delivered()
    assert fleet.row(shard_id).native.fault is None, "a new owner begins with a clean slate"
    await fleet.stopped()
    fleet.check()


@simulated
async def test_order_about_a_shard_that_does_not_run_is_ignored() -> None:
    """S3-40: to close an unknown shard is no crash."""
    fleet = Fleet(shards=1)
    await running(fleet, shards=1)
    worker = fleet.members["A"]
    assert worker.stream is not None
    shards = worker.stream._top.child("shards")
    assert shards is not None
    shards.tell(CloseShard("shardId-999999999999"))
    await asyncio.sleep(10)
    assert worker.node("shards").restarts == 0
    assert worker.shards == fleet.shards()
    await fleet.stopped()


@simulated
async def test_restarted_coordinator_adopts_the_shards_that_run(log: LogCapture) -> None:
    """The view of the fleet is lost with a Coordinator, its shards are not: no hook is called, no record repeated."""
    fleet = Fleet(shards=4)
    await running(fleet, shards=4)
    worker = fleet.members["A"]
    for _ in range(3):
        worker.kill_actor("coordinator")
        fleet.put(40)
        await fleet.delivered()
        await asyncio.sleep(20)
        assert worker.shards == fleet.shards()
    assert len(fleet.diary.called("initialize")) == 4
    assert sum(len(handover.records) for handover in fleet.diary.handovers) == len(fleet.diary.done)
    assert worker.node("coordinator").restarts == 3
    assert (await worker.stop()).is_clean
    fleet.check()


@simulated
async def test_restarted_coordinator_goes_on_taking_shards() -> None:
    """That a processor has initialised here is known to the worker, not to one life of its Coordinator."""
    fleet = Fleet(shards=4)
    await running(fleet, workers=2, shards=4)
    worker = fleet.members["A"]
    worker.kill_actor("coordinator")
    await asyncio.sleep(2)
    fleet.members["B"].crash()
    fleet.put(40)
    await fleet.delivered(within_s=10)
    assert fleet.held_by(worker) == set(fleet.shards())
    await fleet.stopped()
    fleet.check()


@simulated
async def test_worker_gives_up_when_its_coordinator_keeps_failing() -> None:
    """A Coordinator that more tries do not mend ends the worker with an error, instead of a worker that only renews."""
    fleet = Fleet(shards=1)
    await running(fleet, shards=1)
    worker = fleet.members["A"]
    for _ in range(4):
        worker.kill_actor("coordinator")
        await asyncio.sleep(0.1)
    await worker.ended()
    assert worker.error is not None
    assert not fleet.loop.left()


@simulated
async def test_stop_survives_a_coordinator_that_fails_during_it() -> None:
    """A worker that drains goes on draining whatever happens to its Coordinator."""

    async def slow(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        await asyncio.sleep(5)

    fleet = Fleet(shards=2)
    worker = fleet.start("A", work=slow)
    fleet.put(20)
    await fleet.until(lambda: len(fleet.diary.handovers) == 2)
    stopping = asyncio.ensure_future(worker.stop())
    await asyncio.sleep(1)
    worker.kill_actor("coordinator")
    assert (await stopping).is_clean
    assert not fleet.held_by(worker)


# --- what is shared --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("workers", "shards"), [(2, 4), (2, 3), (2, 2), (3, 2), (3, 7)])
@simulated
async def test_workers_that_join_get_their_share_and_then_nothing_moves(workers: int, shards: int) -> None:
    """S3-47: loads differ by one at most, by handoff, without a record handed over twice, and stay as they are."""
    fleet = Fleet(shards=shards)
    await running(fleet, shards=shards)
    for name in "BCDE"[: workers - 1]:
        fleet.start(name)
    fair = sorted(shards // workers + (number < shards % workers) for number in range(workers))

    def loads() -> list[int]:
        return sorted(len(fleet.held_by(member)) for member in fleet.members.values())

    await fleet.until(lambda: loads() == fair, within_s=3 * FAILOVER_S + 4)
    fleet.put(20 * shards)
    await fleet.delivered()
    owners = {key: row.owner for key, row in fleet.rows().items()}
    await asyncio.sleep(60)
    assert {key: row.owner for key, row in fleet.rows().items()} == owners
    assert sum(len(handover.records) for handover in fleet.diary.handovers) == len(fleet.diary.done)
    await fleet.stopped()
    fleet.check()


@simulated
async def test_handoff_under_load_repeats_nothing_and_pauses_for_less_than_half_a_second() -> None:
    """A deploy moves busy shards one after the other, each standing still only while its batch in hand finishes."""
    fleet = Fleet(shards=4, fetch={"idle_s": 0.25})  # within the quota of reads, which would be a pause of its own
    await running(fleet, shards=4)
    fleet.start("B")
    for _ in range(100):
        fleet.put(8)
        await asyncio.sleep(0.1)
    await fleet.delivered()
    moved = [
        after.begun_at - before.ended_at
        for shard_id in fleet.shards()
        for before, after in pairwise(fleet.diary.of(shard_id))
        if before.worker != after.worker
    ]
    assert len(moved) == 2
    assert max(moved) < 0.5
    assert sum(len(handover.records) for handover in fleet.diary.handovers) == len(fleet.diary.done)
    await fleet.stopped()
    fleet.check()


@simulated
async def test_worker_holds_no_more_than_its_limit() -> None:
    """``leases.max_leases``: what is above it is left to others, also when nobody else is there."""
    fleet = Fleet(shards=4)
    worker = fleet.start("A", leases={"max_leases": 3})
    await asyncio.sleep(30)
    assert len(fleet.held_by(worker)) == 3
    other = fleet.start("B", leases={"max_leases": 3})
    await fleet.until(lambda: len(fleet.held_by(other)) >= 1)
    fleet.put(40)
    await fleet.delivered()
    await fleet.stopped()
    fleet.check()


@simulated
async def test_shards_of_a_crashed_worker_are_taken_within_the_promised_time() -> None:
    """S3-07, S3-24: a killed worker's shards have an owner within F + H + half a second."""
    fleet = Fleet(shards=4)
    await running(fleet, workers=2, shards=4)
    fleet.members["A"].crash()
    await asyncio.sleep(FAILOVER_S + HEARTBEAT_S + 0.5)
    assert fleet.held_by(fleet.members["B"]) == set(fleet.shards())
    fleet.put(40)
    await fleet.delivered()
    await fleet.stopped()
    fleet.check()


@simulated
async def test_shards_of_a_stopped_worker_are_taken_within_two_ticks() -> None:
    """B-21: a clean stop costs no expiry: the others have everything within 2 T of its request."""
    fleet = Fleet(shards=4, leases={"failover_s": 10})
    await running(fleet, workers=2, shards=4)
    leaver, stayer = fleet.members["A"], fleet.members["B"]
    assert leaver.stream is not None
    await asyncio.sleep(5)
    leaver.stream.stop(20)
    await asyncio.sleep(2.0)
    assert fleet.held_by(stayer) == set(fleet.shards())
    await fleet.stopped()


@simulated
async def test_paused_worker_hands_nothing_over_when_it_wakes_up_after_its_deadline() -> None:
    """S3-08: a process that was stopped for longer than its tenure finds its fence closed before its records."""
    fleet = Fleet(shards=2)
    await running(fleet, shards=2)
    sleeper = fleet.members["A"]
    fleet.start("B")
    await asyncio.sleep(2 * FAILOVER_S)
    sleeper.pause(for_s=20)
    for _ in range(30):
        fleet.put(8)
        await asyncio.sleep(1)
    await fleet.delivered()
    await fleet.stopped()
    fleet.check()


@simulated
async def test_worker_cut_off_from_its_lease_table_stops_before_others_begin() -> None:
    """B-10: a partition from DynamoDB alone, with Kinesis still answering, leads to no two readers of a shard."""
    fleet = Fleet(shards=4)
    await running(fleet, workers=2, shards=4)
    fleet.members["A"].wire.is_store_cut = True
    for _ in range(80):
        fleet.put(8)
        await asyncio.sleep(0.1)
    await fleet.delivered()
    fleet.check()
    assert {handover.worker for handover in fleet.diary.handovers[-8:]} == {"B"}
