"""Effects and checkpoints in one transaction: whatever happens to a worker, what is counted is what is checkpointed."""

import asyncio
from collections.abc import Callable
from typing import ClassVar

import pytest

from kcl_py import Checkpointer, Once, OwnedShard, Record, RecordBatch, RecordProcessor, Redelivery
from tests.kcl_py.tree.diary import Work
from tests.kcl_py.tree.fleet import FAILOVER_S, Member
from tests.kcl_py.tree.sums import (
    BATCH,
    MARKS,
    a_counting_fleet,
    all_counted,
    check_sums,
    count,
    count_in_two,
    count_once,
)
from tests.kcl_py.tree.wire import Fault
from tests.simloop import SimTask, run, simulated

RECORDS, SEED = 30, 3
ACTORS = ("/lease", "/lease task", "/pipeline", "/pipeline task")
POINTS = 60
"""How many of the await points of a life a worker is ended at."""
LOST = (Fault.LOST_REPLY, Fault.LOST_REQUEST, Fault.LATE, Fault.BROKEN, Fault.THROTTLED, Fault.REJECTED)


async def count_otherwise_when_it_comes_again(batch: RecordBatch, checkpointer: Checkpointer) -> None:
    """Cut the second attempt at a batch at other places than the first."""
    await (count_in_two if batch.redelivery is None else count_once)(batch, checkpointer)


def live(at: int | None, end: Callable[[Member], None]) -> int:
    """Have one worker count, end it at one of its steps, and another go on; return how many steps the first one had."""

    async def life() -> int:
        fleet, store = a_counting_fleet(seed=SEED)
        steps = 0

        def before_step(task: SimTask) -> None:
            nonlocal steps
            if task.worker == "A" and task.place.endswith(ACTORS):
                if steps == at:
                    fleet.loop.before_step = None
                    end(fleet.members["A"])
                steps += 1

        fleet.put(RECORDS)
        fleet.loop.before_step = before_step
        fleet.start("A", work=count_in_two)
        if at is not None:
            await fleet.until(lambda: steps > at or all_counted(fleet, store))
            await asyncio.sleep(FAILOVER_S)  # what is on its way arrives
            check_sums(fleet, store)
            fleet.start("B", work=count_in_two)
        await fleet.until(lambda: all_counted(fleet, store))
        found = steps
        await fleet.stopped()
        check_sums(fleet, store)
        assert sum(store.sums().values()) == RECORDS
        return found

    return run(life, seed=SEED)


@pytest.fixture(scope="module")
def steps() -> int:
    """How many steps there are."""
    return live(None, Member.crash)


