"""How a Lease takes its row and keeps it: possession, renewals, deadlines, and a store that fails."""

import asyncio
from dataclasses import replace
from itertools import pairwise

import pytest
from structlog.testing import LogCapture

from actors import Ended
from kcl_py.errors import MissingError
from kcl_py.leases.row import Native
from kcl_py.leases.view import How
from kcl_py.records import SequenceNumber
from kcl_py.tree.asking import CheckpointOutcome
from kcl_py.tree.messages import (
    Abandon,
    Acquired,
    Confirm,
    Confirmed,
    Drained,
    GaveUp,
    Hint,
    Initialized,
    PipelineStarted,
    Start,
)
from tests.kcl_py.tree.leases import FREE, HEARTBEAT_S, TENURE_S, THEIRS, a_lease, outcome
from tests.kcl_py.tree.stage import INFO, ME, OTHER, SHARD, until
from tests.kcl_py.tree.wire import DEADLINE_S, Fault
from tests.simloop import simulated

UNCERTAIN = [Fault.LOST_REPLY, Fault.LOST_REQUEST, Fault.BROKEN]
"""The caller does not learn whether the write took effect."""


@simulated
async def test_lease_starts_its_pipeline_only_after_its_own_take_was_acknowledged(log: LogCapture) -> None:
    """S3-25, S3-05: seeing one's name is not possession; the take writes owner, counter and a fresh token."""
    async with a_lease(replace(FREE, checkpoint="7")) as played:
        start = await played.held()
        assert (played.row.owner, played.row.counter, played.row.checkpoint) == (ME, 1, "7")
        assert start.row == played.row
        assert start.epoch == 1
        assert [type(message) for message in played.coordinator.heard] == [Acquired]
        [taken] = [entry for entry in log.entries if entry["event"] == "kcl_py.lease.taken"]
        assert (taken["why"], taken["previous"]) == ("free", None)


@simulated
async def test_lease_gives_up_when_another_worker_was_faster() -> None:
    """S3-23: of two takes one wins, and the loser starts nothing."""
    async with a_lease(FREE) as played:
        await played.change(counter=1, owner=OTHER)
        gave_up = await played.coordinator.hears(GaveUp)
        assert gave_up.row is not None
        assert gave_up.row.owner == OTHER
        assert not played.pipeline.heard


@pytest.mark.parametrize("fault", UNCERTAIN)
@simulated
async def test_lease_finds_out_by_reading_when_its_take_has_no_answer(fault: Fault) -> None:
    """A take counts if the row has its token, from the time of its sending, and only then."""
    async with a_lease(FREE) as played:
        played.stage.wire.fail("take", fault)
        if fault is Fault.LOST_REPLY:
            start = await played.held()
            assert start.fence.tenure is not None
            assert start.fence.tenure.deadline_at == pytest.approx(TENURE_S, abs=0.01)
        else:
            await played.coordinator.hears(GaveUp)
            assert played.row == FREE


@simulated
async def test_lease_takes_a_row_of_its_own_incarnation_with_a_new_token() -> None:
    """B-09: a Shard that died under its worker is taken again at once by the same owner."""
    async with a_lease(replace(THEIRS, owner=ME), how=How.OWN) as played:
        await played.held()
        assert played.now < 0.1
        assert played.row.native.token != "theirs"
        assert played.row.counter == 6


@simulated
async def test_lease_adopts_a_row_that_names_no_stream() -> None:
    """A row left by a Java worker becomes this stream's, and keeps all else."""
    async with a_lease(replace(FREE, native=Native(), has_native=False, checkpoint="7")) as played:
        await played.held()
        assert played.row.native.stream == INFO.identity
        assert played.row.checkpoint == "7"


@simulated
async def test_lease_renews_each_heartbeat_with_jitter_and_stores_progress_with_it() -> None:
    """S3-07, S3-22: one write each H carries the counter and the newest finished prefix."""
    async with a_lease(FREE) as played:
        await played.held()
        for prefix in range(1, 100):
            played.progress(prefix)
            await asyncio.sleep(0.1)
        sent = [call.at for call in played.stage.wire.of("heartbeat")]
        periods = [after - before for before, after in pairwise(sent)]
        assert all(0.89 * HEARTBEAT_S <= period <= HEARTBEAT_S for period in periods)
        assert len({round(period, 4) for period in periods}) > 1
        assert played.row.counter == len(sent) + 1
        assert 85 <= int(played.row.checkpoint) < 100


