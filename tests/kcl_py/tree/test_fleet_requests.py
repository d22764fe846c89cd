"""Requests from outside, over whole workers on virtual time."""

import asyncio

import pytest

from kcl_py.leases import by_hand
from kcl_py.leases.requests import RELEASE, SEEK
from kcl_py.leases.row import Request
from tests.kcl_py.tree.diary import Handover, check_disjoint
from tests.kcl_py.tree.fleet import FAILOVER_S, STREAM, Fleet, running
from tests.kcl_py.tree.wire import Fault
from tests.simclock import EPOCH_S
from tests.simloop import simulated

SHARD = "shardId-000000000000"
HEARTBEAT_S = FAILOVER_S / 3


async def ask(fleet: Fleet, kind: str, position: str | None = None, *, key: str = "r1") -> None:
    """Ask the holder of the first shard for something."""
    await fleet.store.write(by_hand.request(fleet.row(SHARD), Request(key, kind, position)))


async def answered(fleet: Fleet) -> None:
    await fleet.until(lambda: fleet.row(SHARD).native.request is None)


def since(fleet: Fleet, at: float) -> list[Handover]:
    """Return the hand-overs of the first shard that began after an instant."""
    return [handover for handover in fleet.diary.of(SHARD) if handover.begun_at >= at]


def number_of(fleet: Fleet, index: int) -> str:
    """Return the sequence number of one of the records in the first shard."""
    asked = {"StreamName": STREAM, "ShardId": SHARD, "ShardIteratorType": "TRIM_HORIZON"}
    iterator = fleet.model.call("GetShardIterator", asked)["ShardIterator"]
    number: str = fleet.model.call("GetRecords", {"ShardIterator": iterator})["Records"][index].sequence_number
    return number


def delivered(handovers: list[Handover]) -> list[bytes]:
    return [data for handover in handovers for data in handover.data]


@simulated
async def test_seek_back_delivers_again_from_there_in_order_and_later_epochs_go_on() -> None:
    """To a new processor in the same worker; the one before has heard that it is to end."""
    fleet = Fleet(shards=2)
    await running(fleet, workers=2)
    truth = fleet.truth(SHARD)
    epoch = fleet.diary.of(SHARD)[-1].epoch
    await ask(fleet, SEEK, number_of(fleet, 4))
    await answered(fleet)
    at = fleet.clock.monotonic()
    await fleet.until(lambda: delivered(since(fleet, at - 0.01)) == truth[5:])
    again = since(fleet, at - 0.01)
    assert {handover.epoch > epoch for handover in again} == {True}
    assert {handover.worker for handover in again} == {fleet.diary.of(SHARD)[0].worker}
    assert fleet.diary.called("shutdown_requested", shard_id=SHARD)
    fleet.put(40)
    await fleet.delivered()
    assert delivered(since(fleet, at - 0.01)) == fleet.truth(SHARD)[5:]
    await fleet.stopped()
    check_disjoint(fleet.diary.of(SHARD))


@pytest.mark.parametrize("by", ["number", "time"])
@simulated
async def test_seek_forward_skips_what_is_before(by: str) -> None:
    """A backlog that nobody wants any more: nothing of it is handed over, and all that follows is."""
    fleet = Fleet(
        shards=1, fetch={"max_records": 10}, delivery={"batch": {"max_records": 1}, "max_ahead": {"records": 5}}
    )
    fleet.diary.work_s = 0.5
    fleet.put(30)
    fleet.start("A")
    await fleet.until(lambda: len(fleet.diary.of(SHARD)) > 3)
    await asyncio.sleep(0.05)
    at_ms = int((EPOCH_S + fleet.clock.monotonic()) * 1000)
    await asyncio.sleep(0.05)
    skipped_until = len(fleet.truth(SHARD))
    wanted = fleet.put(30)
    last = number_of(fleet, skipped_until - 1)
    await ask(fleet, SEEK, last if by == "number" else f"AT_TIMESTAMP@{at_ms}")
    await answered(fleet)
    at = fleet.clock.monotonic()
    await fleet.until(lambda: set(wanted) <= fleet.diary.done)
    assert delivered(since(fleet, at - 0.01)) == wanted
    assert not fleet.put_data <= fleet.diary.done, "this asks nothing if all had been read before"
    await fleet.stopped()


