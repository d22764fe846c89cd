"""The clock and the event log that tests of actors stand on."""

import anyio
import pytest

from actors import Clock, Started, SystemClock
from actors.clock import move_on_after
from actors.events import Ended
from actors.testing import EventLog, ManualClock, settle

pytestmark = pytest.mark.anyio


async def test_sleepers_wake_in_the_order_of_their_instants_each_at_its_own(clock: ManualClock) -> None:
    """One long step of time is as good as many small ones."""
    woken: list[tuple[str, float]] = []

    async def sleep(name: str, delay_s: float) -> None:
        await clock.sleep(delay_s)
        woken.append((name, clock.monotonic()))

    async with anyio.create_task_group() as tasks:
        for name, delay_s in [("c", 3.0), ("a", 1.0), ("b", 2.0)]:
            tasks.start_soon(sleep, name, delay_s)
        await clock.advance(3.0)
        assert woken == [("a", 1001.0), ("b", 1002.0), ("c", 1003.0)]


async def test_a_sleep_begun_by_a_woken_task_ends_within_the_same_advance(clock: ManualClock) -> None:
    """A loop that sleeps ticks as often as it would in real time."""
    ticks: list[float] = []

    async def tick() -> None:
        while True:
            await clock.sleep(1.0)
            ticks.append(clock.monotonic())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tick)
        await clock.advance(3.5)
        tasks.cancel_scope.cancel()
    assert ticks == [1001.0, 1002.0, 1003.0]
    assert clock.monotonic() == 1003.5


async def test_nothing_wakes_while_the_clock_stands_still(clock: ManualClock) -> None:
    """A sleeper short of its instant sleeps on; a cancelled one is forgotten."""
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(clock.sleep, 2.0)
            await clock.advance(1.9)
            scope.cancel()
    await clock.advance(1.0)
    assert scope.cancelled_caught


async def test_limit_cancels_a_block_once_its_time_has_passed(clock: ManualClock) -> None:
    """As anyio's own by the event loop's time; a block that is left before is not, and is forgotten."""
    with move_on_after(clock, 5.0) as in_time:
        await anyio.lowlevel.checkpoint()
    assert not in_time.cancelled_caught
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clock.advance, 9.0)
        with anyio.fail_after(5), move_on_after(clock, 7.0) as late:
            await anyio.sleep_forever()
        assert clock.monotonic() == 1007.0
    assert late.cancelled_caught
    with move_on_after(clock, 0) as over:
        await anyio.sleep_forever()
    assert over.cancelled_caught


@pytest.mark.parametrize("clock", [None, SystemClock()])
async def test_limit_is_the_event_loops_by_a_clock_that_cannot_tell(clock: Clock | None) -> None:
    """So any three readings of time make a clock."""
    with move_on_after(clock, 0.001) as late:
        await anyio.sleep_forever()
    assert late.cancelled_caught


async def test_wall_time_moves_with_monotonic_time(clock: ManualClock) -> None:
    """Both readings come from the same hand."""
    before = clock.time()
    await clock.advance(7.0)
    assert clock.time() - before == 7.0


@pytest.mark.parametrize("kind", [SystemClock, ManualClock])
async def test_a_sleep_of_nothing_is_a_checkpoint_for_cancellation(kind: type[SystemClock] | type[ManualClock]) -> None:
    """So a loop around ``sleep(0)`` can be stopped."""
    clock: Clock = kind()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await clock.sleep(0)
    assert scope.cancelled_caught


async def test_system_clock_never_goes_back() -> None:
    """Only differences mean something, and they are not negative."""
    clock = SystemClock()
    first = clock.monotonic()
    await clock.sleep(0)
    assert clock.monotonic() >= first
    assert clock.time() > 1_700_000_000


async def test_settle_returns_to_two_at_once_after_all_others_wait() -> None:
    """They do not wait for each other, and both for work that takes many turns."""
    done: list[str] = []

    async def work() -> None:
        for _ in range(100):
            await anyio.lowlevel.checkpoint()
        done.append("work")

    async def look() -> None:
        await settle()
        done.append("look")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(look)
            tasks.start_soon(work)
            tasks.start_soon(look)
    assert done == ["work", "look", "look"]


async def test_event_log_waits_for_the_event_that_has_not_happened_yet(log: EventLog) -> None:
    """By kind, by the end of the path, and by count."""
    log(Started("root/a"))
    log(Started("root/b"))
    found: list[Started] = []

    async def wait() -> None:
        found.append(await log.wait_for(Started, "b", times=2))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await settle()
        log(Ended("root/b", None))
        await settle()
        assert not found
        second = Started("root/b")
        log(second)
    assert found[0] is second
    assert [e.path for e in log.of(Started)] == ["root/a", "root/b", "root/b"]


@pytest.mark.parametrize("by_s", [-1, float("nan"), float("inf")])
async def test_clock_cannot_go_back_nor_for_ever(clock: ManualClock, by_s: float) -> None:
    """No time is like that; the clock stays where it is."""
    with pytest.raises(ValueError, match=f"^cannot advance the clock: expected seconds from 0 on, found {by_s}$"):
        await clock.advance(by_s)
    assert clock.monotonic() == 1000
