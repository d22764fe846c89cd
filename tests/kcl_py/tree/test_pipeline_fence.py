"""What a Pipeline does not hand over: after its tenure, or before it is sure that it still has one."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kcl_py.leases.fence import Fence
from kcl_py.processor import OwnedShard, RecordProcessor
from kcl_py.records import SequenceNumber
from kcl_py.tree.messages import Abandon, Confirm, Confirmed, Drain, Drained, Halted, Resume, Why
from tests.kcl_py.tree.pipelines import Failing, a_pipeline, handed_over
from tests.kcl_py.tree.stage import some_records
from tests.simloop import simulated

LATER = float("inf")


@simulated
async def test_pipeline_hands_nothing_over_past_the_deadline() -> None:
    """The fence is asked in place: records that are ready when the tenure ends stay where they are."""
    async with a_pipeline(*(some_records(1, first=n) for n in range(1, 50))) as played:
        played.stage.diary.work_s = 1.0
        played.fence = played.stage.fence(for_s=5.0)
        played.begin()
        await asyncio.sleep(60)
        assert len(played.handovers) == 5
        assert max(handover.begun_at for handover in played.handovers) < 5.0


@simulated
async def test_pipeline_repeats_nothing_past_the_deadline() -> None:
    """A retry is a hand-over, too."""
    work = Failing(99)
    async with a_pipeline(some_records(1), work=work, delivery={"retries": 50, "backoff_s": 1.0}) as played:
        played.fence = played.stage.fence(for_s=5.0)
        played.begin()
        await asyncio.sleep(120)
        assert max(handover.begun_at for handover in played.handovers) < 5.0
        assert not played.lease.of(Halted)


@simulated
async def test_pipeline_asks_for_a_heartbeat_before_it_hands_over_after_the_loop_stood_still() -> None:
    """After a gap nothing is handed over until a write sent since then has been acknowledged."""
    async with a_pipeline(some_records(1)) as played:
        played.stage.stand_still()
        await asyncio.sleep(1.0)
        played.stage.keep_pulse()
        played.begin()
        await asyncio.sleep(10)
        assert played.lease.of(Confirm)
        assert not played.hooks()
        played.fence.confirmed_at = played.stage.clock.monotonic()
        played.ref.tell(Confirmed())
        await handed_over(played, batches=1)


@simulated
async def test_pipeline_holds_back_what_arrives_after_the_loop_stood_still() -> None:
    """Also in the midst of a running shard, and also a repetition."""
    replies = [some_records(1, first=number) for number in range(1, 9)]
    async with a_pipeline(*replies, work=Failing(1), delivery={"backoff_s": 5.0}) as played:
        played.begin()
        await handed_over(played, batches=1)
        played.stage.stand_still()
        await asyncio.sleep(1.0)
        played.stage.keep_pulse()
        await asyncio.sleep(10)
        assert len(played.handovers) == 1
        assert played.lease.of(Confirm)
        played.fence.confirmed_at = played.stage.clock.monotonic()
        played.ref.tell(Confirmed())
        await handed_over(played, batches=9)
        assert played.numbers() == [[1], [1], [2], [3], [4], [5], [6], [7], [8]]


@pytest.mark.parametrize("failures", [0, 1], ids=["batch", "repetition"])
@simulated
async def test_pipeline_goes_on_with_what_came_past_the_deadline_when_the_lease_was_renewed_all_the_same(
    failures: int,
) -> None:
    """The reply to a renewal may lie ready when a stopped process wakes up, and the Pipeline be the first to look."""
    replies = [some_records(1), some_records(1, first=2)]
    async with a_pipeline(*replies, work=Failing(failures), delivery={"backoff_s": 5.0}) as played:
        played.stage.worker.source.latency_s = 2.0  # type: ignore[attr-defined]
        tenure = played.fence.tenure
        assert tenure is not None
        played.begin()
        await handed_over(played, batches=1)
        played.fence.tenure = replace(tenure, deadline_at=0.0)
        await played.lease.hears(Confirm)
        played.fence.tenure, played.fence.confirmed_at = tenure, played.stage.clock.monotonic()
        played.ref.tell(Confirmed())
        await handed_over(played, batches=2 + failures)
        assert played.numbers() == [[1]] * (1 + failures) + [[2]]


@simulated
async def test_no_hook_is_called_after_the_pipeline_has_drained_without_a_processor() -> None:
    """The heartbeat that was asked for may be acknowledged when nobody waits for it any more."""
    async with a_pipeline(some_records(1)) as played:
        played.stage.stand_still()
        await asyncio.sleep(1.0)
        played.stage.keep_pulse()
        played.begin()
        await played.lease.hears(Confirm)
        played.ref.tell(Drain(Why.HANDOFF, LATER))
        await played.lease.hears(Drained)
        played.fence.confirmed_at = played.stage.clock.monotonic()
        played.ref.tell(Confirmed())
        await asyncio.sleep(5)
        assert played.hooks() == []
        played.ref.tell(Resume(None))
        await handed_over(played, batches=1)
        assert played.hooks() == ["initialize"]
        assert len(played.lease.of(Drained)) == 1


@pytest.mark.parametrize("works_s", [0.0, 5.0], ids=["nothing in hand", "batch in hand"])
@simulated
async def test_shutdown_requested_is_not_called_past_the_deadline(works_s: float) -> None:
    """It may checkpoint and publish, which takes a lease that is held: ``lease_lost`` is called in its place."""
    async with a_pipeline(some_records(2)) as played:
        played.stage.diary.work_s = works_s
        played.fence = played.stage.fence(for_s=3.0)
        played.begin()
        await handed_over(played, batches=1)
        await asyncio.sleep(2.0 if works_s else 4.0)
        played.ref.tell(Drain(Why.HANDOFF, LATER))
        await played.lease.hears(Confirm)
        await asyncio.sleep(0.1)
        assert played.hooks() == ["initialize"]
        played.ref.tell(Abandon())
        assert await played.lease.hears(Drained) == Drained(SequenceNumber(2), SequenceNumber(2), 0)
        assert played.hooks() == ["initialize", "lease_lost"]


@simulated
async def test_shutdown_requested_is_called_when_the_lease_turns_out_to_be_held() -> None:
    """It waits for the answer of the Lease like any other hook."""
    async with a_pipeline(some_records(1)) as played:
        tenure = played.fence.tenure
        assert tenure is not None
        played.begin()
        await handed_over(played, batches=1)
        await asyncio.sleep(1)
        played.fence.tenure = replace(tenure, deadline_at=0.0)
        played.ref.tell(Drain(Why.HANDOFF, LATER))
        await played.lease.hears(Confirm)
        played.fence.tenure = tenure
        played.ref.tell(Confirmed())
        await played.lease.hears(Drained)
        assert played.hooks() == ["initialize", "shutdown_requested"]


class Frozen(Fence):
    """A fence that closes after the task of a hook was started and before its first step, as in a stopped process."""

    def __init__(self, fence: Fence) -> None:
        super().__init__(fence._pulse)
        self.tenure, self.confirmed_at = fence.tenure, fence.confirmed_at
        self.refused = 0
        self.on_refusal: Callable[[], object] = lambda: None
        self._actor: asyncio.Task[Any] | None = None

    def allows(self, now: float) -> bool:
        """Refuse the first task that asks and is not the actor's."""
        if self._actor is None:
            self._actor = asyncio.current_task()
        if asyncio.current_task() is not self._actor and not self.refused:
            self.refused += 1
            self.on_refusal()
            return False
        return super().allows(now)


