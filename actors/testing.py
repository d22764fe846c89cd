"""For tests of actors: a clock that only the test moves, and a record of what happened."""

from dataclasses import dataclass, field

import anyio
import anyio.lowlevel

from actors.events import Event


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
        while due := [s for s in self._sleepers if s[0] <= end]:
            sleeper = min(due, key=lambda s: s[:2])
            self._sleepers.remove(sleeper)
            self._now = max(self._now, sleeper[0])
            sleeper[2].set()
            await anyio.wait_all_tasks_blocked()
        self._now = end
        await anyio.wait_all_tasks_blocked()


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

    async def wait_for(self, kind: type[Event], path_end: str = "") -> Event:
        """Return the first event of ``kind`` whose path ends so, waiting for it if need be."""
        while True:
            for event in self.events:
                if isinstance(event, kind) and event.path.endswith(path_end):
                    return event
            self._news = anyio.Event()
            await self._news.wait()
