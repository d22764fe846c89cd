"""Whole trees under everything at once: crashes, stops, restarts, kills and native cancels of any task of the tree.

What must hold whatever happens: the tree stops, nothing of it is left running, and each message that was accepted was
either handled, once, or reported as dropped when its actor ended for good.
"""

import asyncio
import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from actors import (
    Actor,
    Child,
    Ended,
    Intensity,
    KilledError,
    MailboxFullError,
    MessagesDropped,
    Ref,
    Restart,
    Started,
    Strategy,
    Supervisor,
    running,
)
from actors.testing import EventLog
from tests.actors.players import PATIENCE_S, refs

pytestmark = pytest.mark.anyio

LIVES = {"asyncio": 250, "trio": 100}
BLOWS = 30
"""How often each tree is told something, and perhaps struck."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Be handled, or fail."""

    number: int


@dataclass(frozen=True, slots=True)
class Order:
    """Start or stop a child."""

    name: str
    is_start: bool


class World:
    """Chance, and what it has led to."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.accepted = 0
        self.handled: Counter[int] = Counter()
        self.has_begun = False

    async def some_turns(self) -> None:
        for _ in range(self.random.randrange(4)):
            await anyio.lowlevel.checkpoint()

    def stumble(self, chance: float) -> None:
        if self.has_begun and self.random.random() < chance:
            raise ValueError("stumbled")

    def child(self, name: str) -> Child:
        return Child(name, lambda: Walker(self), self.random.choice(list(Restart)), grace_s=0.2)


class Walker(Actor):
    """Stumbles in every hook, message and task now and then."""

    capacity = 8

    def __init__(self, world: World) -> None:
        self.world = world

    async def on_start(self) -> None:
        await self.world.some_turns()
        self.world.stumble(0.05)

    async def on_message(self, message: object) -> None:
        if not isinstance(message, Mark):
            return
        await self.world.some_turns()
        self.world.handled[message.number] += 1
        self.world.stumble(0.05)
        match self.world.random.randrange(10):
            case 0:
                self.run_task(self.work)
            case 1:
                self.run_task(self.work, done=str, failed=str)
            case 2:
                self.send_after(0.0, "tick")

    async def work(self) -> None:
        await self.world.some_turns()
        self.world.stumble(0.3)

    async def on_stop(self) -> None:
        await self.world.some_turns()
        self.world.stumble(0.05)


class Inner(Supervisor):
    """Has rules that chance has chosen."""

    def __init__(self, world: World, strategy: Strategy, restarts: int) -> None:
        super().__init__([world.child(name) for name in "abc"])
        self.strategy, self.intensity, self.world = strategy, Intensity(restarts, within_s=1e9), world

    async def on_message(self, message: object) -> None:
        match message:
            case Order(name, is_start=True) if self.child(name) is None:
                with suppress(ValueError, KilledError):
                    await self.start_child(self.world.child(name))
            case Order(name, is_start=False):
                await self.stop_child(name)


class Outer(Supervisor):
    """Never gives up."""

    intensity = Intensity(restarts=1_000_000)


def walkers(root: Ref) -> list[Ref]:
    return [ref for below in refs(root).values() for ref in [*refs(below).values(), below] if ref.name != "inner"]


def tell_some(world: World, root: Ref) -> None:
    for walker in world.random.sample(walkers(root), min(2, len(walkers(root)))):
        with suppress(MailboxFullError):
            world.accepted += walker.tell(Mark(world.accepted))


def strike(world: World, root: Ref, *, is_asyncio: bool) -> None:
    inner = refs(root).get("inner")
    targets = walkers(root)
    match world.random.randrange(10):
        case 0 | 1 if inner is not None:
            with suppress(MailboxFullError):
                inner.tell(Order(world.random.choice("abcd"), world.random.random() < 0.5))
        case 2 if targets:
            world.random.choice(targets).stop()
        case 3 if targets:
            world.random.choice(targets)._cell.kill("chaos")
        case 4 if inner is not None:
            inner._cell.kill("chaos")
        case 5 | 6 | 7 if is_asyncio:
            cancel_some(world.random)


def cancel_some(random: Random) -> None:
    tasks = [t for t in asyncio.all_tasks() if t.get_name().startswith("root/")]
    tasks.sort(key=lambda task: task.get_name())
    for task in random.sample(tasks, min(len(tasks), random.choice([1, 1, 2]))):
        task.cancel()


async def live(seed: int, *, is_asyncio: bool) -> EventLog:
    """Live the life of one tree, and judge it."""
    world, log = World(seed), EventLog()
    strategy, restarts = world.random.choice(list(Strategy)), world.random.choice([0, 1, 3, 1_000_000])
    children = [Child("inner", lambda: Inner(world, strategy, restarts), grace_s=0.3), world.child("x")]
    with anyio.fail_after(PATIENCE_S), suppress(KilledError):  # of the root: a child cancelled before its first step
        async with running(lambda: Outer(children), observer=log, grace_s=1.0) as root:
            world.has_begun = True
            for _ in range(BLOWS):
                tell_some(world, root.ref)
                strike(world, root.ref, is_asyncio=is_asyncio)
                await world.some_turns()
    judge(world, log)
    return log


def judge(world: World, log: EventLog) -> None:
    dropped = sum(e.count for e in log.of(MessagesDropped) if e.path not in ("root", "root/inner"))
    assert set(world.handled.values()) <= {1}, "no message is handled twice"
    assert len(world.handled) + dropped == world.accepted, "no message is lost"
    lives: Counter[str] = Counter()
    for event in log.events:
        if isinstance(event, Started):
            lives[event.path] += 1
        elif isinstance(event, Ended):
            lives[event.path] = 0
        assert lives[event.path] <= 1, "no actor lives twice at a time"
    assert not any(lives.values()), "whatever has started has ended"


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """Have the coroutines that never ran collected, and warned of, within their own test."""
    yield
    gc.collect()


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")  # cancelled before the first step
async def test_a_tree_stops_and_loses_nothing_whatever_happens_to_it(anyio_backend: str) -> None:
    """Seed by seed; a failure names its seed."""
    is_asyncio = anyio_backend == "asyncio"
    kinds: Counter[Any] = Counter()
    for seed in range(LIVES[anyio_backend]):
        try:
            log = await live(seed, is_asyncio=is_asyncio)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        kinds.update(type(event) for event in log.events)
        kinds.update(type(event.error) for event in log.of(Ended))
        if is_asyncio:
            left = [task for task in asyncio.all_tasks() if task.get_name().startswith("root")]
            assert not left, f"seed {seed}: nothing is left running"
    assert kinds[KilledError] > LIVES[anyio_backend]
    assert kinds[ValueError] > LIVES[anyio_backend] / 2
