"""Where a fleet begins: first rows and their positions, restarts, ended shards, and tables of other streams."""

import asyncio
from dataclasses import replace

import pytest
from structlog.testing import LogCapture

from kcl_py import StreamIdentityError
from kcl_py.leases.items import item_from_row
from kcl_py.leases.row import LeaseRow, Native
from kcl_py.records import SequenceNumber
from tests.kcl_py.tree.fleet import FAILOVER_S, STREAM, Fleet, Member
from tests.simclock import EPOCH_S
from tests.simloop import simulated


async def ready(member: Member, fleet: Fleet, *, shards: int) -> None:
    """Wait until a worker reads that many shards."""
    await fleet.until(lambda: len(member.wire.of("fetch")) and len({c.key for c in member.wire.of("fetch")}) == shards)


@simulated
async def test_worker_reads_from_the_oldest_record_on_a_fresh_table() -> None:
    """S3-09, S3-13: trim_horizon is the default, and one row is made for each shard."""
    fleet = Fleet(shards=2)
    fleet.put(20)
    await asyncio.sleep(600)
    worker = fleet.start("A")
    await fleet.delivered()
    await fleet.stopped()
    assert {row.checkpoint.isdigit() for row in fleet.rows().values()} == {True}
    assert worker.error is None
    fleet.check()


@simulated
async def test_two_workers_that_start_at_once_make_and_take_each_row_once() -> None:
    """S3-04, S3-23: of two creations and of two takes one wins, and both share the shards."""
    fleet = Fleet(shards=4)
    fleet.put(40)
    fleet.start("A")
    fleet.start("B")
    await fleet.delivered()
    epochs = {(handover.shard_id, handover.epoch) for handover in fleet.diary.handovers}
    assert epochs == {(shard_id, 1) for shard_id in fleet.shards()}
    await fleet.stopped()
    fleet.check()


@simulated
async def test_worker_begins_at_latest_on_a_fresh_table_and_stores_that_instant() -> None:
    """Records from before the start are left out; the instant is the service's, two seconds early."""
    fleet = Fleet(shards=2, start="latest")
    old = set(fleet.put(20))
    await asyncio.sleep(60)
    worker = fleet.start("A")
    await ready(worker, fleet, shards=2)
    fleet.put_data -= old
    fleet.put(20)
    await fleet.delivered()
    assert not fleet.diary.done & old
    starts = [row.native.start_ms for row in fleet.rows().values()]
    assert all(start is not None and abs(start / 1000 - (EPOCH_S + 58)) <= 1 for start in starts)
    await fleet.stopped()


@pytest.mark.parametrize("start", ["latest", "2023-11-14T22:13:50Z"])
@simulated
async def test_nothing_is_lost_when_a_worker_crashes_before_the_first_checkpoint(start: str) -> None:
    """S3-44: the next owner begins where the first one did, not where the stream is by then."""
    fleet = Fleet(shards=2, start=start, checkpoint={"mode": "manual"})
    old = set(fleet.put(10))
    await asyncio.sleep(60)
    first = fleet.start("A")
    await ready(first, fleet, shards=2)
    fleet.put_data -= old
    fleet.put(20)
    await fleet.delivered()
    first.crash()
    handed_over = len(fleet.diary.handovers)
    await asyncio.sleep(60)
    fleet.put(20)
    fleet.start("B")
    await fleet.delivered()
    again = {data for handover in fleet.diary.handovers[handed_over:] for data in handover.data}
    assert again == fleet.put_data
    await fleet.stopped()


@simulated
async def test_worker_begins_at_a_timestamp_and_delivers_nothing_older() -> None:
    """S3-44: the shards are those that were open then, and reading begins at that instant."""
    fleet = Fleet(shards=2, start="2023-11-14T22:13:50Z")  # 30 s into the simulation
    old = set(fleet.put(10))
    await asyncio.sleep(31)
    fleet.put(10)
    await asyncio.sleep(60)
    fleet.start("A")
    fleet.put_data -= old
    await fleet.delivered()
    assert not fleet.diary.done & old
    await fleet.stopped()


