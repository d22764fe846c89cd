"""Checkpoints that went wrong for users of other clients (docs/cases.md, "Checkpoints"), on whole workers.

Each test says in its name what holds instead.
"""

import asyncio
import random
from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from structlog.testing import LogCapture

from kcl_py import CheckpointFailedError, LeaseLostError, LeaseTableError, PositionError, StreamIdentityError
from kcl_py.leases.items import item_from_row
from kcl_py.leases.memory import MemoryLeaseStore
from kcl_py.leases.row import LeaseRow, Native
from kcl_py.leases.store import Write
from kcl_py.processor import Checkpointer, RecordProcessor
from kcl_py.records import Record, RecordBatch, SequenceNumber
from kcl_py.testing import run_processor
from tests.kcl_py.tree.fleet import FAILOVER_S, STREAM, Fleet, running
from tests.kcl_py.tree.wire import Fault
from tests.simclock import EPOCH_S
from tests.simloop import simulated

HEARTBEAT_S = FAILOVER_S / 3


class NotingStore(MemoryLeaseStore):
    """A store that notes each position that a row comes to hold, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: dict[str, list[SequenceNumber]] = defaultdict(list)

    async def write(self, write: Write) -> LeaseRow:
        row = await super().write(write)
        if row.position is not None and row.position not in self.stored[row.key][-1:]:
            self.stored[row.key].append(row.position)
        return row


def events(log: LogCapture, name: str) -> list[dict[str, object]]:
    return [dict(entry) for entry in log.entries if entry["event"] == name]


# --- where a checkpoint stands ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
@simulated
async def test_stored_positions_only_go_forward_and_are_of_their_own_shard(seed: int) -> None:
    """B022, B031: records of three shards are acknowledged in any order, some writes fail, a worker dies."""
    fleet = Fleet(shards=3, seed=seed, checkpoint={"mode": "manual"})
    fleet.store = store = NotingStore()
    generator, handed_over = random.Random(seed), defaultdict[str, set[SequenceNumber]](set)

    async def in_any_order(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        handed_over[batch.shard_id].update(record.position for record in batch)
        fleet.diary.done.update(record.data for record in batch)
        for record in generator.sample(batch.records, min(4, len(batch))):
            with suppress(CheckpointFailedError, LeaseLostError):
                await checkpointer.checkpoint(record)

    workers = [fleet.start(name, work=in_any_order) for name in "AB"]
    for number in range(40):
        fleet.put(12)
        if number % 4 == 0:
            for worker in workers:
                worker.wire.fail("checkpoint", generator.choice([Fault.LATE, Fault.LOST_REPLY, Fault.BROKEN]))
        await asyncio.sleep(0.2)
        if number == 30:
            workers[0].crash()
    await fleet.delivered()
    await fleet.stopped()
    assert set(store.stored) == set(fleet.shards())
    for shard_id, positions in store.stored.items():
        assert len(positions) > 5
        assert all(after > before for before, after in pairwise(positions))
        assert set(positions) <= handed_over[shard_id]
    fleet.check()


@pytest.mark.parametrize("failures", [1, 99])
@simulated
async def test_checkpoint_never_passes_a_batch_that_failed(failures: int) -> None:
    """B024: the second of three batches fails once, and is done again; or always, and then nothing passes it."""
    fleet = Fleet(shards=1, delivery={"retries": 2, "backoff_s": 0.1, "batch": {"max_records": 5}})
    payloads, left = fleet.put(15), failures

    async def second_fails(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        nonlocal left
        if batch.records[0].data == payloads[5] and left:
            left -= 1
            raise RuntimeError("the sink is down")

    worker = fleet.start("A", work=second_fails)
    if failures == 1:
        await fleet.delivered()
    else:
        await fleet.until(lambda: fleet.rows() and fleet.row(fleet.shards()[0]).native.halted)
        await asyncio.sleep(20)
        assert fleet.diary.done == set(payloads[:5])
    await worker.stop()
    tries = [payloads.index(handover.data[0]) for handover in fleet.diary.handovers]
    assert tries == ([0, 5, 5, 10] if failures == 1 else [0, 5, 5, 5])
    left = 0
    fleet.start("B", work=second_fails)
    fleet.put(5)
    await fleet.delivered()
    again = fleet.diary.handovers[len(tries)]
    assert (again.data[0] == payloads[5]) is (failures > 1)
    await fleet.stopped()
    fleet.check()


@simulated
async def test_record_that_failed_comes_again_though_its_processor_had_emptied_the_batch() -> None:
    """B024: the batch is the processor's own, to take apart as it likes; what comes again is what was handed over."""
    fleet = Fleet(shards=1, delivery={"retries": 2, "backoff_s": 0.1})
    payloads, done, is_down = fleet.put(10), set[bytes](), True

    async def take_apart(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        nonlocal is_down
        while batch.records:
            record = batch.records.pop(0)
            if record.data == payloads[4] and is_down:
                is_down = False
                raise RuntimeError("the sink is down")
            done.add(record.data)

    fleet.start("A", work=take_apart)
    await fleet.until(lambda: len(done) == 10, within_s=20)
    await fleet.stopped()


@simulated
async def test_checkpoint_without_a_position_in_the_middle_of_a_batch_leaves_the_rest_to_come() -> None:
    """B027: four of ten are said to be done, the worker stops at the fifth: the next one begins with the fifth."""
    fleet = Fleet(shards=1, checkpoint={"mode": "manual"})
    payloads = fleet.put(10)

    async def stuck_at_the_fifth(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        await checkpointer.checkpoint(batch.records[3])
        await checkpointer.checkpoint()
        try:
            await asyncio.sleep(1000)
        finally:
            await checkpointer.checkpoint()

    worker = fleet.start("A", work=stuck_at_the_fifth)
    await fleet.until(lambda: fleet.diary.handovers)
    outcome = await worker.stop(grace_s=1)
    assert outcome.unfinished == 6
    fleet.start("B")
    await fleet.until(lambda: len(fleet.diary.handovers) == 2)
    assert [handover.data for handover in fleet.diary.handovers] == [payloads, payloads[4:]]
    await fleet.stopped()


@simulated
async def test_positions_that_were_never_handed_over_are_refused_before_any_write() -> None:
    """B032: too new, of another shard, made up or no record at all: one typed error each, and the shard goes on."""
    fleet = Fleet(shards=1, checkpoint={"mode": "manual"})
    fleet.put(5)
    refused: list[str] = []

    async def wrong(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        last = batch.records[-1]
        before = msgspec.structs.replace(last, sub_sequence_number=-1)
        within = msgspec.structs.replace(last, sub_sequence_number=7)
        beyond = msgspec.structs.replace(last, sequence_number=str(last.position.value + 1))
        foreign = replace(batch, shard_id="shardId-000000000009")
        made_up: list[Any] = [before, beyond, within, foreign, "", "SHARD_END", "TRIM_HORIZON", str(last.position), 7]
        for at in made_up:
            with pytest.raises(PositionError, match="cannot checkpoint"):
                await checkpointer.checkpoint(at)
            refused.append(batch.shard_id)

    worker = fleet.start("A", work=wrong)
    await fleet.delivered()
    fleet.put(5)
    await fleet.delivered()
    await asyncio.sleep(2 * HEARTBEAT_S)
    assert len(refused) == 18
    assert not worker.wire.of("checkpoint")
    assert fleet.row(fleet.shards()[0]).checkpoint == "TRIM_HORIZON"
    assert len(fleet.diary.called("initialize")) == 1
    await fleet.stopped()


# --- one shard and the others ----------------------------------------------------------------------------------------


@simulated
async def test_shard_whose_checkpoints_fail_keeps_no_other_from_being_stored(log: LogCapture) -> None:
    """B028: the first of three is refused at every try; the other two are stored each heartbeat."""
    fleet = Fleet(shards=3)
    fleet.store = store = NotingStore()
    await running(fleet, shards=3)
    failing, *others = fleet.shards()
    fleet.members["A"].wire.fail("heartbeat", Fault.REJECTED, times=2, key=failing)
    fleet.members["A"].wire.fail("checkpoint", Fault.REJECTED, times=2, key=failing)
    before = {shard_id: len(store.stored[shard_id]) for shard_id in fleet.shards()}
    await asyncio.sleep(0.5)
    fleet.put(60)
    await asyncio.sleep(1.2 * HEARTBEAT_S)
    assert all(len(store.stored[shard_id]) == before[shard_id] + 1 for shard_id in others)
    refused = events(log, "kcl_py.lease.request_failed")
    assert {entry["shard_id"] for entry in refused} == {failing}
    await fleet.delivered()
    await fleet.stopped()
    fleet.check()


@pytest.mark.parametrize("shards", [1, 8])
@simulated
async def test_each_shard_is_stored_once_an_interval_however_many_there_are(shards: int) -> None:
    """B030: each second for ten seconds, give or take the jitter, for each shard with progress."""
    fleet = Fleet(shards=shards, checkpoint={"interval_s": 1.0})
    fleet.store = store = NotingStore()
    await running(fleet, shards=shards)
    await asyncio.sleep(2)
    store.stored.clear()
    for _ in range(100):
        fleet.put(6 * shards)
        await asyncio.sleep(0.1)
    assert set(store.stored) == set(fleet.shards())
    assert all(9 <= len(positions) <= 11 for positions in store.stored.values()), store.stored
    await fleet.stopped()


@simulated
async def test_lease_that_is_stolen_ends_its_own_shard_and_no_other() -> None:
    """B035: four siblings of a stolen shard are handed records as before, by the processors that they had."""
    fleet = Fleet(shards=5)
    await running(fleet, shards=5)
    worker, (stolen, *others) = fleet.members["A"], fleet.shards()
    row = fleet.row(stolen)
    theft = replace(row, owner="thief/1", counter=row.counter + 9, native=Native(token="stolen", owner="thief/1"))
    fleet.store.items[stolen] = item_from_row(theft)
    began_at = fleet.loop.time()
    for _ in range(20):
        fleet.put(25)
        await asyncio.sleep(0.1)
    assert [call.shard_id for call in fleet.diary.called("lease_lost")] == [stolen]
    assert worker.node("shards").restarts == 0
    for shard_id in others:
        assert len(fleet.diary.called("initialize", shard_id=shard_id)) == 1
        begun = [each.begun_at for each in fleet.diary.of(shard_id) if each.begun_at >= began_at]
        assert max(after - before for before, after in pairwise([began_at, *begun, fleet.loop.time()])) < 1.5
    await fleet.delivered()
    assert worker.error is None
    await fleet.stopped()
    fleet.check()


# --- what cannot be stored -------------------------------------------------------------------------------------------


@simulated
async def test_checkpoint_into_a_table_that_is_gone_is_tried_once_and_ends_the_worker() -> None:
    """B034: a lost lease and throttling have tests of their own; a missing table is neither."""
    fleet = Fleet(shards=1, checkpoint={"mode": "manual"})

    async def store_all(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        for operation in ("scan", "read", "take", "heartbeat", "checkpoint", "release"):
            worker.wire.fail(operation, Fault.MISSING, times=1000)
        await checkpointer.checkpoint(batch)

    worker = fleet.start("A", work=store_all)
    fleet.put(5)
    await worker.ended()
    assert isinstance(worker.error, LeaseTableError)
    assert len(worker.wire.of("checkpoint")) == 1
    assert fleet.loop.time() < 2.0


@simulated
async def test_running_worker_whose_stream_is_made_anew_ends_with_an_error_that_names_both() -> None:
    """B036: old positions mean nothing in the new stream; they are not tried at it over and over."""
    fleet = Fleet(shards=1)
    await running(fleet, shards=1)
    worker = fleet.members["A"]
    fleet.model.call("DeleteStream", {"StreamName": STREAM})
    await asyncio.sleep(5)
    fleet.model.add_stream(STREAM, 1)
    made_at = fleet.loop.time()
    await worker.ended()
    assert isinstance(worker.error, StreamIdentityError)
    assert all(f"{STREAM}:{int(EPOCH_S) + since}" in str(worker.error) for since in (0, 5)), worker.error
    assert "on_recreated" in str(worker.error)
    assert fleet.loop.time() < made_at + 10
    assert len(worker.wire.of("open", "fetch", "describe")) < 20


class Behind(RecordProcessor):
    """Keeps the last batch in memory, and says of its first record alone that it is finished."""

    kept: Record | None = None

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        if self.kept is not None:
            await checkpointer.checkpoint(self.kept)
        self.kept = batch.records[0]


@pytest.mark.asyncio
@pytest.mark.parametrize(("mode", "stored"), [("manual", 0), ("auto", 2)])
async def test_manual_checkpoint_stores_no_more_than_was_asked_for(mode: Any, stored: int) -> None:
    """Its batch has returned, but what it still holds would be lost with the worker."""
    run = await run_processor(Behind, ["a", "b", "c"], batch_size=2, checkpoint=mode)
    [(shard_id, checkpoint)] = run.checkpoints.items()
    assert checkpoint == run.records[shard_id][stored].sequence_number
