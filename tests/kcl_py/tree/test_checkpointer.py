"""What ``checkpoint()`` stores and raises: a whole Shard over a scripted source, with the user's code calling it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
from structlog.testing import LogCapture

from kcl_py import CheckpointFailedError, KclError, LeaseLostError, PositionError
from kcl_py.leases import rules
from kcl_py.leases.items import item_from_row
from kcl_py.leases.row import Halt, LeaseRow, Native
from kcl_py.leases.view import How
from kcl_py.processor import Checkpointer
from kcl_py.records import RecordBatch
from kcl_py.tree.messages import Acquired, GaveUp, OpenShard, Release
from kcl_py.tree.shard import Shard
from tests.kcl_py.tree.diary import Work
from tests.kcl_py.tree.leases import FREE, TENURE_S, a_lease
from tests.kcl_py.tree.stage import OTHER, SHARD, Neighbour, ScriptedSource, Stage, a_stage, some_records, until
from tests.kcl_py.tree.wire import Fault
from tests.simloop import simulated


@dataclass
class PlayedShard:
    """A Shard under test."""

    stage: Stage
    shard: Shard
    coordinator: Neighbour

    @property
    def row(self) -> LeaseRow:
        return self.stage.row()

    def writes(self) -> int:
        """Count the explicit checkpoints that were sent."""
        return len(self.stage.wire.of("checkpoint"))

    def steal(self) -> None:
        """Have another worker take the row."""
        stolen = replace(self.row, owner=OTHER, counter=99, native=Native(token="stolen", owner=OTHER))
        self.stage.store.items[SHARD] = item_from_row(stolen)


@asynccontextmanager
async def a_shard(*replies: Any, work: Work, **options: Any) -> AsyncIterator[PlayedShard]:
    """Run a Shard that takes a free row and delivers ``replies`` to ``work``."""
    source = ScriptedSource(*replies)
    source.latency_s = 0.05  # the test goes first
    options = {"checkpoint": {"mode": "manual"}, **options}
    async with a_stage(source=source, rows=[FREE], work=work, **options) as stage:
        coordinator = await stage.neighbour("coordinator")
        shard = Shard(stage.worker, OpenShard(FREE, How.FREE, coordinator.ref))
        await stage.play(SHARD, lambda: shard)
        await coordinator.hears(Acquired)
        yield PlayedShard(stage, shard, coordinator)


class Calls:
    """Work that calls the checkpointer as told, and notes what came of it."""

    def __init__(self, *calls: Callable[[RecordBatch, Checkpointer], Awaitable[None]]) -> None:
        self._calls = iter(calls)
        self.outcomes: list[KclError | None] = []
        self.checkpointer: Checkpointer | None = None
        self.batches: list[RecordBatch] = []

    async def __call__(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        self.checkpointer = checkpointer
        self.batches.append(batch)
        call = next(self._calls, None)
        if call is not None:
            try:
                await call(batch, checkpointer)
            except KclError as error:
                self.outcomes.append(error)
            else:
                self.outcomes.append(None)

    async def come(self, times: int) -> None:
        await until(lambda: len(self.outcomes) >= times, what=f"{times} outcomes")


@simulated
async def test_checkpoint_without_a_position_leaves_out_the_batch_in_hand() -> None:
    """``checkpoint()`` inside ``process_records`` stores what has returned before: in the first batch, nothing."""

    async def all_finished(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        await checkpointer.checkpoint()

    calls = Calls(all_finished, all_finished)
    async with a_shard(some_records(2), some_records(2, first=3), work=calls) as played:
        await calls.come(2)
        assert (calls.outcomes, played.row.checkpoint, played.writes()) == ([None, None], "2", 1)


@simulated
async def test_checkpoint_stores_a_record_or_a_batch_before_it_returns() -> None:
    """S3-06: when the call is back, the row has the position, although the batch goes on."""
    stored: list[str] = []
    played: PlayedShard

    async def by_record(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        await checkpointer.checkpoint(batch.records[1])
        stored.append(played.row.checkpoint)
        await checkpointer.checkpoint(batch)
        stored.append(played.row.checkpoint)

    calls = Calls(by_record)
    async with a_shard(some_records(3), work=calls) as played:
        await calls.come(1)
        assert stored == ["2", "3"]


@simulated
async def test_checkpoint_of_an_older_position_changes_nothing() -> None:
    """A position that has been passed is a silent no-op, and the stored one never goes back."""

    async def back_and_forth(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        await checkpointer.checkpoint(batch.records[2])
        await checkpointer.checkpoint(batch.records[0])
        await checkpointer.checkpoint(batch.records[2])
        await checkpointer.checkpoint()

    calls = Calls(back_and_forth)
    async with a_shard(some_records(5), work=calls) as played:
        await calls.come(1)
        assert (calls.outcomes, played.row.checkpoint, played.writes()) == ([None], "3", 1)


@simulated
async def test_checkpoint_never_goes_back_whatever_order_positions_come_in() -> None:
    """Concurrent calls in any order end at the greatest position."""

    async def shuffled(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        order = [7, 2, 9, 1, 5, 10, 3, 8, 4, 6]
        seen: list[int] = []

        async def one(number: int) -> None:
            await checkpointer.checkpoint(batch.records[number - 1])
            seen.append(int(played.row.checkpoint))
            assert seen[-1] >= number

        await asyncio.gather(*(one(number) for number in order))
        assert seen == sorted(seen)

    calls = Calls(shuffled)
    played: PlayedShard
    async with a_shard(some_records(10), work=calls) as played:
        await calls.come(1)
        assert (calls.outcomes, played.row.checkpoint) == ([None], "10")
        assert played.writes() <= 3, "what waits together is written together"


@simulated
async def test_checkpoint_raises_position_error_for_what_was_never_handed_over() -> None:
    """What is beyond the batch, of another shard or no record at all is refused here, and the shard goes on."""

    async def beyond(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        await checkpointer.checkpoint(some_records(1, first=99)[0])

    async def foreign(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        await checkpointer.checkpoint(RecordBatch("s", "shardId-000000000009", batch.records, 0))

    async def no_record(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        await checkpointer.checkpoint(batch.first)  # type: ignore[arg-type]

    calls = Calls(beyond, foreign, no_record)
    async with a_shard(*[some_records(1, first=number) for number in (1, 2, 3, 4)], work=calls) as played:
        await until(lambda: len(calls.batches) == 4)
        assert [type(error) for error in calls.outcomes] == [PositionError] * 3
        assert SHARD in str(calls.outcomes[0])
        assert "shardId-000000000009" in str(calls.outcomes[1])
        assert (played.row.checkpoint, played.writes()) == ("TRIM_HORIZON", 0)


@simulated
async def test_checkpoint_refuses_a_record_of_another_shard_whose_number_lies_within_the_batch() -> None:
    """Numbers do not tell shards apart: it would take for finished what the processor has in hand."""
    (foreign,) = some_records(1, first=20)

    async def misled(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        with pytest.raises(PositionError):
            await checkpointer.checkpoint(foreign)
        with pytest.raises(PositionError):
            await checkpointer.checkpoint(replace(batch, records=[batch.records[0], foreign]))
        assert (played.row.checkpoint, played.writes()) == ("TRIM_HORIZON", 0)
        await checkpointer.checkpoint(replace(batch, records=batch.records[:1]))

    played: PlayedShard
    calls = Calls(misled)
    async with a_shard([*some_records(1, first=10), *some_records(1, first=30)], work=calls) as played:
        await calls.come(1)
        assert (calls.outcomes, played.row.checkpoint) == ([None], "10")


@simulated
async def test_checkpoint_raises_lease_lost_at_the_first_refusal() -> None:
    """With the lease gone there is one attempt and no waiting, and the row is left alone."""

    async def when_stolen(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        played.steal()
        await checkpointer.checkpoint(batch)

    played: PlayedShard
    calls = Calls(when_stolen)
    async with a_shard(some_records(2), work=calls) as played:
        await calls.come(1)
        assert isinstance(calls.outcomes[0], LeaseLostError)
        assert not calls.outcomes[0].retryable
        assert played.writes() == 1
        assert played.stage.clock.monotonic() < 0.3
        assert played.row.checkpoint == "TRIM_HORIZON"


@simulated
async def test_checkpoint_raises_lease_lost_past_the_deadline_without_a_request() -> None:
    """The fence is asked first: a worker that may have lost the shard does not even try."""
    calls = Calls()
    async with a_shard(some_records(1), work=calls) as played:
        await until(lambda: calls.batches)
        played.stage.wire.is_cut = True
        await asyncio.sleep(TENURE_S + 1)
        sent = len(played.stage.wire.calls)
        assert calls.checkpointer is not None
        with pytest.raises(LeaseLostError):
            await calls.checkpointer.checkpoint(calls.batches[0])
        assert len(played.stage.wire.calls) == sent


@simulated
async def test_checkpoint_raises_lease_lost_after_the_shard_was_released() -> None:
    """A checkpointer that outlives its ownership, say in a task of the user's, moves nothing."""
    calls = Calls()
    async with a_shard(some_records(1), work=calls, checkpoint={"mode": "auto"}) as played:
        await until(lambda: calls.batches)
        played.shard.lease.tell(Release(0, 100))
        await played.coordinator.hears(GaveUp)
        assert calls.checkpointer is not None
        with pytest.raises(LeaseLostError):
            await calls.checkpointer.checkpoint(calls.batches[0])
        assert played.row.checkpoint == "1"


