"""How a Lease ends in order: completed with its children, released, and what a failing store makes of it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from structlog.testing import LogCapture

from actors import Ended
from kcl_py.leases.row import Halt, Native
from kcl_py.records import SequenceNumber
from kcl_py.sources.source import ShardInfo
from kcl_py.tree.asking import CheckpointOutcome
from kcl_py.tree.messages import (
    Abandon,
    Complete,
    Drain,
    Drained,
    GaveUp,
    Halted,
    MemberGone,
    Release,
    ShardEnded,
    Why,
)
from tests.kcl_py.tree.leases import FREE, HEARTBEAT_S, TENURE_S, PlayedLease, a_lease, outcome
from tests.kcl_py.tree.stage import OTHER, SHARD, ScriptedSource, until
from tests.kcl_py.tree.wire import Fault
from tests.simloop import simulated

CHILDREN = (
    ShardInfo("shardId-000000000001", (SHARD,), (0, 9)),
    ShardInfo("shardId-000000000002", (SHARD,), (10, 19)),
)
CHILD_IDS = tuple(child.shard_id for child in CHILDREN)
END = Complete(SequenceNumber(9), CHILDREN)


# --- completing ------------------------------------------------------------------------------------------------------


@simulated
async def test_lease_makes_the_children_before_it_marks_the_end_in_one_write(log: LogCapture) -> None:
    """S3-38: children at their beginning, then child ids, SHARD_END and no owner together."""
    async with a_lease(FREE) as played:
        await played.held()
        played.ref.tell(END)
        ended = await played.coordinator.hears(ShardEnded)
        assert [call.operation for call in played.stage.wire.calls[1:]] == ["create child", "create child", "complete"]
        row = played.row
        assert (row.checkpoint, row.owner, set(row.children)) == ("SHARD_END", None, set(CHILD_IDS))
        assert ended.children == CHILD_IDS
        for child in CHILDREN:
            made = played.stage.row(child.shard_id)
            assert (made.checkpoint, made.owner, made.parents) == ("TRIM_HORIZON", None, (SHARD,))
            assert made.hash_range == child.hash_range
        [completed] = [entry for entry in log.entries if entry["event"] == "kcl_py.lease.completed"]
        assert completed["children"] == list(CHILD_IDS)


@simulated
async def test_lease_lists_the_stream_when_the_source_named_no_children() -> None:
    """S3-42: not every service tells the children at a shard's end."""
    source = ScriptedSource()
    source.shards += CHILDREN
    async with a_lease(FREE, source=source) as played:
        await played.held()
        played.ref.tell(Complete(None, ()))
        assert (await played.coordinator.hears(ShardEnded)).children == CHILD_IDS


@simulated
async def test_lease_releases_at_the_end_of_the_grace_when_the_children_cannot_be_made() -> None:
    """A stop ends in time: the next owner finds the end again, after all that is finished."""
    async with a_lease(FREE) as played:
        await played.held()
        played.stage.wire.fail("create child", Fault.THROTTLED, times=10_000)
        played.ref.tell(END)
        await until(lambda: played.writes("create child") > 1)
        played.ref.tell(Release(played.now, played.now + 5))
        ends_at = played.now + 5
        await played.coordinator.hears(GaveUp)
        assert ends_at <= played.now < ends_at + HEARTBEAT_S
        assert (played.row.owner, played.row.checkpoint, played.row.children) == (None, "9", ())


@simulated
async def test_lease_leaves_children_alone_that_have_rows_already() -> None:
    """A child that another worker made, and perhaps reads, is not made anew."""
    async with a_lease(FREE) as played:
        await played.held()
        begun = replace(FREE, key=CHILD_IDS[0], checkpoint="77", owner=OTHER, counter=4)
        await played.stage.store.create(begun)
        played.ref.tell(END)
        await played.coordinator.hears(ShardEnded)
        assert played.stage.row(CHILD_IDS[0]).checkpoint == "77"


@simulated
async def test_lease_makes_no_child_and_no_end_when_the_shard_was_taken_meanwhile() -> None:
    """S3-39: only who holds the current token may complete."""
    async with a_lease(FREE) as played:
        await played.held()
        await played.change(owner=OTHER, counter=9, native=Native(token="stolen", owner=OTHER))
        played.ref.tell(END)
        await played.pipeline.hears(Abandon)
        assert sorted(played.stage.store.items) == [SHARD]
        assert not played.row.has_ended


