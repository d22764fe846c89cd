"""Renewals wait for nothing: not for a processor that takes long, and not for acquisitions that hang."""

import asyncio
from itertools import pairwise

import pytest

from kcl_py.processor import Checkpointer
from kcl_py.records import RecordBatch
from tests.kcl_py.tree.fleet import FAILOVER_S, Fleet, Member, running
from tests.kcl_py.tree.wire import LATENCY_S, Fault
from tests.simloop import simulated

HEARTBEAT_S = FAILOVER_S / 3


def longest_silence_s(member: Member, shard_id: str) -> float:
    """Return the longest time between two renewals of a shard."""
    sent = [call.at for call in member.wire.of("heartbeat", key=shard_id)]
    return max(after - before for before, after in pairwise(sent))


@simulated
async def test_shard_whose_processor_takes_long_is_renewed_in_time() -> None:
    """For ten failover times in one batch: nobody takes it, and nothing comes twice."""

    async def slow(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        await asyncio.sleep(10 * FAILOVER_S)

    fleet = Fleet(shards=2)
    for name in "AB":
        fleet.start(name, work=slow, leases={"max_leases": 1})
    await fleet.until(lambda: all(len(fleet.held_by(member)) == 1 for member in fleet.members.values()))
    fleet.put(20)
    await fleet.delivered()
    for member in fleet.members.values():
        for shard_id in fleet.held_by(member):
            assert longest_silence_s(member, shard_id) <= HEARTBEAT_S + 0.01
    await fleet.stopped()
    fleet.check_once()


@pytest.mark.parametrize("operation", ["take", "start handoff"])
@simulated
async def test_acquisitions_that_hang_keep_no_shard_from_being_renewed(operation: str) -> None:
    """More of them than there are slots for lease writes, for ten failover times."""
    fleet = Fleet(shards=64)
    await running(fleet, shards=64)
    worker = fleet.start("B")
    if operation == "take":
        await fleet.until(lambda: len(fleet.held_by(worker)) == 32)
        await asyncio.sleep(HEARTBEAT_S)  # until the last one handed over has been taken
        fleet.members["A"].crash()
        worker.wire.fail(operation, Fault.LOST_REQUEST, times=10**9)
    else:
        await fleet.until(lambda: len(fleet.held_by(worker)) >= 1)
        worker.wire.fail(operation, Fault.LOST_REQUEST, times=10**9)
    held = fleet.held_by(worker)
    before = len(worker.wire.of(operation))
    await asyncio.sleep(10 * FAILOVER_S)
    assert len(worker.wire.of(operation)) > before + 16
    assert fleet.held_by(worker) >= held
    assert all(longest_silence_s(worker, key) <= HEARTBEAT_S + 10 * LATENCY_S[1] for key in held)
