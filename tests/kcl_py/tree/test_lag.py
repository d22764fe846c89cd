"""What the lease row tells of how far its shard is behind: for whoever looks at the table at night."""

import asyncio

import pytest

from kcl_py.delivery.lag import Lag
from kcl_py.processor import Checkpointer
from kcl_py.records import RecordBatch
from kcl_py.status import report
from kcl_py.tree.messages import Progress
from tests.kcl_py.tree.diary import Work
from tests.kcl_py.tree.fleet import Fleet
from tests.kcl_py.tree.leases import FREE, a_lease
from tests.kcl_py.tree.wire import Fault
from tests.simloop import simulated


async def hangs(batch: RecordBatch, checkpointer: Checkpointer) -> None:
    await asyncio.Event().wait()


async def fails(batch: RecordBatch, checkpointer: Checkpointer) -> None:
    raise ValueError("no such user")


def shown(fleet: Fleet) -> dict[str, object]:
    """Return the one shard as ``kcl status`` shows it."""
    rows = list(fleet.rows().values())
    [shard] = report(fleet.configured("looker"), rows, [], fleet.clock.time())["shards"]
    return dict(shard)


@simulated
async def test_lease_says_how_far_the_shard_is_behind_and_when_that_was_so() -> None:
    """The row tells the lag, and its age does not grow younger by a heartbeat."""
    async with a_lease(FREE) as played:
        await played.held()
        told_ms = played.stage.clock.time() * 1000
        played.ref.tell(Progress(None, None, Lag(250, played.now), 0))
        await asyncio.sleep(60)
        assert played.row.native.lag_ms == 250
        assert played.row.native.lag_at_ms == pytest.approx(told_ms, abs=1)


@simulated
async def test_lag_in_the_row_grows_while_records_are_unfinished() -> None:
    """A processor that hangs is seen in the table: each heartbeat tells how old its records are by then."""
    async with a_lease(FREE) as played:
        await played.held()
        played.ref.tell(Progress(None, None, Lag(250, played.now, is_growing=True), 0))
        await asyncio.sleep(60)
        now_ms = played.stage.clock.time() * 1000
        assert played.row.native.lag_ms == pytest.approx(60_250, abs=1100)
        assert played.row.native.lag_at_ms == pytest.approx(now_ms, abs=1100)


@pytest.mark.parametrize(
    ("work", "options"),
    [(hangs, {}), (fails, {"retries": 10_000}), (fails, {"retries": 0})],
    ids=["hanging", "retrying", "halted"],
)
@simulated
async def test_status_shows_a_shard_that_stands_still_as_more_behind_every_second(
    work: Work, options: dict[str, int]
) -> None:
    """The batch that is not finished counts, although nothing newer waits behind it."""
    fleet = Fleet(shards=1, delivery=options)
    fleet.start("A", work=work)
    await asyncio.sleep(10)
    fleet.put(5)
    await asyncio.sleep(60)
    shard = shown(fleet)
    assert shard["lag_ms"] == pytest.approx(60_000, abs=3000)
    assert shard["lag_age_s"] == pytest.approx(0, abs=1.5)
    await fleet.stopped()


@simulated
async def test_lag_does_not_begin_anew_with_each_owner() -> None:
    """The records are as old as they are, also for a worker that has just begun: restarting silences no alarm."""
    fleet = Fleet(shards=1, delivery={"retries": 0})
    put_at = fleet.clock.time()
    fleet.put(5)
    await asyncio.sleep(300)
    for name, work in (("A", fails), ("B", hangs)):
        member = fleet.start(name, work=work)
        await asyncio.sleep(30)
        assert shown(fleet)["lag_ms"] == pytest.approx((fleet.clock.time() - put_at) * 1000, abs=3000)
        await member.stop()


@simulated
async def test_status_shows_a_shard_that_is_read_to_its_tip_as_not_behind() -> None:
    """All is finished, and the last reply said that there is no more; that is as old as the reply."""
    fleet = Fleet(shards=1)
    fleet.start("A")
    fleet.put(5)
    await asyncio.sleep(60)
    shard = shown(fleet)
    assert shard["lag_ms"] == 0
    assert shard["lag_age_s"] == pytest.approx(0.5, abs=2)
    await fleet.stopped()


@simulated
async def test_status_shows_how_old_a_lag_is_when_the_stream_does_not_answer() -> None:
    """Heartbeats go on, so only the age tells that the figure is not of now."""
    fleet = Fleet(shards=1)
    worker = fleet.start("A")
    fleet.put(5)
    await asyncio.sleep(10)
    worker.wire.fail("fetch", Fault.THROTTLED, times=10**9)
    await asyncio.sleep(60)
    assert shown(fleet)["lag_age_s"] == pytest.approx(60, abs=3)
    await fleet.stopped()