@simulated
async def test_restarted_worker_goes_on_after_the_checkpoint() -> None:
    """S3-06: a clean restart hands nothing over twice and passes nothing over."""
    fleet = Fleet(shards=2)
    fleet.put(20)
    first = fleet.start("A")
    await fleet.delivered()
    assert (await first.stop()).is_clean
    fleet.put(20)
    fleet.start("A2")
    await fleet.delivered()
    await fleet.stopped()
    fleet.check()
    assert len(fleet.diary.done) == sum(len(handover.records) for handover in fleet.diary.handovers)


@pytest.mark.parametrize("start", ["trim_horizon", "latest", "2030-01-01T00:00:00Z"])
@simulated
async def test_start_counts_for_nothing_once_the_application_has_begun(start: str) -> None:
    """S2-21: neither what is finished comes again nor what was put while nobody ran is passed over."""
    fleet = Fleet(shards=2)
    fleet.put(20)
    first = fleet.start("A")
    await fleet.delivered()
    await first.stop()
    fleet.put(20)
    await asyncio.sleep(60)
    fleet.start("B", start=start)
    await fleet.delivered()
    await fleet.stopped()
    fleet.check_once()


@simulated
async def test_ended_shards_are_never_opened_again_over_three_restarts() -> None:
    """S3-20: a row at SHARD_END starts no Shard and costs no iterator, though the shard is still listed."""
    fleet = Fleet(shards=1)
    parent = fleet.shards()[0]
    fleet.put(10)
    workers = [fleet.start("A0")]
    fleet.split(parent)
    await fleet.until(lambda: len(fleet.rows()) == 3 and fleet.row(parent).has_ended)
    for number in range(1, 4):
        await fleet.stopped()
        fleet.put(10)
        workers.append(fleet.start(f"A{number}"))
        await fleet.delivered()
    await fleet.stopped()
    opened = [len(worker.wire.of("open", key=parent)) for worker in workers]
    assert opened == [1, 0, 0, 0]
    assert len(fleet.diary.called("initialize", shard_id=parent)) == 1
    fleet.check()


@simulated
async def test_children_of_a_shard_that_ended_while_nobody_ran_are_read_after_it() -> None:
    """S3-19: a stream that was resharded in the meantime is read in the order of its lineage."""
    fleet = Fleet(shards=2)
    fleet.put(10)
    first = fleet.start("A")
    await fleet.delivered()
    await first.stop()
    fleet.put(10)
    for shard_id in fleet.shards():
        fleet.split(shard_id)
        await asyncio.sleep(1)
    fleet.put(10)
    upper, lower = fleet.shards()[3], fleet.shards()[4]
    fleet.merge(upper, lower)
    await asyncio.sleep(1)
    fleet.put(20)
    fleet.start("B")
    await fleet.delivered()
    await fleet.stopped()
    fleet.check()


# --- whose table it is -----------------------------------------------------------------------------------------------


def seed(fleet: Fleet, row: LeaseRow) -> None:
    fleet.store.items[row.key] = item_from_row(row)


@simulated
async def test_worker_refuses_the_table_of_another_stream() -> None:
    """B-15: shard ids repeat over streams, so a row names its stream; a stranger's is a typed error at the start."""
    fleet = Fleet(shards=1)
    seed(fleet, LeaseRow(fleet.shards()[0], checkpoint="7", native=Native(stream="payments:1")))
    worker = fleet.start("A")
    await worker.ended()
    assert isinstance(worker.error, StreamIdentityError)
    assert STREAM in str(worker.error)
    assert "payments:1" in str(worker.error)
    assert fleet.row(fleet.shards()[0]).checkpoint == "7"


@simulated
async def test_worker_refuses_a_table_of_an_earlier_stream_of_the_same_name() -> None:
    """After a stream was deleted and made anew its old positions mean nothing: typed error, one try."""
    fleet = Fleet(shards=1)
    seed(fleet, LeaseRow(fleet.shards()[0], checkpoint="7", native=Native(stream=f"{STREAM}:{int(EPOCH_S) - 99}")))
    worker = fleet.start("A")
    await worker.ended()
    assert isinstance(worker.error, StreamIdentityError)
    assert "on_recreated" in str(worker.error)
    assert f"{STREAM}:{int(EPOCH_S)}" in str(worker.error)
    assert len(worker.wire.calls) <= 4


