"""``process``: records one by one, in lanes of a key, and what becomes of each."""

import asyncio

import pytest
from structlog.testing import LogCapture

from kcl_py import (
    Record,
    Redelivery,
    Reject,
    Retry,
)
from kcl_py.leases.row import Halt
from kcl_py.tree.messages import (
    Halted,
    Progress,
)
from tests.kcl_py.tree.lanes import Desk, keyed
from tests.kcl_py.tree.pipelines import Played, a_pipeline
from tests.kcl_py.tree.stage import until
from tests.simloop import simulated

LATER = float("inf")


def prefix(played: Played) -> int:
    """How far the shard is finished, as the Lease has heard it."""
    heard = played.lease.of(Progress)
    return heard[-1].prefix.value if heard and heard[-1].prefix else 0


@simulated
async def test_records_of_a_key_are_serial_and_keys_are_side_by_side() -> None:
    """BW-12: one slow key holds up nothing but itself."""
    desk = Desk(work_s={"1": 5.0})
    async with a_pipeline(keyed("abab"), processor=desk.processor()) as played:
        played.begin()
        await until(lambda: len(desk.done) == 2)
        assert desk.done == ["2", "4"]
        assert prefix(played) == 0
        await until(lambda: prefix(played) == 4)
        assert desk.spans["3"][0][0] >= desk.spans["1"][0][1]


@simulated
async def test_shard_order_is_serial_whatever_the_keys_are() -> None:
    """``ordering: shard``."""
    desk = Desk()
    async with a_pipeline(keyed("abc"), processor=desk.processor(), delivery={"ordering": "shard"}) as played:
        played.begin()
        await until(lambda: prefix(played) == 3)
        assert (desk.numbers(), desk.most_in_hand) == ([1, 2, 3], 1)


@simulated
async def test_without_order_records_of_a_key_are_side_by_side() -> None:
    """``ordering: none``."""
    desk = Desk()
    async with a_pipeline(keyed("aaa"), processor=desk.processor(), delivery={"ordering": "none"}) as played:
        played.begin()
        await until(lambda: prefix(played) == 3)
        assert desk.most_in_hand == 3


@simulated
async def test_no_more_records_are_in_work_than_the_worker_may_have() -> None:
    """``delivery.concurrency``: a slot is taken by whoever comes next, until all is done."""
    desk, keys = Desk(), [str(number) for number in range(50)]
    async with a_pipeline(keyed(keys), processor=desk.processor(), delivery={"concurrency": 7}) as played:
        played.begin()
        await until(lambda: prefix(played) == 50)
        assert desk.most_in_hand == 7
        assert sorted(desk.numbers()) == list(range(1, 51))


@simulated
async def test_failed_record_comes_again_and_its_key_waits(log: LogCapture) -> None:
    """S2-14: it says the attempt, when it first failed and why; nothing else of its key comes before it is done."""
    desk = Desk(answers={"1": [ValueError("no such user"), Retry(reason="busy")]})
    async with a_pipeline(keyed("aab"), processor=desk.processor(), delivery={"backoff_s": 1.0}) as played:
        played.begin()
        await until(lambda: prefix(played) == 3)
        assert [number for number in desk.numbers() if number != 3] == [1, 1, 1, 2]
        first, second, third = (record.redelivery for record in desk.seen if record.sequence_number == "1")
        assert first is None
        assert isinstance(second, Redelivery)
        assert isinstance(third, Redelivery)
        assert (second.attempt, second.reason) == (2, "ValueError: no such user")
        assert (third.attempt, third.reason) == (3, "busy")
        assert second.first_failed_s == third.first_failed_s > 0
        failed = [entry for entry in log.entries if entry["event"] == "kcl_py.batch.failed"]
        assert [(entry["attempt"], entry["error"], entry["hook"], entry["records"]) for entry in failed] == [
            (1, "ValueError: no such user", "process", 1),
            (2, "busy", "process", 1),
        ]


@simulated
async def test_nack_waits_as_long_as_it_says() -> None:
    """S2-10, S2-11: not a moment less, and only for its own key."""
    desk = Desk(answers={"1": [Retry(after_s=30.0)]})
    async with a_pipeline(keyed("aab"), processor=desk.processor()) as played:
        played.begin()
        await until(lambda: prefix(played) == 3, within_s=60.0)
        (_, failed_at), (again_at, _) = desk.spans["1"]
        assert again_at - failed_at == pytest.approx(30.0, abs=0.1)
        assert desk.spans["3"][0][1] < failed_at + 1.0


@simulated
async def test_nack_comes_again_though_its_timer_has_rung_too_early() -> None:
    """Event loops round, and a machine that was frozen has another time than they: it is set again."""
    desk = Desk(answers={"1": [Retry(after_s=10.0)]})
    async with a_pipeline(keyed("a"), processor=desk.processor()) as played:
        played.begin()
        await until(lambda: len(desk.seen) == 1)
        await asyncio.sleep(5.0)
        played.stage.clock.offset_s -= 2.0  # type: ignore[attr-defined]
        await until(lambda: prefix(played) == 1, within_s=20.0)


