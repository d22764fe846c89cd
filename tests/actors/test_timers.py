"""Timers: on a clock that can call back, which is asyncio's way, and on one where a task has to sleep."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import anyio
import pytest

from actors import Child, Clock, Ended, SystemClock, Timer, running
from actors.testing import EventLog, ManualClock, settle
from tests.actors.players import PATIENCE_S, Do, Echo, Fail, Hang, Note, Player, Story, Troupe, refs
from tests.simclock import SimClock
from tests.simloop import run, sim_loop

pytestmark = pytest.mark.anyio

Advance = Callable[[float], Awaitable[None]]
Scene = Callable[[Clock, Advance], Coroutine[Any, Any, None]]


SCENES: list[Scene] = []


def timed(scene: Scene) -> Scene:
    """Mark what is played on both kinds of clock."""
    SCENES.append(scene)
    return scene


@timed
async def a_timer_fires_at_its_instant_and_not_before(clock: Clock, advance: Advance) -> None:
    """In seconds of the injected clock."""
    story: Story = []
    async with running(lambda: Player(story=story), clock=clock) as root:
        root.ref.tell(Do(lambda player: [player.send_after(s, Note(f"{s:g}")) for s in (2.0, 1.0)]))
        await advance(0.9)
        assert story == ["player starts"]
        await advance(0.2)
        assert story == ["player starts", "player notes 1"]
        await advance(1.0)
        assert story == ["player starts", "player notes 1", "player notes 2"]


@timed
async def a_cancelled_timer_does_not_fire(clock: Clock, advance: Advance) -> None:
    """To cancel twice is to cancel once."""
    story: Story = []
    async with running(lambda: Player(story=story), clock=clock) as root:
        timer: Timer = await root.ref.ask(Do(lambda p: p.send_after(1.0, Note("a"))), timeout_s=PATIENCE_S)
        timer.cancel()
        timer.cancel()
        assert timer.is_cancelled
        await advance(2.0)
    assert story == ["player starts", "player stops"]


@timed
async def a_timer_cancelled_after_it_fired_is_void_when_its_message_still_waits(clock: Clock, advance: Advance) -> None:
    """Whoever cancels a timer need not expect it any more."""
    story: Story = []
    begun, released = anyio.Event(), anyio.Event()
    async with running(lambda: Player(story=story), clock=clock) as root:
        timer: Timer = await root.ref.ask(Do(lambda p: p.send_after(1.0, Note("void"))), timeout_s=PATIENCE_S)
        root.ref.tell(Hang(begun, released))
        await begun.wait()
        await advance(1.0)
        assert root.tree().mailbox == 2
        timer.cancel()
        released.set()
        await root.ref.ask(Echo("next"), timeout_s=PATIENCE_S)
        assert root.tree().mailbox == 0
    assert story[1:-1] == ["player has waited", "player notes next"]


@timed
async def a_timer_ends_with_the_incarnation_that_started_it(clock: Clock, advance: Advance) -> None:
    """The next one is not haunted, neither by one that runs nor by one that has fired."""
    story: Story = []
    begun, released = anyio.Event(), anyio.Event()
    async with running(lambda: Troupe([Child("a", lambda: Player("a", story))]), clock=clock) as root:
        a = refs(root.ref)["a"]
        a.tell(Do(lambda p: [p.send_after(s, Note(f"{s:g}")) for s in (1.0, 5.0)]))
        a.tell(Hang(begun, released))
        a.tell(Fail(ValueError("boom")))
        await begun.wait()
        await advance(1.0)
        assert a.tree().mailbox == 3  # the message in hand, the failure, and what has fired
        released.set()
        await settle()
        await advance(10.0)
    assert story == ["a starts", "a has waited", "a stops", "a starts", "a stops"]


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_on_asyncio(scene: Scene) -> None:
    """As calls of the event loop."""
    run(lambda: scene(SimClock(sim_loop()), asyncio.sleep))


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
async def test_with_a_clock_that_can_only_sleep(scene: Scene) -> None:
    """As tasks."""
    clock = ManualClock()
    await scene(clock, clock.advance)


async def test_the_machines_clock_rings_on_either_loop(log: EventLog) -> None:
    """Trio cannot call back: there the timer is a task."""
    rung = anyio.Event()
    async with running(Player, clock=SystemClock(), observer=log) as root:
        root.ref.tell(Do(lambda player: player.send_after(0.001, Do(lambda _: rung.set()))))
        with anyio.fail_after(PATIENCE_S):
            await rung.wait()


@pytest.mark.parametrize("delay_s", [0.0, -1.0, float("-inf")])
async def test_a_timer_of_no_time_or_less_rings_on_either_loop(delay_s: float) -> None:
    """As one does that was computed a moment too late."""
    rung = anyio.Event()
    async with running(Player, clock=SystemClock()) as root:
        root.ref.tell(Do(lambda player: player.send_after(delay_s, Do(lambda _: rung.set()))))
        with anyio.fail_after(PATIENCE_S):
            await rung.wait()


async def test_a_time_that_is_no_number_is_refused_where_it_is_asked_for() -> None:
    """On either loop; asyncio's would take it, and wake others late."""
    async with running(Player, clock=SystemClock()) as root:
        with pytest.raises(ValueError, match="cannot start a timer in 'root': expected seconds, found nan"):
            await root.ref.ask(Do(lambda player: player.send_after(float("nan"), Note("never"))), timeout_s=PATIENCE_S)


async def test_a_clock_may_ring_at_once() -> None:
    """Nothing is kept of such a timer."""

    class Hasty(SystemClock):
        def call_later(self, delay_s: float, call: Callable[[], object]) -> Callable[[], object]:
            call()
            return lambda: None

    async with running(Player, clock=Hasty()) as root:
        await root.ref.ask(Do(lambda player: player.send_after(1.0, Note("now"))), timeout_s=PATIENCE_S)
        assert await root.ref.ask(Do(lambda player: len(player._cell.timers)), timeout_s=PATIENCE_S) == 0


async def test_a_clock_that_cannot_ring_fails_where_it_is_asked() -> None:
    """And the actor ends in order."""

    class Broken(SystemClock):
        def call_later(self, delay_s: float, call: Callable[[], object]) -> Callable[[], object]:
            raise OSError("no timers left")

    log = EventLog()
    async with running(Player, clock=Broken(), observer=log) as root:
        with pytest.raises(OSError, match="no timers left"):
            await root.ref.ask(Do(lambda player: player.send_after(1.0, Note("never"))), timeout_s=PATIENCE_S)
    assert [ended.error for ended in log.of(Ended)] == [None]


def test_a_timer_that_nobody_waits_for_any_more_is_gone_from_the_loop() -> None:
    """A worker that restarts its actors for weeks keeps nothing of them."""

    async def scene() -> None:
        loop = sim_loop()
        async with running(Player, clock=SimClock(loop)) as root:
            await root.ref.ask(Do(lambda player: player.send_after(3600.0, Note("late"))), timeout_s=PATIENCE_S)
            assert not any(task.get_name().endswith(" task") for task in asyncio.all_tasks())
        assert [timer for when, _, timer in loop._timers if not timer.cancelled() and when >= 3600.0] == []

    run(scene)


async def test_an_actor_that_is_not_running_can_start_none() -> None:
    """It would never be told."""
    player = Player()
    async with running(lambda: player) as root:
        await root.ref.status(timeout_s=PATIENCE_S)
    with pytest.raises(RuntimeError, match=r"cannot start a timer.*expected a running actor, found it stopped"):
        player.send_after(1.0, Note("never"))
