"""``delivery.attempt_timeout_s``: an attempt that takes too long is cancelled once, and may clean up."""

import asyncio
import threading
from contextlib import suppress

import pytest

from kcl_py import Batcher, Failure, Record, RecordProcessor, Reject, Retry, ToBatch
from kcl_py.outcomes import RecordOutcome
from kcl_py.testing import run_processor
from kcl_py.tree.messages import Abandon, Drain, Drained, Halted, Why
from tests.kcl_py.tree.pipelines import a_pipeline
from tests.kcl_py.tree.stage import some_records, until
from tests.kcl_py.tree.test_pipeline_lanes import prefix
from tests.simloop import simulated

OPTIONS = {"attempt_timeout_s": 1.0, "retries": 0}
CLEANING_S = 3.0


class Tidy(RecordProcessor):
    """Hangs, and awaits something to clean up, as the end of a transaction does."""

    async def process(self, record: Record) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            HEARD.append("cleaning")
            await asyncio.sleep(CLEANING_S)
            HEARD.append("clean")


HEARD: list[str] = []


@pytest.fixture(autouse=True)
def silence() -> None:
    HEARD.clear()


@simulated
async def test_attempt_that_takes_too_long_cleans_up_before_it_has_failed() -> None:
    """What it awaits then is not cancelled again."""
    async with a_pipeline(some_records(1), processor=Tidy, delivery=OPTIONS) as played:
        played.begin()
        halted = await played.lease.hears(Halted)
        assert halted.halt.error == "TimeoutError: Tidy.process took longer than 1 s"
        assert HEARD == ["cleaning", "clean"]


@pytest.mark.parametrize("after_s", [0.5, 2.0])
@simulated
async def test_end_of_the_ownership_waits_a_second_for_the_cleaning_and_leaves_it_behind(after_s: float) -> None:
    """Whether it had begun before, or begins with that."""
    async with a_pipeline(some_records(1), processor=Tidy, delivery=OPTIONS) as played:
        played.begin()
        await asyncio.sleep(after_s)
        begun_at = asyncio.get_running_loop().time()
        played.ref.tell(Abandon())
        await played.lease.hears(Drained)
        assert asyncio.get_running_loop().time() - begun_at < CLEANING_S


@pytest.mark.parametrize("says_so", [True, False])
@simulated
async def test_attempt_that_goes_on_all_the_same_is_cancelled_once_and_done_only_if_it_says_so(says_so: bool) -> None:
    """By ``uncancel``: else it may have been cut short. It is not cancelled again on each turn of the event loop."""
    cancelled: list[float] = []

    class Deaf(RecordProcessor):
        async def process(self, record: Record) -> RecordOutcome:
            ends_at, task = asyncio.get_running_loop().time() + 10.0, asyncio.current_task()
            assert task is not None
            while (left_s := ends_at - asyncio.get_running_loop().time()) > 0:
                try:
                    await asyncio.sleep(left_s)
                except asyncio.CancelledError:
                    cancelled.append(asyncio.get_running_loop().time())
                    if says_so:
                        task.uncancel()
            return None if record.redelivery else Retry(after_s=0)

    async with a_pipeline(some_records(1), processor=Deaf, delivery=OPTIONS | {"retries": 1}) as played:
        played.begin()
        await until(lambda: len(cancelled) == 2 and (prefix(played) or played.lease.of(Halted)))
        assert cancelled == pytest.approx([1.0, 11.0], abs=0.1)
        assert [
            halted.halt.error.endswith("Deaf.process took longer than 1 s") for halted in played.lease.of(Halted)
        ] == ([] if says_so else [True])


@pytest.mark.parametrize("limit_s", [None, 1000.0])
@pytest.mark.parametrize("hook", ["process", "process_records", "handle_batch"])
@simulated
async def test_what_was_in_hand_when_the_ownership_ended_is_not_done_though_its_hook_returns(
    hook: str, limit_s: float | None
) -> None:
    """It swallows the cancellation, as a bare ``except`` does, so nobody knows what it has done."""

    async def cut_short(*_: object) -> None:
        with suppress(BaseException):
            await asyncio.Event().wait()

    async def give(_self: object, _record: Record) -> RecordOutcome:
        return ToBatch("s3")

    hooks = {"process": give, "batchers": {"s3": Batcher(max_records=1)}} if hook == "handle_batch" else {}
    kind = type("Swallowing", (RecordProcessor,), hooks | {hook: cut_short})
    async with a_pipeline(some_records(1), processor=kind, delivery={"attempt_timeout_s": limit_s}) as played:
        played.begin()
        await asyncio.sleep(1.0)
        played.ref.tell(Drain(Why.STOP, played.stage.clock.monotonic() + 1.0))
        drained = await played.lease.hears(Drained)
        assert (drained.prefix, drained.unfinished) == (None, 1)


@simulated
async def test_record_whose_giving_up_was_cut_off_is_not_passed_over() -> None:
    """``handle_failed`` swallows the cancellation, too, and the policy is not applied."""

    class Hesitating(RecordProcessor):
        async def process(self, record: Record) -> RecordOutcome:
            return Reject("malformed")

        async def handle_failed(self, failure: Failure) -> None:
            with suppress(BaseException):
                await asyncio.Event().wait()

    async with a_pipeline(some_records(1), processor=Hesitating, delivery={"on_failure": "skip"}) as played:
        played.begin()
        await asyncio.sleep(1.0)
        played.ref.tell(Drain(Why.STOP, played.stage.clock.monotonic() + 1.0))
        drained = await played.lease.hears(Drained)
        assert (drained.prefix, drained.unfinished) == (None, 1)


@pytest.mark.asyncio
async def test_attempt_in_a_thread_counts_by_how_it_ends() -> None:
    """Nothing can stop it."""
    may_end = threading.Event()

    class Blocking(RecordProcessor):
        def process(self, record: Record) -> None:  # type: ignore[override]
            may_end.wait(0.5)

    options = {"delivery": {"executor": "thread", "attempt_timeout_s": 0.01}}
    run = await run_processor(Blocking, ["a"], retries=0, options=options)
    assert run.acknowledged == [b"a"]
