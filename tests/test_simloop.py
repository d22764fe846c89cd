"""The loop on virtual time: what a frozen clock does to timers, and which errors it does not let pass."""

import asyncio
from contextvars import copy_context

from tests.simloop import WORKER, sim_loop, simulated


@simulated
async def test_timer_of_a_machine_that_was_frozen_twice_rings_as_much_later() -> None:
    """Once before it was due, and once while it was."""
    loop, rung_s = sim_loop(), list[float]()
    context = copy_context()
    context.run(WORKER.set, "w")
    loop.call_later(10.0, lambda: rung_s.append(loop.time()), context=context)
    for frozen_at_s, for_s in ((5.0, 3.0), (12.0, 4.0)):
        await asyncio.sleep(frozen_at_s - loop.time())
        loop.pause("w")
        await asyncio.sleep(for_s)
        loop.postpone("w", for_s)
        loop.resume("w")
    await asyncio.sleep(10.0)
    assert rung_s == [17.0]


@simulated
async def test_error_that_nobody_asks_for_is_told() -> None:
    """The collector would tell of it at some time, or never."""

    async def fail() -> None:
        raise ValueError("x")

    async def ask() -> None:
        await asyncio.gather(asyncio.create_task(fail()), return_exceptions=True)

    forgotten = asyncio.create_task(fail(), name="forgotten")
    await ask()
    assert forgotten.done()
    assert sim_loop().unheard() == ["None: forgotten: ValueError('x')"]
