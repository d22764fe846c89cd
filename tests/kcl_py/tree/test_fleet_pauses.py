"""Pauses, and halted shards that go on, over whole workers on virtual time; asked for by code as by ``kcl``."""

import asyncio

import pytest

from kcl_py import KclError
from kcl_py.errors import ConfigError
from kcl_py.leases import pausing
from kcl_py.leases.control import is_quiet
from kcl_py.leases.items import item_from_row
from kcl_py.leases.row import LeaseRow, Paused
from kcl_py.tree.stream import Stream
from tests.kcl_py.tree.fleet import FAILOVER_S, Fleet, Member, running
from tests.simloop import simulated

SHARD, OTHER_SHARD = "shardId-000000000000", "shardId-000000000001"
LONG_S = 4 * FAILOVER_S
SOON_S = 0.1


def stream_of(member: Member) -> Stream:
    assert member.stream is not None
    return member.stream


def batches(fleet: Fleet, shard: str = SHARD) -> int:
    return len(fleet.diary.of(shard))


async def rested(fleet: Fleet, *shards: str) -> None:
    await fleet.until(lambda: all(is_quiet(fleet.row(shard)) for shard in shards))


async def nothing_comes(fleet: Fleet, *shards: str, for_s: float = LONG_S) -> None:
    """Put records, and see that none of these shards is handed any."""
    before = [batches(fleet, shard) for shard in shards]
    fleet.put(20 * len(fleet.shards()))
    await asyncio.sleep(for_s)
    assert [batches(fleet, shard) for shard in shards] == before


@simulated
async def test_own_shard_is_paused_at_once_and_goes_on_at_once() -> None:
    """The other one goes on meanwhile; in the end nothing is missing and nothing came twice."""
    fleet = Fleet(shards=2)
    await running(fleet)
    stream = stream_of(fleet.members["A"])
    await stream.pause(SHARD, why="the database is being moved")
    await asyncio.sleep(SOON_S)
    assert is_quiet(fleet.row(SHARD))
    before = batches(fleet, OTHER_SHARD)
    await nothing_comes(fleet, SHARD)
    assert batches(fleet, OTHER_SHARD) > before
    assert fleet.row(SHARD).holder == fleet.members["A"].owner
    assert fleet.row(SHARD).native.paused is not None
    await stream.resume(SHARD)
    before = batches(fleet)
    await fleet.until(lambda: batches(fleet) > before, within_s=2.0)
    await fleet.delivered()
    await fleet.stopped()
    fleet.check_once()


@simulated
async def test_stream_that_is_paused_by_one_worker_is_paused_on_all() -> None:
    """And goes on everywhere, whoever says so."""
    fleet = Fleet(shards=4)
    await running(fleet, workers=2, shards=4)
    await fleet.until(lambda: all(len(fleet.held_by(member)) == 2 for member in fleet.members.values()))
    await stream_of(fleet.members["A"]).pause()
    await rested(fleet, *fleet.rows())
    await nothing_comes(fleet, *fleet.rows())
    await stream_of(fleet.members["B"]).resume()
    await fleet.delivered()
    await fleet.stopped()
    fleet.check_once()


@simulated
async def test_shard_of_a_paused_worker_that_crashes_stays_paused_with_the_next_one() -> None:
    """Nothing is lost of what the dead had not stored: it comes once the shard goes on."""
    fleet = Fleet(shards=2)
    await running(fleet)
    await stream_of(fleet.members["A"]).pause(SHARD)
    await rested(fleet, SHARD)
    fleet.members["A"].crash()
    member = fleet.start("B")
    await fleet.until(lambda: SHARD in fleet.held_by(member))
    await rested(fleet, SHARD)
    await nothing_comes(fleet, SHARD)
    lag_ms = fleet.row(SHARD).native.lag_ms
    assert lag_ms is not None
    assert lag_ms > LONG_S * 1000
    await stream_of(member).resume()
    await fleet.delivered()
    await fleet.stopped()
    fleet.check()


@simulated
async def test_paused_shard_moves_for_balance_and_with_a_stop_and_stays_paused() -> None:
    """It counts as load like any other."""
    fleet = Fleet(shards=2)
    await running(fleet)
    await stream_of(fleet.members["A"]).pause()
    await rested(fleet, SHARD, OTHER_SHARD)
    member = fleet.start("B")
    await fleet.until(lambda: len(fleet.held_by(member)) == 1)
    await nothing_comes(fleet, SHARD, OTHER_SHARD)
    await fleet.members["A"].stop()
    await fleet.until(lambda: len(fleet.held_by(member)) == 2)
    await nothing_comes(fleet, SHARD, OTHER_SHARD)
    await stream_of(member).resume()
    await fleet.delivered()
    await fleet.stopped()
    fleet.check_once()


@simulated
async def test_paused_stream_is_paused_after_a_restart_of_all_workers() -> None:
    """Also where nobody holds a shard when it is paused."""
    fleet = Fleet(shards=2)
    await running(fleet)
    await fleet.members["A"].stop()
    for row in fleet.rows().values():
        await fleet.store.write(pausing.pause(row, Paused(1, is_of_stream=True)))
    member = fleet.start("B")
    await rested(fleet, SHARD, OTHER_SHARD)
    await fleet.until(lambda: len(fleet.held_by(member)) == 2)
    await nothing_comes(fleet, SHARD, OTHER_SHARD)
    await stream_of(member).resume()
    await fleet.delivered()
    await fleet.stopped()
    fleet.check_once()


