"""Each kind of write of a whole worker takes effect, and its reply is lost: the worker finds out, and goes on."""

import asyncio

import pytest

from kcl_py.leases import by_hand
from kcl_py.leases.row import Request
from kcl_py.leases.writer import PRIORITIES
from kcl_py.processor import Checkpointer
from kcl_py.records import RecordBatch
from tests.kcl_py.tree.fleet import FAILOVER_S, Fleet
from tests.kcl_py.tree.wire import Fault
from tests.simloop import simulated

CANCELS = {"cancel handoff by holder", "cancel handoff by receiver"}
ANSWERS = {"seek": ("seek", "TRIM_HORIZON"), "refuse": ("seek", "nowhere"), "resume": ("resume", None)}
"""What is asked of a holder, for it to make this write."""
OF_LEASES = sorted(PRIORITIES.keys() - CANCELS - ANSWERS.keys() - {"transact"})
"""All but that which ``test_once.py`` loses the replies of."""
OF_COORDINATORS = ["create", "put worker", "delete worker"]


async def checkpointing(batch: RecordBatch, checkpointer: Checkpointer) -> None:
    await asyncio.sleep(0.02)
    await (await checkpointer.prepare(batch)).commit()
    await checkpointer.checkpoint(batch)


@pytest.mark.parametrize("operation", [*OF_LEASES, "create child", *OF_COORDINATORS])
@simulated
async def test_fleet_delivers_everything_once_when_the_reply_to_a_write_is_lost(operation: str) -> None:
    """In the life of two workers that has each of them: a start, a join, a split and a stop."""
    fleet = Fleet(shards=2)
    wires = []
    for name in "AB":
        member = fleet.start(name, work=checkpointing)
        member.wire.fail(operation, Fault.LOST_REPLY)
        wires.append(member.wire)
        fleet.put(40)
        await fleet.delivered()
        await asyncio.sleep(2 * FAILOVER_S)
    assert [len(fleet.held_by(member)) for member in fleet.members.values()] == [1, 1]
    fleet.split(fleet.shards()[0])
    await asyncio.sleep(1)
    fleet.put(40)
    await fleet.delivered()
    await asyncio.sleep(2 * FAILOVER_S)
    await fleet.stopped()
    assert any(wire.of(operation) for wire in wires)
    assert all(member.outcome and member.outcome.is_clean for member in fleet.members.values())
    assert not [row for row in fleet.rows().values() if row.owner is not None]
    assert not fleet.store.worker_items
    fleet.check_once()


@pytest.mark.parametrize("operation", ANSWERS)
@simulated
async def test_request_is_answered_once_when_the_reply_to_the_answer_is_lost(operation: str) -> None:
    """A shard that is asked to begin anew does so once; one that is asked nonsense goes on as if it were not."""
    fleet = Fleet(shards=1)
    fleet.put(20)
    member = fleet.start("A", work=checkpointing)
    member.wire.fail(operation, Fault.LOST_REPLY)
    await fleet.delivered()
    [row] = fleet.rows().values()
    await fleet.store.write(by_hand.request(row, Request("r1", *ANSWERS[operation])))
    await fleet.until(lambda: fleet.row(row.key).native.request is None)
    fleet.put(20)
    await fleet.delivered()
    await asyncio.sleep(2 * FAILOVER_S)
    assert member.wire.of(operation)
    records = sum(len(handover.records) for handover in fleet.diary.handovers)
    assert records == (60 if operation == "seek" else 40)
    await fleet.stopped()
    assert member.outcome is not None
    assert member.outcome.is_clean


@pytest.mark.parametrize("operation", sorted(CANCELS))
@simulated
async def test_shard_goes_on_where_it_is_when_the_reply_to_a_cancel_is_lost(operation: str) -> None:
    """The receiver stops, or dies, while the holder has a batch in hand."""
    fleet, in_hand = Fleet(shards=2), asyncio.Event()

    async def work(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        await in_hand.wait()

    fleet.put(20)
    holder = fleet.start("A", work=work)
    await fleet.until(lambda: len(fleet.diary.handovers) == 2)
    receiver = fleet.start("B")
    for member in (holder, receiver):
        member.wire.fail(operation, Fault.LOST_REPLY)
    await fleet.until(lambda: any(row.in_handoff for row in fleet.rows().values()))
    if operation.endswith("receiver"):
        await receiver.stop()
    else:
        receiver.crash()
    await fleet.until(lambda: len(fleet.held_by(holder)) == 2 and not any(r.in_handoff for r in fleet.rows().values()))
    in_hand.set()
    fleet.put(20)
    await fleet.delivered()
    await fleet.stopped()
    assert holder.wire.of(operation) or receiver.wire.of(operation)
    fleet.check_once()


@simulated
async def test_row_that_came_to_name_a_worker_while_it_left_is_let_go_of_though_the_reply_is_lost() -> None:
    """The last look is taken again, and finds nothing more to do."""
    fleet = Fleet(shards=2)
    member = fleet.start("A", leases={"max_leases": 1})
    await fleet.until(lambda: len(fleet.held_by(member)) == 1)
    [late] = set(fleet.shards()) - fleet.held_by(member)
    await asyncio.sleep(2)
    member.wire.fail("let go", Fault.LOST_REPLY)
    member.wire.stale_scan = await fleet.store.scan()
    assert member.stream is not None
    member.stream.stop(20)
    fleet.name_as_owner(late, member)
    await member.ended()
    assert member.wire.of("let go")
    assert not [row for row in fleet.rows().values() if row.owner is not None]
    assert not fleet.store.worker_items