@simulated
async def test_checkpoint_is_tried_again_when_it_is_throttled() -> None:
    """Throttling is waited out, not raised."""

    async def once(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        await checkpointer.checkpoint(batch)

    calls = Calls(once)
    async with a_shard(some_records(2), work=calls, leases={"failover_s": 10}) as played:
        played.stage.wire.fail("checkpoint", Fault.THROTTLED, times=3)
        await calls.come(1)
        assert (calls.outcomes, played.row.checkpoint, played.writes()) == ([None], "2", 4)


@simulated
async def test_checkpoint_raises_checkpoint_failed_when_it_cannot_be_stored_in_time() -> None:
    """With the lease still held the user learns of it, may call again, and the same position is then stored."""

    async def twice(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        with pytest.raises(CheckpointFailedError) as failed:
            await checkpointer.checkpoint(batch)
        assert failed.value.retryable
        await checkpointer.checkpoint(batch)

    calls = Calls(twice)
    async with a_shard(some_records(2), work=calls, leases={"failover_s": 20}) as played:
        played.stage.wire.fail("checkpoint", Fault.LOST_REQUEST, times=8)
        await calls.come(1)
        assert (calls.outcomes, played.row.checkpoint) == ([None], "2")


@simulated
async def test_finished_records_are_stored_by_themselves_with_each_heartbeat_in_auto_mode() -> None:
    """The default needs no call at all."""
    calls = Calls()
    async with a_shard(some_records(2), work=calls, checkpoint={"mode": "auto"}) as played:
        await until(lambda: played.row.checkpoint == "2", within_s=1.1)
        assert played.writes() == 0


@simulated
async def test_checkpoint_after_a_handoff_that_was_called_off_returns_once_it_is_stored() -> None:
    """What the processor before has finished need not be in the row when the new one begins after it."""
    stored: list[str] = []
    played: PlayedShard

    async def all_finished(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        await checkpointer.checkpoint()
        stored.append(played.row.checkpoint)

    async def nothing(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        pass

    calls = Calls(nothing, nothing, all_finished)
    replies = [some_records(1), [], some_records(1, first=2)]
    async with a_shard(*replies, work=calls, checkpoint={"mode": "auto", "interval_s": 100}) as played:
        await calls.come(2)
        assert played.row.checkpoint == "1", "the rest is not due yet"
        played.stage.wire.fail("transfer", Fault.BROKEN, times=99)
        await played.stage.store.write(rules.start_handoff(played.row, owner=OTHER))
        await until(lambda: played.stage.wire.of("transfer"))
        played.stage.worker.source.replies.append(some_records(1, first=3))  # type: ignore[attr-defined]
        await played.stage.store.write(rules.cancel_handoff_by_receiver(played.row, owner=OTHER))
        await calls.come(3)
        assert (calls.outcomes[-1], calls.batches[-1].first.value, stored) == (None, 3, ["2"])


@simulated
async def test_nothing_is_stored_by_itself_in_manual_mode() -> None:
    """``checkpoint.mode: manual`` leaves it to the processor."""
    calls = Calls()
    async with a_shard(some_records(2), work=calls) as played:
        await asyncio.sleep(30)
        assert len(calls.batches) == 1
        assert played.row.checkpoint == "TRIM_HORIZON"


@simulated
async def test_finished_records_are_stored_after_so_many_when_asked_for() -> None:
    """``checkpoint.records``: a busy shard does not wait for the heartbeat."""
    calls = Calls()
    async with a_shard(some_records(10), work=calls, checkpoint={"records": 10}, leases={"failover_s": 60}) as played:
        await until(lambda: played.row.checkpoint == "10", within_s=0.2)


@simulated
async def test_finished_records_are_stored_no_more_often_than_asked_for() -> None:
    """``checkpoint.interval_s`` longer than a heartbeat spares positions, not heartbeats."""
    calls = Calls()
    replies = [some_records(1, first=number) for number in range(1, 40)]
    async with a_shard(*replies, work=calls, checkpoint={"interval_s": 5.0}) as played:
        stored: set[str] = set()
        for _ in range(1000):
            await asyncio.sleep(0.01)
            stored.add(played.row.checkpoint)
        assert 2 <= len(stored - {"TRIM_HORIZON"}) <= 3


@pytest.mark.parametrize(("checkpointed", "position"), [(1, "2"), (2, "3")])
@simulated
async def test_halt_names_the_first_record_that_is_not_finished(checkpointed: int, position: str) -> None:
    """One that has checkpointed a part of its batch stands after that part."""

    async def part(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        await checkpointer.checkpoint(batch.records[checkpointed - 1])
        raise ValueError

    async with a_shard(some_records(3), work=part, delivery={"retries": 0}) as played:
        await until(lambda: played.row.native.halted)
        assert played.row.native.halted == Halt("ValueError", position)
        assert played.row.checkpoint == str(checkpointed)


@simulated
async def test_batch_that_was_checkpointed_whole_is_finished_also_if_it_then_raises(log: LogCapture) -> None:
    """Nothing of it is left to be tried again; what it raised is logged."""

    async def whole(batch: RecordBatch, checkpointer: Checkpointer) -> None:
        await checkpointer.checkpoint(batch)
        raise ValueError

    async with a_shard(some_records(3), some_records(1, first=4), work=whole, delivery={"retries": 0}) as played:
        await until(lambda: played.row.checkpoint == "4")
        assert played.row.native.halted is None
        assert [entry["error"] for entry in log.entries if entry["event"] == "kcl_py.batch.failed"] == [
            "ValueError"
        ] * 2


@simulated
async def test_checkpoint_that_was_there_before_is_no_news(log: LogCapture) -> None:
    """``kcl_py.checkpoint.stored`` tells of positions that moved, not of a lease that was taken."""
    async with a_lease(replace(FREE, checkpoint="5")) as played:
        await played.held()
        await asyncio.sleep(5)
        played.progress(7)
        await until(lambda: played.row.checkpoint == "7")
        await asyncio.sleep(1)
        stored = [entry["position"] for entry in log.entries if entry["event"] == "kcl_py.checkpoint.stored"]
        assert stored == ["7"]
