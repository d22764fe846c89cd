"""A shard that is paused, or resumed after a halt, as its Lease sees it: docs/leases.md, "Pausing"."""

import asyncio
from dataclasses import replace

import pytest

from kcl_py.leases import by_hand, pausing
from kcl_py.leases.control import is_quiet
from kcl_py.leases.requests import RESUME
from kcl_py.leases.row import Halt, LeaseRow, Paused, Request
from kcl_py.records import SequenceNumber
from kcl_py.sources.source import ShardInfo
from kcl_py.tree.messages import Complete, Drain, Drained, GaveUp, Halted, Release, ShardEnded, Start, Why
from kcl_py.tree.steering import LookNow, Pause, Rested
from tests.kcl_py.tree.leases import FREE, HEARTBEAT_S, PlayedLease, a_lease
from tests.kcl_py.tree.stage import ME, OTHER, SHARD, until
from tests.kcl_py.tree.wire import Fault
from tests.simloop import simulated

PAUSE = Paused(70, "maintenance")
OF_ALL = Paused(70, is_of_stream=True)
CHILD = "shardId-000000000001"
SOON_S = 0.1


def paused(row: LeaseRow = FREE, pause: Paused = PAUSE) -> LeaseRow:
    return replace(row, native=replace(row.native, paused=pause))


async def pause(played: PlayedLease, asked: Paused = PAUSE) -> None:
    await played.stage.store.write(pausing.pause(played.row, asked))


@simulated
async def test_holder_heeds_a_pause_with_its_next_heartbeat_and_says_when_nothing_is_in_hand() -> None:
    """And goes on with the next one after it was taken out; all the while it holds the lease."""
    async with a_lease(FREE) as played:
        await played.held()
        await pause(played)
        assert (await played.pipeline.hears(Pause, within_s=HEARTBEAT_S + SOON_S)).at_ms == PAUSE.at_ms
        assert played.row.native.quiet_for is None
        played.ref.tell(Rested(PAUSE.at_ms))
        await until(lambda: played.row.native.quiet_for is not None, within_s=SOON_S)
        await asyncio.sleep(30)
        row = played.row
        assert (row.holder, row.native.paused, row.native.quiet_for) == (ME, PAUSE, PAUSE.at_ms)
        assert len(played.pipeline.of(Pause)) == 1
        await played.stage.store.write(pausing.unpause(row))
        assert (await played.pipeline.hears(Pause, times=2, within_s=HEARTBEAT_S + SOON_S)).at_ms is None
        await until(lambda: played.row.native.quiet_for is None, within_s=HEARTBEAT_S + SOON_S)
        assert not played.coordinator.of(GaveUp)


@simulated
async def test_what_was_said_of_one_pause_counts_for_no_other() -> None:
    """It was taken out and asked for anew between two heartbeats: the shard goes on to rest, and that is said again."""
    async with a_lease(FREE) as played:
        await played.held()
        await pause(played)
        await played.pipeline.hears(Pause)
        played.ref.tell(Rested(PAUSE.at_ms))
        await until(lambda: is_quiet(played.row))
        await played.stage.store.write(pausing.unpause(played.row))
        await pause(played, Paused(90))
        assert not is_quiet(played.row)
        assert (await played.pipeline.hears(Pause, times=2)).at_ms == 90
        played.ref.tell(Rested(PAUSE.at_ms))
        await asyncio.sleep(3 * HEARTBEAT_S)
        assert not is_quiet(played.row)
        played.ref.tell(Rested(90))
        await until(lambda: is_quiet(played.row), within_s=SOON_S)


@simulated
async def test_holder_that_is_told_to_look_heeds_it_at_once() -> None:
    """By a program in its own process."""
    async with a_lease(FREE) as played:
        await played.held()
        await asyncio.sleep(SOON_S)
        await pause(played)
        played.ref.tell(LookNow(frozenset({SHARD})))
        await played.pipeline.hears(Pause, within_s=SOON_S)


@pytest.mark.parametrize("fault", [Fault.LOST_REPLY, Fault.LOST_REQUEST, Fault.THROTTLED, Fault.BROKEN])
@simulated
async def test_pause_is_heeded_whatever_becomes_of_the_heartbeat_that_shows_it(fault: Fault) -> None:
    """It stands in the row, so the next reply shows it as well."""
    async with a_lease(FREE) as played:
        await played.held()
        played.stage.wire.fail("heartbeat", fault)
        await pause(played)
        await played.pipeline.hears(Pause, within_s=2 * HEARTBEAT_S)
        assert not played.coordinator.of(GaveUp)


@simulated
async def test_next_owner_begins_paused() -> None:
    """It knows by its take; what the owner before has said of the shard's rest is gone."""
    async with a_lease(replace(paused(), native=replace(paused().native, quiet_for=71))) as played:
        start = await played.held()
        assert start.paused_at_ms == PAUSE.at_ms
        assert played.row.native.quiet_for is None
        await asyncio.sleep(3 * HEARTBEAT_S)
        assert not played.pipeline.of(Pause)
        await played.stage.store.write(pausing.unpause(played.row))
        assert (await played.pipeline.hears(Pause, within_s=HEARTBEAT_S + SOON_S)).at_ms is None


