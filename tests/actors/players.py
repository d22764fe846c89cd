"""The actors that these tests let live and die, and the messages that make them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio

from actors import Actor, Child, Down, Intensity, Question, Ref, Restart, Strategy, Supervisor

PATIENCE_S = 20.0
"""A limit for what would otherwise hang; no test waits this long when all is well."""


@dataclass(frozen=True, slots=True)
class Note:
    """Write it down."""

    text: str


@dataclass(frozen=True, slots=True)
class Echo(Question[str]):
    """Write it down and answer with it."""

    text: str


@dataclass(frozen=True, slots=True)
class Fail:
    """Raise this."""

    error: Exception


@dataclass(frozen=True, slots=True)
class Hang:
    """Wait in the handler until ``released``, as no actor should."""

    begun: anyio.Event
    released: anyio.Event


@dataclass(frozen=True, slots=True)
class Do:
    """Call this with the actor."""

    call: Callable[[Any], Any]


Story = list[str]


@dataclass(eq=False)
class Player(Actor):
    """Writes all that happens to it into a story that its siblings share."""

    name: str = "player"
    story: Story = field(default_factory=list)
    on_start_fails: Callable[[], Exception | None] = lambda: None
    on_stop_fails: Exception | None = None

    async def on_start(self) -> None:
        self.story.append(f"{self.name} starts")
        error = self.on_start_fails()
        if error is not None:
            raise error

    async def on_message(self, message: object) -> object:
        match message:
            case Note(text):
                self.story.append(f"{self.name} notes {text}")
            case Echo(text):
                self.story.append(f"{self.name} notes {text}")
                return text
            case Fail(error):
                raise error
            case Hang(begun, released):
                begun.set()
                await released.wait()
                self.story.append(f"{self.name} has waited")
            case Do(call):
                return call(self)
            case Down(ref, error, is_restarting):
                again = ", restarting" if is_restarting else ""
                self.story.append(f"{self.name} sees {ref.name} down: {error!r}{again}")
            case _:
                self.unhandled(message)
        return None

    async def on_stop(self) -> None:
        self.story.append(f"{self.name} stops")
        if self.on_stop_fails is not None:
            raise self.on_stop_fails


def players(names: str, story: Story, restart: Restart = Restart.PERMANENT, *, grace_s: float = 5.0) -> list[Child]:
    """Describe one player for each letter of ``names``."""
    return [Child(name, partial(Player, name, story), restart, grace_s) for name in names]


@dataclass(frozen=True, slots=True)
class StartChild(Question[Ref]):
    """Start this child and answer with its ref."""

    child: Child


@dataclass(frozen=True, slots=True)
class StopChild:
    """Stop the child of that name."""

    name: str


class Troupe(Supervisor):
    """A supervisor that takes orders."""

    def __init__(
        self,
        children: Sequence[Child] = (),
        *,
        strategy: Strategy = Strategy.ONE_FOR_ONE,
        intensity: Intensity = Intensity(),  # noqa: B008  # immutable
    ) -> None:
        super().__init__(children)
        self.strategy, self.intensity = strategy, intensity

    async def on_message(self, message: object) -> object:
        match message:
            case StartChild(child):
                return await self.start_child(child)
            case StopChild(name):
                await self.stop_child(name)
            case Do(call):
                result = call(self)
                return await result if hasattr(result, "__await__") else result
            case _:
                self.unhandled(message)
        return None


def refs(troupe: Ref) -> dict[str, Ref]:
    """Return the living children of a supervisor by name."""
    return {cell.name: cell.ref for cell in troupe._cell._below()}


def failing(*errors: Exception | None) -> Callable[[], Exception | None]:
    """Make an ``on_start_fails`` that goes through ``errors``, one for each incarnation, and then has none."""
    left = list(errors)
    return lambda: left.pop(0) if left else None