@simulated
async def test_hook_whose_task_was_overtaken_by_a_freeze_is_called_once_it_may_be() -> None:
    """Between the check and the user's code lies a turn of the loop: it is asked again right before."""
    async with a_pipeline(some_records(2)) as played:
        fence = played.fence = Frozen(played.fence)
        played.begin()
        await handed_over(played, batches=1)
        await asyncio.sleep(1)
        assert fence.refused == 1
        assert played.numbers() == [[1, 2]]
        assert played.hooks() == ["initialize"]


@pytest.mark.parametrize(("end", "last"), [(Abandon(), "lease_lost"), (Drain(Why.STOP, LATER), "shutdown_requested")])
@simulated
async def test_hook_that_was_held_back_is_not_called_when_the_ownership_ends_meanwhile(end: object, last: str) -> None:
    """The records were never handed over, and the last hook is called as always."""
    async with a_pipeline(some_records(2)) as played:
        fence = played.fence = Frozen(played.fence)
        processor = played.stage.worker.processor
        prepare = processor.initialize

        async def initialize(self: RecordProcessor, shard: OwnedShard) -> None:
            await prepare(self, shard)
            fence.refused = 0
            fence.on_refusal = lambda: played.ref.tell(end)

        processor.initialize = initialize  # type: ignore[method-assign]
        played.begin()
        drained = await played.lease.hears(Drained)
        assert fence.refused == 1
        assert played.handovers == []
        assert drained == Drained(None, None, 0), "the records count neither as handed over nor as in anybody's hands"
        assert played.hooks() == ["initialize", last]
