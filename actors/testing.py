"""For tests of actors: a clock that only the test moves, a record of what happened, and a way to let all tasks run."""

from dataclasses import dataclass, field
from typing import TypeVar

import anyio
import anyio.lowlevel

from actors.events import Event

E = TypeVar("E", bound=Event)

_TURNS = 20
"""Turns of the event loop before it is asked whether all wait: on asyncio that question costs 0.1 s if they do not."""


async def settle() -> None:
    """Return when every other task waits for something."""
    for _ in range(_TURNS):
        await anyio.lowlevel.checkpoint()
    await anyio.wait_all_tasks_blocked()


class ManualClock:
    """A clock that stands still until ``advance``; sleepers wake in the order of their instants."""

    def __init__(self, monotonic: float = 1000.0, time: float = 1_700_000_000.0) -> None:
        self._now, self._offset = monotonic, time - monotonic
        self._sleepers: list[tuple[float, int, anyio.Event]] = []
        self._serial = 0

    def monotonic(self) -> float:
        return self._now

    def time(self) -> float:
        return self._now + self._offset

    async def sleep(self, delay_s: float) -> None:
        if delay_s <= 0:
            await anyio.lowlevel.checkpoint()
            return
        self._serial += 1
        sleeper = (self._now + delay_s, self._serial, anyio.Event())
        self._sleepers.append(sleeper)
        try:
            await sleeper[2].wait()
        finally:
            if sleeper in self._sleepers:
                self._sleepers.remove(sleeper)

    async def advance(self, by_s: float) -> None:
        """Move time forward, waking each sleeper at its instant and letting the woken run until they wait again."""
        end = self._now + by_s
        await settle()
        while due := [s for s in self._sleepers if s[0] <= end]:
            sleeper = min(due, key=lambda s: s[:2])
            self._sleepers.remove(sleeper)
            self._now = max(self._now, sleeper[0])
            sleeper[2].set()
            await settle()
        self._now = end


@dataclass
class EventLog:
    """An observer that keeps every event, and lets a test wait for one."""

    events: list[Event] = field(default_factory=list)
    _news: anyio.Event | None = None

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        if self._news is not None:
            self._news.set()
            self._news = None

    def of(self, kind: type[E], path_end: str = "") -> list[E]:
        """Return the events of ``kind`` so far whose path ends so, oldest first."""
        return [e for e in self.events if isinstance(e, kind) and e.path.endswith(path_end)]

    async def wait_for(self, kind: type[E], path_end: str = "", *, times: int = 1) -> E:
        """Return the event of ``kind`` whose path ends so, the ``times``-th of them, waiting for it if need be."""
        while len(found := self.of(kind, path_end)) < times:
            self._news = self._news or anyio.Event()
            await self._news.wait()
        return found[times - 1]