@simulated
async def test_lease_goes_on_renewing_while_the_children_cannot_be_made() -> None:
    """S3-38: completion is tried again with pauses until it succeeds, and the shard is not lost over it."""
    async with a_lease(FREE) as played:
        await played.held()
        played.stage.wire.fail("create child", Fault.THROTTLED, times=30)
        played.ref.tell(END)
        await played.coordinator.hears(ShardEnded)
        assert played.now > 3 * TENURE_S
        assert played.writes("heartbeat") > 3


# --- releasing -------------------------------------------------------------------------------------------------------


def released(played: PlayedLease, *, wait_s: float = 0.0, grace_s: float = 20.0) -> None:
    played.ref.tell(Release(played.now + wait_s, played.now + grace_s))


@simulated
async def test_lease_releases_with_the_final_checkpoint_when_the_worker_stops(log: LogCapture) -> None:
    """B-21: a clean stop stores what is finished and leaves the row free, for others to take at once."""
    async with a_lease(FREE) as played:
        await played.held()
        released(played)
        assert (await played.drains(7)).why is Why.STOP
        await played.coordinator.hears(GaveUp, within_s=0.1)
        row = played.row
        assert (row.owner, row.checkpoint_owner, row.checkpoint) == (None, None, "7")
        assert row.native.delivered == "7"
        assert [entry for entry in log.entries if entry["event"] == "kcl_py.lease.released"]


@simulated
async def test_lease_does_not_say_what_was_delivered_when_the_release_is_not_clean() -> None:
    """With records unfinished the next owner must not be told that they were handed over in order."""
    async with a_lease(FREE) as played:
        await played.held()
        released(played)
        await played.drains(7, delivered=9, unfinished=2)
        assert (await played.coordinator.hears(GaveUp)).unfinished == 2
        assert (played.row.checkpoint, played.row.native.delivered) == ("7", None)


@simulated
async def test_lease_stores_no_final_checkpoint_of_its_own_in_manual_mode() -> None:
    """``checkpoint.mode: manual``: only what the processor asked for is stored, at the end too."""
    async with a_lease(FREE, checkpoint={"mode": "manual"}) as played:
        await played.held()
        assert await outcome(played.checkpoint(5)) is CheckpointOutcome.STORED
        released(played)
        await played.drains(7)
        await played.coordinator.hears(GaveUp)
        assert played.row.checkpoint == "5"


@simulated
async def test_lease_goes_on_for_a_while_for_others_to_pull_the_shard_when_the_worker_stops() -> None:
    """A leaver's shard moves by handoff, if somebody asks in time."""
    async with a_lease(FREE) as played:
        await played.held()
        released(played, wait_s=3.0)
        await asyncio.sleep(2.0)
        assert not played.pipeline.of(Drain)
        await played.ask_for_it()
        assert (await played.drains(7)).why is Why.HANDOFF
        await played.coordinator.hears(GaveUp)
        assert played.row.owner == OTHER


@simulated
async def test_lease_drains_by_itself_when_nobody_pulls_the_shard_of_a_stopping_worker() -> None:
    """What nobody wants is released after the wait."""
    async with a_lease(FREE) as played:
        await played.held()
        released(played, wait_s=3.0)
        await played.pipeline.hears(Drain)
        assert played.now == pytest.approx(3.0, abs=0.1)


@simulated
async def test_lease_never_gives_a_drain_longer_than_the_grace() -> None:
    """A handoff's limit is the nearer of its own and the worker's."""
    async with a_lease(FREE) as played:
        await played.held()
        released(played, wait_s=3.0, grace_s=5.0)
        await played.ask_for_it()
        drain = await played.pipeline.hears(Drain)
        assert drain.until_at == pytest.approx(5.0, abs=0.1)


@simulated
async def test_lease_shortens_a_running_drain_when_the_worker_stops() -> None:
    """A stop that comes during a handoff bounds it."""
    async with a_lease(FREE) as played:
        await played.held()
        await played.ask_for_it()
        await played.pipeline.hears(Drain)
        released(played, grace_s=5.0)
        drain = await played.pipeline.hears(Drain, times=2)
        assert drain.until_at == pytest.approx(played.now + 5.0, abs=0.1)