@pytest.mark.parametrize("end", [Member.crash, Member.kill], ids=["crash", "kill"])
@pytest.mark.parametrize("part", range(4))
def test_worker_that_ends_anywhere_has_counted_what_it_has_checkpointed(
    steps: int, part: int, end: Callable[[Member], None]
) -> None:
    """No await between effect and checkpoint is a gap; the next worker counts the rest."""
    for number in range(part, steps, max(steps // POINTS, 1) * 4):
        live(number, end)


@pytest.mark.parametrize("mode", ["auto", "manual"])
@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("fault", LOST, ids=lambda fault: fault.name)
@simulated
async def test_transactions_that_fail_on_the_way_count_once(fault: Fault, times: int, mode: str) -> None:
    """A reply that is lost, a request that is late, throttling: the row tells what became of it."""
    fleet, store = a_counting_fleet(checkpoint={"mode": mode})
    fleet.put(RECORDS)
    member = fleet.start("A", work=count_in_two)
    await fleet.until(lambda: member.stream is not None)
    member.wire.fail("transact", fault, times=times)
    if times == 1:
        member.wire.fail("read", Fault.LOST_REPLY)
    await fleet.until(lambda: all_counted(fleet, store))
    await fleet.stopped()
    check_sums(fleet, store)
    assert sum(store.sums().values()) == RECORDS
    assert member.wire.of("transact")


@pytest.mark.parametrize("fault", [Fault.LATE, Fault.LOST_REPLY, Fault.LOST_REQUEST], ids=lambda fault: fault.name)
@pytest.mark.parametrize("work", [count_once, count_in_two, count_otherwise_when_it_comes_again])
@simulated
async def test_attempt_that_is_cut_off_in_a_transaction_counts_once(work: Work, fault: Fault) -> None:
    """What the first attempt has sent may arrive when the second one runs."""
    options = {"batch": {"max_records": 6}, "backoff_s": 0.02, "retries": 20, "attempt_timeout_s": 0.1}
    fleet, store = a_counting_fleet(shards=1, delivery=options)
    fleet.put(RECORDS)
    member = fleet.start("A", work=work)
    await fleet.until(lambda: member.stream is not None)
    member.wire.fail("transact", fault, times=2)
    await fleet.until(lambda: all_counted(fleet, store))
    await fleet.stopped()
    check_sums(fleet, store)
    assert sum(store.sums().values()) == RECORDS
    assert any(handover.redelivery for handover in fleet.diary.handovers)


@simulated
async def test_worker_that_is_frozen_while_its_shards_are_taken_over_adds_nothing() -> None:
    """It wakes with a transaction at hand; the lease's conditions refuse it."""
    fleet, store = a_counting_fleet()
    fleet.put(RECORDS)

    async def slow(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        await asyncio.sleep(0.2)
        await count_once(batch, checkpointer)

    member = fleet.start("A", work=slow)
    fleet.start("B", work=slow)
    await fleet.until(lambda: store.sums())
    member.pause(for_s=2 * FAILOVER_S, with_clock=True)
    await fleet.until(lambda: all_counted(fleet, store))
    await asyncio.sleep(2 * FAILOVER_S)
    await fleet.stopped()
    check_sums(fleet, store)
    assert sum(store.sums().values()) == RECORDS


@simulated
async def test_fleet_that_grows_and_shrinks_over_a_split_counts_each_record_once() -> None:
    """Handoffs, a crash, a split, lost replies: the sum is the number of records."""
    fleet, store = a_counting_fleet(shards=3, seed=11)
    fleet.put(60)
    first = fleet.start("A", work=count_in_two)
    await fleet.until(lambda: store.sums())
    second = fleet.start("B", work=count_once)
    for member in (first, second):
        member.wire.fail("transact", Fault.LOST_REPLY, times=5)
    await asyncio.sleep(1)
    fleet.split(fleet.shards()[0])
    fleet.put(60)
    fleet.start("C", work=count_in_two)
    await asyncio.sleep(1)
    first.crash()
    fleet.put(30)
    await fleet.until(lambda: all_counted(fleet, store))
    await fleet.stopped()
    check_sums(fleet, store)
    assert sum(store.sums().values()) == 150


@simulated
async def test_effects_that_cannot_be_written_for_long_cost_no_lease() -> None:
    """A table that throttles is not the lease's: heartbeats go on, and the batch comes again until it gets through."""
    fleet, store = a_counting_fleet(shards=1, delivery={"batch": {"max_records": BATCH}, "retries": 100})
    fleet.put(RECORDS)
    member = fleet.start("A", work=count_once)
    await fleet.until(lambda: member.stream is not None)
    member.wire.fail("transact", Fault.THROTTLED, times=10_000)
    await asyncio.sleep(4 * FAILOVER_S)
    assert not store.sums()
    member.wire.recover()
    await fleet.until(lambda: all_counted(fleet, store))
    assert {handover.epoch for handover in fleet.diary.handovers} == {1}
    assert len(member.wire.of("heartbeat")) > 4
    await fleet.stopped()
    check_sums(fleet, store)


@simulated
async def test_transaction_whose_attempt_was_cut_off_is_not_tried_again() -> None:
    """Nobody wants it any more; the next attempt may decide otherwise."""
    options = {"retries": 100, "attempt_timeout_s": 0.5, "backoff_s": 0.05}
    fleet, store = a_counting_fleet(shards=1, delivery=options, checkpoint={"mode": "manual"})
    fleet.put(BATCH)

    async def give_up(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        if batch.redelivery is None:
            await count_once(batch, checkpointer)

    member = fleet.start("A", work=give_up)
    await fleet.until(lambda: member.stream is not None)
    member.wire.fail("transact", Fault.THROTTLED, times=10_000)
    await fleet.delivered()
    await asyncio.sleep(1)
    tried = len(member.wire.of("transact"))
    member.wire.recover()
    await asyncio.sleep(2 * FAILOVER_S)
    assert (len(member.wire.of("transact")), store.sums()) == (tried, {})
    await fleet.stopped()


@simulated
async def test_effects_of_what_is_checkpointed_already_are_not_applied() -> None:
    """Whoever has stored it, here the heartbeat: the call says so."""
    fleet, store = a_counting_fleet(shards=1)
    [shard_id] = fleet.shards()
    fleet.put(2 * BATCH)
    said: list[bool] = []
    batches: list[RecordBatch] = []

    async def late(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        batches.append(batch)
        if len(batches) == 2:
            await fleet.until(lambda: fleet.row(shard_id).position == batches[0].last)
            said.append(await checkpointer.once(count(shard_id, BATCH), at=batches[0]))

    fleet.start("A", work=late)
    await fleet.delivered()
    assert (said, store.sums()) == ([False], {})
    await fleet.stopped()


class CountingOne(RecordProcessor):
    """Counts record by record, and raises after the effects of each third one are applied."""

    again: ClassVar[list[Record]] = []

    async def initialize(self, shard: OwnedShard) -> None:
        self.shard, self.once = shard, Once(shard, table=MARKS, ttl_s=60)

    async def process(self, record: Record) -> None:
        self.again.extend([record] if isinstance(record.redelivery, Redelivery) else [])
        if await self.once.apply(record, count(self.shard.shard_id, 1)) and int(record.data) % 3 == 0:
            raise ValueError("after the effects")


@pytest.mark.parametrize("end", [Member.crash, Member.kill], ids=["crash", "kill"])
@pytest.mark.parametrize("after_s", [0.7, 0.9, 1.1])
@simulated
async def test_record_by_record_in_shard_order_effects_and_checkpoint_are_one(
    after_s: float, end: Callable[[Member], None]
) -> None:
    """Without a marker; a record that fails after that is finished, and comes not again."""
    fleet, store = a_counting_fleet(delivery={"ordering": "shard", "concurrency": 2, "backoff_s": 0.05})
    fleet.put(RECORDS)
    CountingOne.again.clear()
    member = fleet.start("A", processor=CountingOne)
    await asyncio.sleep(after_s)
    end(member)
    await asyncio.sleep(FAILOVER_S)
    check_sums(fleet, store)
    fleet.start("B", processor=CountingOne)
    await fleet.until(lambda: all_counted(fleet, store))
    await fleet.stopped()
    check_sums(fleet, store)
    assert (sum(store.sums().values()), store.rows_of(MARKS), CountingOne.again) == (RECORDS, [], [])