@simulated
async def test_worker_begins_anew_when_told_to_after_the_stream_was_recreated(log: LogCapture) -> None:
    """``on_recreated: reset`` drops the rows of the earlier stream and reads the new one from the start."""
    fleet = Fleet(shards=2, leases={"on_recreated": "reset"})
    earlier = Native(stream=f"{STREAM}:{int(EPOCH_S) - 99}")
    for shard_id in [*fleet.shards(), "shardId-000000000009"]:
        seed(fleet, LeaseRow(shard_id, checkpoint="7", counter=50, native=earlier))
    fleet.put(20)
    fleet.start("A")
    await fleet.delivered()
    await fleet.stopped()
    assert sorted(fleet.rows()) == fleet.shards()
    assert len([entry for entry in log.entries if entry["event"] == "kcl_py.lease.reset"]) == 3


@simulated
async def test_running_worker_fails_when_rows_of_another_stream_appear() -> None:
    """Two streams in one table are found out while running, too, and nothing is read from the wrong row."""
    fleet = Fleet(shards=1)
    fleet.put(10)
    worker = fleet.start("A")
    await fleet.delivered()
    seed(fleet, LeaseRow("shardId-000000000007", native=Native(stream="payments:1")))
    await worker.ended()
    assert isinstance(worker.error, StreamIdentityError)


@simulated
async def test_rows_without_an_identity_are_adopted_and_gone_on_with() -> None:
    """Rows that a Java worker left name no stream: they are taken over with their checkpoint."""
    fleet = Fleet(shards=1)
    fleet.put(10)
    shard_id = fleet.shards()[0]
    tenth = fleet.model.call("GetRecords", {"ShardIterator": _iterator(fleet, shard_id)})["Records"][9]
    fleet.put_data.clear()
    fleet.put(5)
    row = LeaseRow(shard_id, counter=7, checkpoint=tenth.sequence_number, native=Native(), has_native=False)
    seed(fleet, replace(row, owner=None))
    fleet.start("A")
    await fleet.delivered()
    assert fleet.diary.done == fleet.put_data
    await fleet.stopped()
    assert fleet.row(shard_id).native.stream == f"{STREAM}:{int(EPOCH_S)}"
    assert fleet.row(shard_id).position is not None
    assert fleet.row(shard_id).position > SequenceNumber(int(tenth.sequence_number))  # type: ignore[operator]


def _iterator(fleet: Fleet, shard_id: str) -> str:
    asked = {"StreamName": STREAM, "ShardId": shard_id, "ShardIteratorType": "TRIM_HORIZON"}
    iterator: str = fleet.model.call("GetShardIterator", asked)["ShardIterator"]
    return iterator


# --- an owner's earlier rows -----------------------------------------------------------------------------------------


@simulated
async def test_restart_under_the_same_id_waits_for_the_old_rows_to_expire() -> None:
    """B-11: a worker id alone proves nothing; each run has an incarnation of its own."""
    fleet = Fleet(shards=2)
    fleet.put(10)
    first = fleet.start("A")
    await fleet.delivered()
    first.crash()
    crashed_at = fleet.loop.time()
    fleet.put(10)
    fleet.start("again", leases={"worker_id": "A"})
    await fleet.delivered()
    assert fleet.diary.handovers[-1].begun_at > crashed_at + FAILOVER_S
    await fleet.stopped()
    fleet.check()


@simulated
async def test_restart_under_an_exclusive_id_takes_its_old_rows_at_once() -> None:
    """``leases.exclusive_id``: the user promises that no other worker has this id, so nothing is waited for."""
    fleet = Fleet(shards=2, leases={"exclusive_id": True})
    fleet.put(10)
    first = fleet.start("A")
    await fleet.delivered()
    first.crash()
    crashed_at = fleet.loop.time()
    fleet.put(10)
    fleet.start("again", leases={"worker_id": "A", "exclusive_id": True})
    await fleet.delivered()
    assert fleet.loop.time() < crashed_at + 1.0
    await fleet.stopped()
    fleet.check()