@simulated
async def test_holder_that_crashes_leaves_the_request_to_who_takes_its_shard() -> None:
    """Between the request and its answer."""
    fleet = Fleet(shards=1)
    await running(fleet, shards=1)
    truth = fleet.truth(SHARD)
    await ask(fleet, SEEK, number_of(fleet, 9))
    fleet.members["A"].crash()
    member = fleet.start("B")
    await answered(fleet)
    await fleet.until(lambda: delivered([each for each in fleet.diary.of(SHARD) if each.worker == "B"]) == truth[10:])
    assert fleet.held_by(member) == {SHARD}
    assert len(fleet.diary.called("initialize", worker="B")) == 1, "nothing runs before the answer"
    await fleet.stopped()


@simulated
async def test_seek_whose_reply_is_lost_and_whose_holder_crashes_is_done_once() -> None:
    """The row holds the place; the next owner begins there, as after any crash."""
    fleet = Fleet(shards=1)
    await running(fleet, shards=1)
    truth = fleet.truth(SHARD)
    member = fleet.members["A"]
    member.wire.fail("seek", Fault.LOST_REPLY)
    await ask(fleet, SEEK, number_of(fleet, 9))
    await answered(fleet)
    member.crash()
    fleet.start("B")
    await fleet.until(lambda: delivered([each for each in fleet.diary.of(SHARD) if each.worker == "B"]) == truth[10:])
    await fleet.stopped()


@simulated
async def test_shard_that_is_let_go_is_left_to_others() -> None:
    """And stays there: balance does not bring that one back."""
    fleet = Fleet(shards=4)
    await running(fleet, workers=2, shards=4)
    await asyncio.sleep(4 * FAILOVER_S)
    [before] = [member for member in fleet.members.values() if SHARD in fleet.held_by(member)]
    [other] = [member for member in fleet.members.values() if member is not before]
    await ask(fleet, RELEASE)
    await fleet.until(lambda: SHARD in fleet.held_by(other), within_s=3 * FAILOVER_S)
    await asyncio.sleep(4 * FAILOVER_S)
    assert SHARD in fleet.held_by(other)
    assert len(fleet.held_by(before)) == len(fleet.held_by(other)) == 2
    fleet.put(20)
    await fleet.delivered()
    await fleet.stopped()
    fleet.check()


@simulated
async def test_who_is_alone_takes_back_what_it_let_go() -> None:
    """In a new ownership."""
    fleet = Fleet(shards=1)
    await running(fleet, shards=1)
    await ask(fleet, RELEASE)
    await fleet.until(lambda: len(fleet.diary.called("initialize")) == 2, within_s=2 * HEARTBEAT_S)
    fleet.put(20)
    await fleet.delivered()
    await fleet.stopped()
    fleet.check()


@simulated
async def test_shard_that_halts_goes_on_elsewhere() -> None:
    """Behind the record that cannot be processed, once its holder is asked to."""
    fleet = Fleet(shards=1, delivery={"retries": 0, "batch": {"max_records": 1}})
    payloads = fleet.put(10)

    async def fails(batch: object, _: object) -> None:
        if batch.records[0].data == payloads[3]:  # type: ignore[attr-defined]
            raise ValueError("poison")

    fleet.start("A", work=fails)
    await fleet.until(lambda: fleet.rows() and fleet.row(SHARD).native.halted is not None)
    poison = fleet.diary.of(SHARD)[-1].records[0].sequence_number
    await ask(fleet, SEEK, poison)
    await fleet.until(lambda: set(payloads[4:]) <= fleet.diary.done)
    await fleet.until(lambda: fleet.row(SHARD).checkpoint == fleet.diary.of(SHARD)[-1].records[0].sequence_number)
    assert fleet.row(SHARD).native.halted is None
    await fleet.stopped()