@simulated
async def test_lease_announces_a_processor_that_has_initialised() -> None:
    """The Coordinator takes more only once a processor is known to start here."""
    async with a_lease(FREE) as played:
        await played.held()
        played.ref.tell(PipelineStarted())
        assert await played.coordinator.hears(Initialized) == Initialized(SHARD)


@pytest.mark.parametrize("fault", [*UNCERTAIN, Fault.LATE, Fault.THROTTLED])
@pytest.mark.parametrize("number", range(1, 6))
@simulated
async def test_lease_survives_any_single_failure_of_a_renewal(fault: Fault, number: int) -> None:
    """Whichever renewal fails, and however, the shard stays held, with the same token, and goes on."""
    async with a_lease(FREE) as played:
        await played.held()
        token = played.row.native.token
        await until(lambda: played.writes("heartbeat") >= number - 1)
        played.stage.wire.fail("heartbeat", fault)
        await asyncio.sleep(10)
        played.progress(9)
        await asyncio.sleep(2)
        assert played.row.native.token == token
        assert played.row.checkpoint == "9"
        assert not played.pipeline.of(Abandon)
        assert not played.coordinator.of(GaveUp)


@simulated
async def test_lease_goes_on_when_an_older_renewal_of_its_own_arrives_late() -> None:
    """A heartbeat that was given up may still take effect: the counter it leaves is adopted, not taken for a theft."""
    async with a_lease(FREE) as played:
        await played.held()
        played.stage.wire.fail("heartbeat", Fault.LATE, times=3)
        await asyncio.sleep(20)
        assert played.row.owner == ME
        assert not played.pipeline.of(Abandon)


@simulated
async def test_lease_stops_at_its_own_deadline_when_no_renewal_gets_through(log: LogCapture) -> None:
    """B-10: with the store out of reach the holder stops by itself before others may take the row."""
    async with a_lease(FREE) as played:
        start = await played.held()
        played.stage.wire.is_cut = True
        await played.pipeline.hears(Abandon)
        assert played.now == pytest.approx(TENURE_S, abs=0.05)
        assert start.fence.tenure is None
        [lost] = [entry for entry in log.entries if entry["event"] == "kcl_py.lease.lost"]
        assert "deadline" in lost["why"]


@simulated
async def test_lease_lets_the_processor_say_farewell_when_its_deadline_passes_with_a_write_on_its_way() -> None:
    """The outcome of a write that hung does not cut short what the Pipeline still does."""
    async with a_lease(FREE) as played:
        await played.held()
        played.stage.wire.is_cut = True
        await played.pipeline.hears(Abandon)
        await asyncio.sleep(3 * DEADLINE_S)
        assert not played.coordinator.of(GaveUp)
        played.ref.tell(Drained(None, SequenceNumber(3), 3))
        assert (await played.coordinator.hears(GaveUp)).unfinished == 3


@simulated
async def test_lease_counts_its_tenure_from_the_first_write_that_may_have_renewed_it() -> None:
    """Success known only by a read counts from the first write with that counter: it may be that one's."""
    async with a_lease(FREE) as played:
        start = await played.held()
        played.stage.wire.fail("heartbeat", Fault.LOST_REPLY)
        await until(lambda: played.writes("heartbeat") == 1)
        sent_at = played.stage.wire.of("heartbeat")[0].at
        await asyncio.sleep(DEADLINE_S + 0.05)
        assert start.fence.tenure is not None
        assert start.fence.tenure.deadline_at == pytest.approx(sent_at + TENURE_S, abs=0.001)