@simulated
async def test_split_of_a_paused_stream_waits_and_its_children_are_read_after_it() -> None:
    """The end of the parent is not handed over, so there is nothing to do for them."""
    fleet = Fleet(shards=1)
    await running(fleet, shards=1)
    await stream_of(fleet.members["A"]).pause()
    await rested(fleet, SHARD)
    fleet.put(20)
    fleet.split(SHARD)
    await asyncio.sleep(LONG_S)
    fleet.put(20)
    await asyncio.sleep(LONG_S)
    assert list(fleet.rows()) == [SHARD]
    assert not fleet.diary.called("shard_ended")
    await stream_of(fleet.members["A"]).resume()
    await fleet.delivered()
    await fleet.stopped()
    fleet.check_once()


@simulated
async def test_children_that_come_while_the_stream_is_being_paused_are_paused() -> None:
    """Their parent's end was in the processor's hands as that began."""
    fleet = Fleet(shards=1)
    await running(fleet, shards=1)
    stream = stream_of(fleet.members["A"])
    member = fleet.members["A"]
    fleet.split(SHARD)
    await fleet.until(lambda: fleet.diary.called("shard_ended"), each_s=0.001)
    await stream.pause()
    await fleet.until(lambda: fleet.row(SHARD).has_ended)
    children = [key for key in fleet.rows() if key != SHARD]
    assert len(children) == 2
    await rested(fleet, *children)
    fleet.put(20)
    await asyncio.sleep(LONG_S)
    assert not any(batches(fleet, child) for child in children)
    await stream_of(member).resume()
    await fleet.delivered()
    await fleet.stopped()
    fleet.check_once()


@simulated
async def test_row_that_is_made_anew_in_a_paused_stream_is_paused() -> None:
    """Its shard would be read again from the beginning, else."""
    fleet = Fleet(shards=2)
    await running(fleet)
    stream = stream_of(fleet.members["A"])
    await stream.pause()
    await rested(fleet, SHARD, OTHER_SHARD)
    before = batches(fleet)
    del fleet.store.items[SHARD]
    await fleet.until(lambda: SHARD in fleet.rows())
    await rested(fleet, SHARD)
    await asyncio.sleep(LONG_S)
    assert batches(fleet) == before
    await stream.resume()
    await fleet.until(lambda: batches(fleet) > before)
    await fleet.stopped()


@simulated
async def test_shard_that_has_halted_goes_on_at_once_when_it_is_resumed() -> None:
    """With a new processor, at the record that has failed."""
    fleet = Fleet(shards=1, delivery={"retries": 0, "batch": {"max_records": 1}})
    payloads = fleet.put(10)
    is_mended = False

    async def fails(batch: object, _: object) -> None:
        if not is_mended and batch.records[0].data == payloads[3]:  # type: ignore[attr-defined]
            raise ValueError("no price for article 7")

    fleet.start("A", work=fails)
    await fleet.until(lambda: fleet.rows() and fleet.row(SHARD).native.halted is not None)
    await asyncio.sleep(LONG_S)
    is_mended = True
    await stream_of(fleet.members["A"]).resume(SHARD)
    await fleet.until(lambda: set(payloads) <= fleet.diary.done, within_s=2.0)
    await fleet.until(lambda: fleet.row(SHARD).native.halted is None)
    assert len(fleet.diary.called("initialize")) == 2
    await fleet.stopped()
    fleet.check()


@simulated
async def test_shard_is_moved_by_code_and_stays_paused_where_it_is_moved_to() -> None:
    """A place is asked of the holder, a row that nobody holds is moved at once; a pause has nothing to do with it."""
    fleet = Fleet(shards=2)
    await running(fleet)
    stream = stream_of(fleet.members["A"])
    await stream.pause(SHARD)
    await rested(fleet, SHARD)
    await stream.seek("trim_horizon", SHARD)
    await fleet.until(lambda: fleet.row(SHARD).checkpoint == "TRIM_HORIZON", within_s=SOON_S)
    await nothing_comes(fleet, SHARD)
    before = batches(fleet)
    await stream.resume()
    await fleet.until(lambda: fleet.diary.of(SHARD)[before:], within_s=2.0)
    assert fleet.diary.of(SHARD)[before].data[0] == fleet.truth(SHARD)[0]
    await fleet.delivered()
    so_far = {shard: batches(fleet, shard) for shard in fleet.rows()}
    await stream.seek("TRIM_HORIZON")
    await fleet.until(lambda: all(batches(fleet, shard) > so_far[shard] for shard in so_far))
    await fleet.stopped()


@simulated
async def test_what_cannot_be_asked_for_says_why() -> None:
    """One sentence, and nothing is changed."""
    fleet = Fleet(shards=1)
    await running(fleet, shards=1)
    stream = stream_of(fleet.members["A"])
    before = fleet.row(SHARD)
    with pytest.raises(KclError, match="'nowhere': expected a shard with a row in 'test-app', found 1 other"):
        await stream.pause("nowhere")
    with pytest.raises(ConfigError, match="expected 1 to 80 characters, found 81"):
        await stream.pause(why="x" * 81)
    with pytest.raises(ConfigError, match="cannot move all shards to 5: expected the shard that it is of"):
        await stream.seek("5")
    with pytest.raises(ConfigError, match="expected trim_horizon, latest, an ISO-8601 time"):
        await stream.seek("yesterday")
    fleet.store.items["java"] = item_from_row(LeaseRow("java", counter=3, owner="java-1", has_native=False))
    with pytest.raises(KclError, match="cannot pause 'java': expected a kcl_py worker or nobody to hold it"):
        await stream.pause()
    del fleet.store.items["java"]
    assert fleet.row(SHARD).native.request is None
    assert fleet.row(SHARD).native.token == before.native.token
    await fleet.stopped()
    with pytest.raises(KclError, match="cannot pause a stream: expected an open Stream, found a closed one"):
        await stream.pause()