@simulated
async def test_paused_shard_falls_behind_as_time_goes_by() -> None:
    """Nobody looks what is in the stream by now: from what was known, or from when it was paused, its lag grows."""
    async with a_lease(FREE) as played:
        await played.held()
        played.progress(8)
        await until(lambda: played.row.native.lag_ms == 0)
        await pause(played)
        await asyncio.sleep(20)
        lag_ms = played.row.native.lag_ms
        assert lag_ms is not None
        assert 17_000 < lag_ms < 21_000
    async with a_lease(paused(pause=Paused(int(played.stage.clock.time() * 1000) - 60_000))) as played:
        await played.held()
        await asyncio.sleep(5)
        lag_ms = played.row.native.lag_ms
        assert lag_ms is not None
        assert 61_000 < lag_ms < 66_000


@simulated
async def test_paused_shard_is_handed_over_and_released_with_its_pause() -> None:
    """Stops and handoffs go as ever."""
    async with a_lease(paused()) as played:
        await played.held()
        await played.ask_for_it()
        await played.drains(9)
        await played.coordinator.hears(GaveUp)
        assert (played.row.owner, played.row.native.paused) == (OTHER, PAUSE)
    async with a_lease(paused()) as played:
        await played.held()
        played.ref.tell(Release(played.now, played.now + 20))
        await played.drains(9)
        await played.coordinator.hears(GaveUp)
        assert (played.row.owner, played.row.checkpoint, played.row.native.paused) == (None, "9", PAUSE)


async def halted(played: PlayedLease) -> Start:
    """Take the lease, finish some records, and halt."""
    start = await played.held()
    played.progress(8)
    played.ref.tell(Halted(Halt("ValueError", "9")))
    await until(lambda: played.row.native.halted is not None)
    return start


@simulated
async def test_halted_shard_goes_on_in_a_new_ownership_where_it_was() -> None:
    """A fresh token, a greater epoch, and no word of the halt."""
    async with a_lease(replace(FREE, native=replace(FREE.native, start_ms=5))) as played:
        start = await halted(played)
        token = played.row.native.token
        await played.stage.store.write(by_hand.request(played.row, Request("r1", RESUME)))
        drain = await played.drains(8)
        assert drain.why is Why.REQUEST
        again = await played.pipeline.hears(Start, times=2, within_s=SOON_S)
        row = played.row
        assert (row.checkpoint, row.holder, row.native.request, row.native.halted) == ("8", ME, None, None)
        assert row.native.start_ms == 5
        assert row.native.token != token
        assert again.epoch == row.counter > start.epoch
        assert start.fence.tenure is None
        await asyncio.sleep(10)
        assert played.row.native.halted is None
        assert played.writes("resume") == played.writes("take") == 1


@pytest.mark.parametrize("fault", [Fault.LOST_REPLY, Fault.LOST_REQUEST, Fault.THROTTLED, Fault.BROKEN])
@simulated
async def test_resume_whose_reply_is_lost_takes_effect_once(fault: Fault) -> None:
    """A read tells by the token."""
    async with a_lease(FREE) as played:
        await halted(played)
        await played.stage.store.write(by_hand.request(played.row, Request("r1", RESUME)))
        await played.pipeline.hears(Drain)
        played.stage.wire.fail("resume", fault)
        played.ref.tell(Drained(SequenceNumber(8), SequenceNumber(8), 0))
        again = await played.pipeline.hears(Start, times=2)
        assert again.fence.tenure is not None
        assert (again.fence.tenure.token, again.epoch) == (played.row.native.token, again.row.counter)
        assert not played.coordinator.of(GaveUp)


@simulated
async def test_next_owner_answers_a_resume_that_its_forerunner_did_not_come_to() -> None:
    """It begins anew anyway; who has asked sees by the token that it was done."""
    asked = replace(FREE, checkpoint="8", native=replace(FREE.native, request=Request("r1", RESUME)))
    async with a_lease(asked) as played:
        start = await played.pipeline.hears(Start)
        assert (start.row.checkpoint, start.row.native.request) == ("8", None)
        assert played.writes("take") == played.writes("resume") == len(played.pipeline.of(Start)) == 1


@simulated
async def test_child_of_a_stream_that_is_paused_as_its_parent_ends_is_paused() -> None:
    """The holder has seen it, or finds out as it makes the row: the parent must be as it knows it."""
    for is_seen in (True, False):
        async with a_lease(FREE) as played:
            await played.held()
            if is_seen:
                await pause(played, OF_ALL)
                await played.pipeline.hears(Pause)
            else:
                await asyncio.sleep(SOON_S)
                await pause(played, OF_ALL)
            played.ref.tell(Complete(SequenceNumber(8), (ShardInfo(CHILD, (SHARD,)),)))
            await played.coordinator.hears(ShardEnded)
            assert played.stage.row(CHILD).native.paused == OF_ALL
            assert played.row.native.paused is None


@simulated
async def test_child_of_a_shard_that_is_paused_alone_begins() -> None:
    """As always when its parent has ended."""
    async with a_lease(FREE) as played:
        await played.held()
        await pause(played)
        played.ref.tell(Complete(SequenceNumber(8), (ShardInfo(CHILD, (SHARD,)),)))
        await played.coordinator.hears(ShardEnded)
        assert played.stage.row(CHILD).native.paused is None