@simulated
async def test_lease_abandons_its_pipeline_when_another_worker_has_taken_the_row() -> None:
    """S3-26: the next renewal shows the new owner; nothing is written over it."""
    async with a_lease(FREE) as played:
        await played.held()
        await played.change(owner=OTHER, counter=9, native=Native(token="stolen", owner=OTHER))
        await played.pipeline.hears(Abandon, within_s=HEARTBEAT_S + 0.1)
        taken = played.row
        played.ref.tell(Drained(SequenceNumber(3), SequenceNumber(3), 0))
        await played.coordinator.hears(GaveUp)
        await asyncio.sleep(10)
        assert played.row == taken


@simulated
async def test_lease_looks_at_once_when_a_scan_shows_more_than_it_knows() -> None:
    """A scanned row is a hint, answered with a heartbeat, never with a belief."""
    async with a_lease(FREE) as played:
        await played.held()
        stale = played.row
        await played.change(owner=OTHER, counter=9, native=Native(token="stolen", owner=OTHER))
        played.ref.tell(Hint(replace(stale, counter=0)))
        await asyncio.sleep(0.1)
        assert played.writes("heartbeat") == 0, "an older row is no news"
        played.ref.tell(Hint(played.row))
        await played.pipeline.hears(Abandon, within_s=0.1)


@simulated
async def test_lease_ends_as_lost_when_its_row_was_deleted(log: LogCapture) -> None:
    """An operator's deletion ends the ownership at the next write, and never as a crash."""
    async with a_lease(FREE) as played:
        await played.held()
        del played.stage.store.items[SHARD]
        await played.pipeline.hears(Abandon, within_s=HEARTBEAT_S + 0.1)
        played.ref.tell(Drained(None, None, 0))
        await played.coordinator.hears(GaveUp)
        assert SHARD not in played.stage.store.items
        assert played.ref.is_alive


@simulated
async def test_lease_is_never_lost_to_its_own_renewals_and_checkpoints() -> None:
    """Renewals and explicit checkpoints in any interleaving never look like a theft; the last one stands."""
    async with a_lease(FREE, checkpoint={"mode": "manual"}) as played:
        await played.held()
        for position in range(1, 501):
            answer = played.checkpoint(position)
            await asyncio.sleep(played.stage.worker.ids.jitter(0.0, 0.02))
            if position % 7 == 0:
                assert await outcome(answer) is CheckpointOutcome.STORED
        await asyncio.sleep(2)
        assert played.row.checkpoint == "500"
        assert not played.pipeline.of(Abandon)


@simulated
async def test_lease_stores_nothing_for_an_earlier_ownership() -> None:
    """A checkpoint carries the token of the ownership that it belongs to."""
    async with a_lease(FREE) as played:
        await played.held()
        assert await outcome(played.checkpoint(5, token="earlier")) is CheckpointOutcome.LOST
        await asyncio.sleep(2)
        assert played.row.checkpoint == FREE.checkpoint


@simulated
async def test_lease_confirms_possession_at_once_when_its_pipeline_asks() -> None:
    """After a gap of the loop a heartbeat that was sent since then answers the Pipeline."""
    async with a_lease(FREE) as played:
        await played.held()
        await asyncio.sleep(0.2)
        played.ref.tell(Confirm())
        await played.pipeline.hears(Confirmed, within_s=0.1)
        assert played.writes("heartbeat") == 1


@simulated
async def test_lease_fails_when_the_lease_table_is_gone() -> None:
    """A missing table is not waited for and not made anew; it ends what depends on it."""
    async with a_lease(FREE) as played:
        await played.held()
        played.stage.wire.fail("heartbeat", Fault.MISSING)
        ended = await played.stage.events.wait_for(Ended, "lease")
        assert isinstance(ended.error, MissingError)


@simulated
async def test_lease_releases_a_shard_that_cannot_be_run_here_and_says_why() -> None:
    """A shard that failed too often goes back free with its fault in the row; its Pipeline is not started."""
    async with a_lease(replace(THEIRS, owner=ME), how=How.OWN, fault="ValueError: no such user") as played:
        await played.coordinator.hears(GaveUp)
        assert played.row.owner is None
        assert played.row.native.fault == "ValueError: no such user"
        assert not played.pipeline.of(Start)
