"""Time that passes by itself while every task waits, and work that keeps it from passing."""

import anyio
import pytest

from actors.testing import ManualClock, settle

pytestmark = pytest.mark.anyio


async def test_time_passes_at_once_to_whoever_wakes_next(clock: ManualClock) -> None:
    """An hour of sleeps is over at once, each at its instant and in order."""
    woken: list[float] = []

    async def tick(period_s: float) -> None:
        for _ in range(3):
            await clock.sleep(period_s)
            woken.append(clock.monotonic() - 1000.0)

    with anyio.fail_after(5):
        async with clock.passing(), anyio.create_task_group() as tasks:
            tasks.start_soon(tick, 1000.0)
            tasks.start_soon(tick, 1200.0)
    assert woken == [1000.0, 1200.0, 2000.0, 2400.0, 3000.0, 3600.0]


async def test_no_time_passes_while_some_task_can_go_on(clock: ManualClock) -> None:
    """However many turns of the event loop its work takes."""
    async with clock.passing(), anyio.create_task_group() as tasks:
        tasks.start_soon(clock.sleep, 60.0)
        for _ in range(500):
            await anyio.lowlevel.checkpoint()
        assert clock.monotonic() == 1000.0
    assert clock.monotonic() == 1060.0


async def test_time_passes_for_a_sleeper_who_comes_after_a_while_without_any(clock: ManualClock) -> None:
    """Nobody sleeping is no reason to stop looking, nor to be busy."""
    async with clock.passing():
        await settle()
        await clock.sleep(5.0)
    assert clock.monotonic() == 1005.0


async def test_held_time_stands_still_until_the_work_is_done(clock: ManualClock) -> None:
    """Work that waits for the outside world takes none of this clock's time."""
    outside, at = anyio.Event(), list[float]()

    async def work() -> None:
        with clock.held():
            await outside.wait()
            at.append(clock.monotonic())

    async with clock.passing(), anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        tasks.start_soon(clock.sleep, 60.0)
        await settle()
        await settle()
        outside.set()
    assert at == [1000.0]
    assert clock.monotonic() == 1060.0


async def test_held_time_passes_while_the_work_itself_sleeps(clock: ManualClock) -> None:
    """Also in tasks that the work has started, and where it waits for what takes time elsewhere."""

    async def elsewhere(done: anyio.Event) -> None:
        await clock.sleep(5.0)
        done.set()

    async def work(done: anyio.Event) -> None:
        with clock.held():
            await clock.sleep(1.0)
            async with anyio.create_task_group() as parts:
                parts.start_soon(clock.sleep, 2.0)
            with clock.awaited():
                await done.wait()

    with anyio.fail_after(5):
        async with clock.passing(), anyio.create_task_group() as tasks:
            done = anyio.Event()
            tasks.start_soon(elsewhere, done)
            tasks.start_soon(work, done)
    assert clock.monotonic() == 1005.0


async def test_one_who_sleeps_does_not_let_time_pass_for_another_who_works(clock: ManualClock) -> None:
    """Each holds it for itself."""
    outside = anyio.Event()

    async def work() -> None:
        with clock.held():
            await outside.wait()

    async def sleep() -> None:
        with clock.held():
            await clock.sleep(60.0)

    async with clock.passing(), anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        tasks.start_soon(sleep)
        await settle()
        assert clock.monotonic() == 1000.0
        outside.set()
    assert clock.monotonic() == 1060.0


async def test_released_time_passes_although_work_goes_on(clock: ManualClock) -> None:
    """Which is how work that never ends comes to its limit."""
    with anyio.fail_after(5):
        async with clock.passing(), anyio.create_task_group() as tasks:

            async def work() -> None:
                with clock.held():
                    await anyio.sleep_forever()

            tasks.start_soon(work)
            await settle()
            clock.release()
            await clock.sleep(60.0)
            tasks.cancel_scope.cancel()
    assert clock.monotonic() == 1060.0


async def test_time_passes_until_the_block_is_left_although_it_was_cancelled(clock: ManualClock) -> None:
    """Clean-up that sleeps comes to its end."""
    with anyio.fail_after(5), anyio.CancelScope() as scope:
        async with clock.passing():
            try:
                scope.cancel()
                await anyio.lowlevel.checkpoint()
            finally:
                with anyio.CancelScope(shield=True):
                    await clock.sleep(60.0)
    assert scope.cancelled_caught
    assert clock.monotonic() == 1060.0


async def test_what_the_block_raises_comes_as_it_is(clock: ManualClock) -> None:
    """Not in a group."""
    with pytest.raises(ZeroDivisionError):
        async with clock.passing():
            raise ZeroDivisionError
    assert clock.monotonic() == 1000.0