@simulated
async def test_exhausted_record_halts_its_shard() -> None:
    """The default: nothing more is handed over, and the row says which record it is."""
    desk = Desk(answers={"2": [ValueError("no")] * 3}, work_s={"3": 0.5})
    options = {"retries": 1, "backoff_s": 0.01}
    async with a_pipeline(keyed("abcb"), processor=desk.processor(), delivery=options) as played:
        played.begin()
        halted = await played.lease.hears(Halted)
        assert halted.halt == Halt("ValueError: no", "2")
        await asyncio.sleep(5.0)
        assert (prefix(played), sorted(desk.done)) == (1, ["1", "3"])
        assert desk.numbers().count(4) == 0
        assert [failure.attempts for failure in desk.failures] == [2]


@simulated
@pytest.mark.parametrize(("ordering", "finished"), [("shard", 2), ("key", 0)])
async def test_record_that_halts_its_shard_is_the_first_unfinished_one_in_shard_order(
    ordering: str, finished: int
) -> None:
    """So who passes over it passes over nothing else; in lanes, what is before it may wait (docs/leases.md)."""
    desk = Desk(answers={"3": [Reject("no")]}, work_s={"1": 5.0})
    async with a_pipeline(keyed("aab"), processor=desk.processor(), delivery={"ordering": ordering}) as played:
        played.begin()
        halted = await played.lease.hears(Halted)
        assert (halted.halt.position, prefix(played)) == ("3", finished)


@simulated
async def test_skipped_record_counts_as_finished(log: LogCapture) -> None:
    """``on_failure: skip``: with an error in the log that names it, and no payload."""
    desk = Desk(answers={"2": [ValueError("no")]})
    options = {"retries": 0, "on_failure": "skip"}
    async with a_pipeline(keyed("aaa"), processor=desk.processor(), delivery=options) as played:
        played.begin()
        await until(lambda: prefix(played) == 3)
        (skipped,) = [entry for entry in log.entries if entry["event"] == "kcl_py.record.skipped"]
        assert (skipped["position"], skipped["attempts"], skipped["error"]) == ("2", 1, "ValueError: no")
        assert desk.done == ["1", "3"]


@simulated
async def test_rejected_record_is_not_tried_again() -> None:
    """``Reject`` goes straight to the policy."""
    desk = Desk(answers={"1": [Reject("malformed")]}, policy="skip")
    async with a_pipeline(keyed("a"), processor=desk.processor()) as played:
        played.begin()
        await until(lambda: prefix(played) == 1)
        assert [(each.reason, each.attempts, each.is_rejected) for each in desk.failures] == [("malformed", 1, True)]


@simulated
async def test_crash_of_handle_failed_is_contained(log: LogCapture) -> None:
    """BW-16: what ``on_failure`` says holds then."""
    desk = Desk(answers={"1": [Reject("malformed")]}, policy=RuntimeError("oh"))
    async with a_pipeline(keyed("a"), processor=desk.processor(), delivery={"on_failure": "skip"}) as played:
        played.begin()
        await until(lambda: prefix(played) == 1)
        (failed,) = [entry for entry in log.entries if entry["event"] == "kcl_py.processor.failed"]
        assert (failed["hook"], failed["error"]) == ("handle_failed", "RuntimeError: oh")


@simulated
async def test_attempt_that_takes_too_long_has_failed() -> None:
    """``attempt_timeout_s``: the call is cancelled, and the record comes again."""
    desk = Desk(work_s={"1": 100.0})
    options = {"attempt_timeout_s": 2.0, "retries": 1, "backoff_s": 0.1}
    async with a_pipeline(keyed("ab"), processor=desk.processor(), delivery=options) as played:
        played.begin()
        halted = await played.lease.hears(Halted)
        assert halted.halt.error == "TimeoutError: Desk.processor.<locals>.Lanes.process took longer than 2 s"
        assert [ended - begun for begun, ended in desk.spans["1"]] == pytest.approx([2.0, 2.0])


@simulated
async def test_answer_that_means_nothing_is_a_failure() -> None:
    """A function that returns something by habit does not lose records."""
    desk = Desk(answers={"1": [True]})  # type: ignore[list-item]
    async with a_pipeline(keyed("a"), processor=desk.processor(), delivery={"retries": 0}) as played:
        played.begin()
        halted = await played.lease.hears(Halted)
        assert halted.halt.error == (
            "ProcessorError: cannot use what process returned: expected None, Retry, Reject or ToBatch, found bool"
        )


@simulated
async def test_cancellation_from_within_the_users_code_is_a_failure() -> None:
    """A cancelled future of the user's own does not end the shard, nor lose the record."""
    desk = Desk()
    calls = []

    class Cancelled(desk.processor()):  # type: ignore[misc]
        async def process(self, record: Record) -> None:
            calls.append(record.redelivery)
            if len(calls) == 1:
                raise asyncio.CancelledError

    async with a_pipeline(keyed("a"), processor=Cancelled, delivery={"backoff_s": 0.01}) as played:
        played.begin()
        await until(lambda: prefix(played) == 1)
        assert len(calls) == 2
