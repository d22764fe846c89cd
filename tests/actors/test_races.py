"""Cancel an actor, a task of its or its asker at any moment: nothing accepted is lost and no failure goes unseen.

Ten thousand seeded races of each kind of cancel, all in one tree. A race tells a few messages, starts a task, asks a
question, cancels its victim after a random number of turns of the event loop, and then counts.
"""

import asyncio
import gc
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random

import anyio
import anyio.lowlevel
import pytest

from actors import Actor, Child, Ended, Intensity, KilledError, OwnedTask, Question, Ref, Restarting, Started, running
from actors.testing import EventLog
from tests.actors.players import PATIENCE_S, Troupe, refs

pytestmark = pytest.mark.anyio

RACES = {"asyncio": 10_000, "trio": 2_500}
"""Trio knows one kind of cancel only; a quarter shows that it is the same there."""
TURNS = 4
"""A handler, a task and a victim's remaining life each take up to so many turns of the loop."""
ENDLESS = Intensity(restarts=1, within_s=-1.0)
"""A window that no restart falls into."""


@dataclass(frozen=True, slots=True)
class Mark(Question[int]):
    """Be handled."""

    number: int


@dataclass(frozen=True, slots=True)
class Work:
    """Run the task of this race."""

    race: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """The task of this race has ended."""

    race: int


class Race:
    """What the actor, its tasks and its askers write down for the judge."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.number = 0
        self.handled: Counter[int] = Counter()
        self.outcomes: Counter[int] = Counter()
        """Of each race, since a task may outlive its own: nobody waits for one that an ended actor has begun anew."""
        self.owned: OwnedTask | None = None

    def begin_next(self) -> None:
        self.number += 1
        self.handled.clear()
        self.owned = None

    async def some_turns(self) -> None:
        for _ in range(self.random.randrange(TURNS)):
            await anyio.lowlevel.checkpoint()


class Runner(Actor):
    """Handles what it is told, in its own time."""

    def __init__(self, race: Race) -> None:
        self.race = race

    async def on_start(self) -> None:
        await self.race.some_turns()

    async def on_message(self, message: object) -> object:
        match message:
            case Mark(number):
                await self.race.some_turns()
                self.race.handled[number] += 1
                return number
            case Work(race):
                outcome = Outcome(race)
                self.race.owned = self.run_task(self.race.some_turns, done=lambda _: outcome, failed=lambda _: outcome)
            case Outcome(race):
                self.race.outcomes[race] += 1
            case _:
                self.unhandled(message)
        return None

    async def on_stop(self) -> None:
        await self.race.some_turns()


class Asker:
    """Asks one question, from a task of its own, and says how that ended."""

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        self.task: asyncio.Task[object] | None = None
        self.result: object = None

    async def ask(self, ref: Ref, number: int, use_task: bool) -> None:
        self.task = asyncio.current_task() if use_task else None
        try:
            with self.scope:
                self.result = await ref.ask(Mark(number), timeout_s=PATIENCE_S)
        except asyncio.CancelledError:
            self.result = "cancelled"
        if self.scope.cancelled_caught:
            self.result = "cancelled"


def cancel_scope_of(victim: str, race: Race, ref: Ref, asker: Asker) -> None:
    """Cancel by scope, as the runtime itself and its users do."""
    match victim:
        case "actor":
            ref._cell.kill("a race")
        case "owned" if race.owned is not None:
            race.owned.cancel()
        case "asker":
            asker.scope.cancel()


def cancel_task_of(victim: str, race: Race, ref: Ref, asker: Asker) -> None:
    """Cancel by ``Task.cancel()``, of which no scope knows."""
    if victim == "asker":
        if asker.task is not None:
            asker.task.cancel()
        return
    name = ref.path if victim == "actor" else f"{ref.path} task"
    for task in asyncio.all_tasks():
        if task.get_name() == name:
            task.cancel()


Cancel = Callable[[str, Race, Ref, Asker], None]


async def run_race(race: Race, ref: Ref, log: EventLog, cancel: Cancel) -> str:
    """Run one race and judge it; return who was the victim."""
    victim = race.random.choice(["actor", "owned", "asker"])
    race.begin_next()
    log.events.clear()
    asker = Asker()
    numbers = range(race.random.randrange(1, 3))
    async with anyio.create_task_group() as tasks:
        ref.tell(Work(race.number))
        for number in numbers:
            ref.tell(Mark(number))
            await race.some_turns()
        tasks.start_soon(asker.ask, ref, len(numbers), cancel is cancel_task_of)
        await race.some_turns()
        cancel(victim, race, ref, asker)
    assert await ref.ask(Mark(-1), timeout_s=PATIENCE_S) == -1
    if victim == "actor":
        await log.wait_for(Started)

    ends, restarts = log.of(Ended), log.of(Restarting)
    assert all(race.handled[number] == 1 for number in [*numbers, -1]), "each message is handled, and once"
    assert asker.result == len(numbers) or (victim == "asker" and asker.result == "cancelled")
    assert len(ends) == len(restarts) <= 1, "one failure, one report, one restart"
    assert all(isinstance(e.error, KilledError) for e in ends)
    assert len(ends) == 1 if victim == "actor" else not ends or victim == "owned"
    while not (ends or race.outcomes[race.number] or (race.owned and race.owned.is_cancelled)):
        await anyio.lowlevel.checkpoint()
    return victim


async def run_races(cancel: Cancel, races: int) -> None:
    """Run all races in one tree."""
    race, log = Race(seed=85), EventLog()
    victims: Counter[str] = Counter()
    ends = 0
    troupe = partial(Troupe, [Child("a", partial(Runner, race))], intensity=ENDLESS)
    async with running(troupe, observer=log) as root:
        ref = refs(root.ref)["a"]
        for _ in range(races):
            victims[await run_race(race, ref, log, cancel)] += 1
            ends += len(log.of(Ended))
        assert len(ref.tree().children) == 0
        assert ref.tree().mailbox == 0
        assert ref.tree().restarts == ends
    assert set(race.outcomes.values()) == {1}, "each task has one outcome"
    assert sum(victims.values()) == races
    assert min(victims.values()) > races / 4, "each victim has had its share"
    assert ends > races / 4, "the cancels have hit"


async def test_no_message_is_lost_and_no_failure_unseen_when_scopes_are_cancelled(anyio_backend: str) -> None:
    """Killed actors, cancelled tasks, askers that give up."""
    await run_races(cancel_scope_of, RACES[anyio_backend])


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")  # cancelled before the first step
async def test_no_message_is_lost_and_no_failure_unseen_when_tasks_are_cancelled(anyio_backend: str) -> None:
    """The same for ``Task.cancel()``, which reaches into every await."""
    await run_races(cancel_task_of, RACES[anyio_backend])
    gc.collect()  # what was never awaited is warned of here
