"""What a Pipeline does not hand over: after its tenure, or before it is sure that it still has one."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kcl_py.leases.fence import Fence
from kcl_py.processor import OwnedShard, RecordProcessor
from kcl_py.tree.messages import Abandon, Confirm, Confirmed, Drain, Drained, Halted, Why
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
        assert (drained.prefix, played.handovers) == (None, [])
        assert played.hooks() == ["initialize", last]
