"""The memory of a worker: what all its shards hold together, and that none of them waits for one that stands still."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from structlog.testing import LogCapture

from kcl_py.tree.messages import Complete, Halted, Progress
from tests.kcl_py.tree.shelves import MIB, REPLY_BYTES, Trouble, a_reading
from tests.kcl_py.tree.stage import until
from tests.simloop import simulated

BUDGET_BYTES = 64 * MIB
BATCH_BYTES = 2 * MIB
TIGHT: dict[str, Any] = {"fetch": {"budget_bytes": BUDGET_BYTES}, "delivery": {"batch": {"max_bytes": BATCH_BYTES}}}


def shards(count: int, sizes: Sequence[int], *, name: str = "shard") -> dict[str, Sequence[int]]:
    return {f"{name}-{number:03}": sizes for number in range(count)}


@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param([MIB] * 30, id="full from the first reply on"),
        pytest.param([1] * 3000 + [MIB] * 20, id="small at first"),
        pytest.param([1] * 10_000 + [MIB] * 20, id="one small reply"),
    ],
)
@simulated
async def test_worker_holds_no_more_than_its_budget_and_one_reply(sizes: Sequence[int]) -> None:
    """``fetch.budget_bytes`` is a bound for any number of shards, also where replies grow a thousandfold."""
    async with a_reading(shards(32, sizes), **TIGHT) as reading:
        await until(lambda: all(map(reading.has_finished, reading.leases)), within_s=600)
        assert reading.source.memory.most_bytes <= BUDGET_BYTES + REPLY_BYTES
        assert reading.source.memory.most_bytes > BUDGET_BYTES / 2, "and the budget is used"
        reading.check_order()


@pytest.mark.parametrize("is_hanging", [False, True], ids=["raise", "hang"])
@simulated
async def test_healthy_shards_go_on_when_any_number_of_others_finishes_nothing(is_hanging: bool) -> None:
    """What others have read ahead, and what they have in hand, keeps nobody from reading."""
    broken, sound = shards(60, [MIB] * 30, name="broken"), shards(3, [MIB] * 30, name="sound")
    troubles = {shard_id: Trouble(is_hanging=is_hanging) for shard_id in broken}
    delivery = {"batch": {"max_bytes": BATCH_BYTES}, "retries": 99, "backoff_s": 60, "backoff_max_s": 600}
    async with a_reading(broken | sound, troubles=troubles, **TIGHT | {"delivery": delivery}) as reading:
        await until(lambda: len(reading.tries) == 63, within_s=90, what="a batch of each shard")
        await until(lambda: all(map(reading.has_finished, sound)), within_s=60)
        assert not any(reading.finished[shard_id] for shard_id in broken)
        assert reading.source.memory.most_bytes <= BUDGET_BYTES + REPLY_BYTES + len(broken) * BATCH_BYTES
        assert reading.source.memory.alive_bytes <= BUDGET_BYTES + len(broken) * BATCH_BYTES


@simulated
async def test_halted_shards_hold_nothing() -> None:
    """However many have halted, the whole budget is there for the others."""
    broken, sound = shards(60, [MIB] * 30, name="broken"), shards(1, [MIB] * 30, name="sound")
    delivery = {"batch": {"max_bytes": BATCH_BYTES}, "retries": 0}
    troubles = {shard_id: Trouble() for shard_id in broken}
    async with a_reading(broken | sound, troubles=troubles, **TIGHT | {"delivery": delivery}) as reading:
        for shard_id in broken:
            await reading.leases[shard_id].hears(Halted)
        await until(lambda: reading.has_finished("sound-000"), within_s=30)
        await asyncio.sleep(60)
        kept_by_the_log = len(broken) * BATCH_BYTES  # the tracebacks of what was raised
        assert reading.source.memory.alive_bytes <= kept_by_the_log


@pytest.mark.parametrize("part", ["", "/producer"], ids=["pipeline", "producer"])
@simulated
async def test_shards_that_have_failed_hold_nothing_whoever_remembers_them(part: str) -> None:
    """Neither the error that is kept of a dead actor, nor the message that it had last, keeps records in memory."""
    troubles = {shard_id: Trouble(is_hanging=True) for shard_id in shards(5, [])}
    async with a_reading(shards(5, [MIB] * 20), troubles=troubles, **TIGHT) as reading:
        await until(lambda: len(reading.tries) == 5)
        await asyncio.sleep(1)
        for shard_id in troubles:
            reading.kill(shard_id + part)
        await asyncio.sleep(1)
        assert reading.source.memory.most_bytes > BUDGET_BYTES / 2
        kept_by_the_loop = len(troubles) * BATCH_BYTES  # of these tests: its tasks, and these the hooks that hung
        assert reading.source.memory.alive_bytes <= kept_by_the_loop


@simulated
async def test_records_dropped_for_others_come_after_the_batch_in_hand_and_once(log: LogCapture) -> None:
    """Nothing is lost, reordered or said to be redelivered that was not handed over; the shard's end is seen, too."""
    broken = shards(5, [MIB] * 10, name="one reply") | shards(5, [MIB] * 15, name="two replies")
    sound = shards(30, [MIB] * 15, name="sound")
    troubles = {shard_id: Trouble(at=3) for shard_id in broken}
    delivery = {"batch": {"max_bytes": BATCH_BYTES}, "retries": 99, "backoff_s": 10, "backoff_max_s": 10}
    async with a_reading(broken | sound, troubles=troubles, **TIGHT | {"delivery": delivery}) as reading:
        await until(lambda: all(map(reading.has_finished, sound)))
        dropped = [entry for entry in log.entries if entry["event"] == "kcl_py.fetch.ahead_dropped"]
        assert dropped, "memory was short"
        assert all(entry["size_bytes"] > 0 for entry in dropped)
        for trouble in troubles.values():
            trouble.is_over = True
        for shard_id in broken:
            await reading.leases[shard_id].hears(Complete)
            assert reading.has_finished(shard_id)
            told = [each for each in reading.leases[shard_id].of(Progress) if 0 < each.records < len(broken[shard_id])]
            assert all(each.lag and each.lag.lag_ms > 0 for each in told), "it is behind as long as records are left"
        reading.check_order()


@simulated
async def test_slow_shards_keep_what_they_have_read_ahead_when_there_is_memory_enough(log: LogCapture) -> None:
    """Nothing is read twice only because a batch takes long."""
    async with a_reading(shards(5, [MIB] * 10), work_s=20.0, **TIGHT) as reading:
        await until(lambda: all(map(reading.has_finished, reading.leases)), within_s=300)
        assert not [entry for entry in log.entries if entry["event"] == "kcl_py.fetch.ahead_dropped"]
        assert len(reading.source.opened) == 5


@simulated
async def test_hundred_quiet_shards_are_read_at_once_when_a_worker_starts() -> None:
    """That a reply may be large keeps small ones waiting for moments only."""
    async with a_reading(shards(100, [10]), **TIGHT) as reading:
        await until(lambda: len(reading.source.first_fetch_at) == 100, within_s=1)
        assert max(reading.source.first_fetch_at.values()) < 0.5
        await until(lambda: all(map(reading.has_finished, reading.leases)), within_s=1)