@simulated
async def test_lease_that_is_told_to_stop_while_it_takes_lets_go_at_once() -> None:
    """No row is left behind by a take that was on its way."""
    async with a_lease(FREE) as played:
        released(played)
        await played.drains()
        await played.coordinator.hears(GaveUp)
        assert (played.row.owner, played.row.checkpoint) == (None, FREE.checkpoint)


@simulated
async def test_lease_holds_its_place_and_says_why_when_its_shard_has_halted() -> None:
    """A halted shard is renewed, with error and position in the row, until it is let go of."""
    async with a_lease(FREE) as played:
        await played.held()
        played.progress(5)
        played.ref.tell(Halted(Halt("ValueError: no such user", "6")))
        await asyncio.sleep(30)
        assert played.row.native.halted == Halt("ValueError: no such user", "6")
        assert played.row.counter > 25
        released(played)
        await played.drains(5, delivered=8, unfinished=3)
        await played.coordinator.hears(GaveUp)
        assert played.row.native.halted is None


# --- a store that fails ----------------------------------------------------------------------------------------------


async def complete(played: PlayedLease) -> None:
    played.ref.tell(END)
    await played.coordinator.hears(ShardEnded)
    assert played.row.checkpoint == "SHARD_END"
    assert set(played.stage.store.items) == {SHARD, *CHILD_IDS}


async def release(played: PlayedLease) -> None:
    released(played)
    await played.drains(7)
    await played.coordinator.hears(GaveUp)
    assert (played.row.owner, played.row.checkpoint) == (None, "7")


async def transfer(played: PlayedLease) -> None:
    await played.ask_for_it()
    await played.drains(7)
    await played.coordinator.hears(GaveUp)
    assert (played.row.owner, played.row.checkpoint_owner, played.row.checkpoint) == (OTHER, None, "7")


async def checkpoint(played: PlayedLease) -> None:
    assert await outcome(played.checkpoint(7)) is CheckpointOutcome.STORED
    assert played.row.checkpoint == "7"


async def cancel(played: PlayedLease) -> None:
    await played.ask_for_it()
    await played.pipeline.hears(Drain)
    played.ref.tell(MemberGone(OTHER))
    await until(lambda: not played.row.in_handoff)


WRITES = {
    "complete": complete,
    "create child": complete,
    "release": release,
    "transfer": transfer,
    "checkpoint": checkpoint,
    "cancel handoff by holder": cancel,
}


@pytest.mark.parametrize("fault", [Fault.LOST_REPLY, Fault.LOST_REQUEST, Fault.LATE, Fault.BROKEN, Fault.THROTTLED])
@pytest.mark.parametrize("operation", WRITES)
@simulated
async def test_lease_reaches_its_end_when_one_write_fails(operation: str, fault: Fault) -> None:
    """Whatever becomes of any one write or its reply, the row ends as if nothing had happened, and nothing is lost."""
    flow: Callable[[PlayedLease], Awaitable[None]] = WRITES[operation]
    async with a_lease(FREE) as played:
        await played.held()
        played.stage.wire.fail(operation, fault)
        await flow(played)
        assert not played.pipeline.of(Abandon)
        await asyncio.sleep(5)
        assert not played.stage.events.of(Ended, "lease")


@pytest.mark.parametrize("fault", [Fault.THROTTLED, Fault.BROKEN])
@pytest.mark.parametrize("operation", ["heartbeat", *WRITES])
@simulated
async def test_lease_pauses_between_tries_when_a_write_keeps_failing(operation: str, fault: Fault) -> None:
    """A store that refuses is not asked again at once: a few tries within the tenure, whatever is to be written."""
    async with a_lease(FREE) as played:
        await played.held()
        played.stage.wire.fail(operation, fault, times=10_000)
        if operation == "heartbeat":
            await asyncio.sleep(1)
        elif operation in ("complete", "create child"):
            played.ref.tell(END)
        elif operation == "release":
            released(played)
            await played.drains(7)
        elif operation == "checkpoint":
            played.checkpoint(7)
        else:
            await played.ask_for_it()
            await played.pipeline.hears(Drain)
            played.ref.tell(MemberGone(OTHER) if "cancel" in operation else Drained(None, None, 0))
        await asyncio.sleep(TENURE_S)
        assert 1 <= played.writes(operation) <= 9
