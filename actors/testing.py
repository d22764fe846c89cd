"""For tests of actors: a clock that only the test moves, a record of what happened, and a way to let all tasks run."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from math import inf
from typing import TypeVar

import anyio
import anyio.lowlevel

from actors.events import Event

E = TypeVar("E", bound=Event)

_QUIET_TURNS = 5
"""Turns of asyncio's loop in a row in which nobody can go on, before it is believed: what ends passes that on one
future a turn, and the chains of asyncio and anyio are shorter than this."""

_settling: list[asyncio.Task[object]] = []
"""Tasks inside ``settle``; they do not wait for each other."""


async def settle() -> None:
    """Return when every other task waits for something."""
    if anyio.get_cancelled_exc_class() is not asyncio.CancelledError:  # trio
        await anyio.wait_all_tasks_blocked()
        return
    quiet, task = 0, asyncio.current_task()
    assert task is not None
    _settling.append(task)
    try:
        while quiet < _QUIET_TURNS:  # anyio's own way to wait looks ten times a second
            await anyio.lowlevel.checkpoint()
            quiet = quiet + 1 if _do_all_wait() else 0
    finally:
        _settling.remove(task)


def _do_all_wait() -> bool:
    for task in asyncio.all_tasks():
        waits_for = task._fut_waiter  # type: ignore[attr-defined]  # as anyio.wait_all_tasks_blocked does
        if (waits_for is None or waits_for.done()) and task not in _settling:
            return False
    return True


@dataclass(eq=False)
class _Sleeper:
    wakes_at: float
    wake: Callable[[], object]


@dataclass(eq=False)
class _Hold:
    waiters: int = 0
    """Tasks of the work that wait for time to pass."""


_hold: ContextVar[_Hold | None] = ContextVar("_hold", default=None)
"""Of the work that the current task belongs to."""


class ManualClock:
    """A clock that stands still until ``advance``; sleepers wake in the order of their instants."""

    def __init__(self, monotonic: float = 1000.0, time: float = 1_700_000_000.0) -> None:
        self._now, self._offset = monotonic, time - monotonic
        self._sleepers: list[_Sleeper] = []
        self._holds: list[_Hold] = []
        self._change = anyio.Event()

    def monotonic(self) -> float:
        return self._now

    def time(self) -> float:
        return self._now + self._offset

    async def sleep(self, delay_s: float) -> None:
        if delay_s <= 0:
            await anyio.lowlevel.checkpoint()
            return
        woken = anyio.Event()
        with self._calling(woken.set, delay_s), self.awaited():
            await woken.wait()

    @contextmanager
    def move_on_after(self, delay_s: float) -> Iterator[anyio.CancelScope]:
        """Cancel what the block still does once ``delay_s`` of this clock's time has passed."""
        with anyio.CancelScope() as scope:
            if delay_s <= 0:
                scope.cancel()
            with self._calling(scope.cancel, delay_s):
                yield scope

    async def advance(self, by_s: float) -> None:
        """Move time forward, waking each sleeper at its instant and letting the woken run until they wait again.

        Raises:
            ValueError: that is no length of time.
        """
        if not 0 <= by_s < inf:
            raise ValueError(f"cannot advance the clock: expected seconds from 0 on, found {by_s!r}")
        end = self._now + by_s
        await settle()
        while (sleeper := self._next()) is not None and sleeper.wakes_at <= end:
            self._wake(sleeper)
            await settle()
        self._now = end

    @asynccontextmanager
    async def passing(self) -> AsyncIterator[None]:
        """Have time pass by itself while the block is open: whenever every task waits, it moves to the next sleeper.

        So whatever sleeps on this clock takes no real time. Work whose time is not this clock's keeps it from
        passing with ``held``. Time passes until the block is left, also when that takes long after a cancellation.
        """
        failure: BaseException | None = None
        async with anyio.create_task_group() as tasks:
            scope = anyio.CancelScope(shield=True)
            tasks.start_soon(self._pass, scope)
            try:
                yield
            except BaseException as error:  # raised below, outside the task group, which would wrap it
                failure = error
            scope.cancel()
        if failure is not None:
            raise failure

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep time from passing by itself while the block runs, unless code of the block sleeps on this clock."""
        hold = _Hold()
        self._holds.append(hold)
        before = _hold.get()
        _hold.set(hold)
        try:
            yield
        finally:
            _hold.set(before)
            if hold in self._holds:
                self._holds.remove(hold)
            self._change.set()

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """Let time pass although the block is inside one of ``held``: it waits for something that takes time."""
        hold = _hold.get()
        if hold is not None:
            hold.waiters += 1
        self._change.set()
        try:
            yield
        finally:
            if hold is not None:
                hold.waiters -= 1

    def release(self) -> None:
        """Let time pass whatever is ``held`` now."""
        self._holds.clear()
        self._change.set()

    @contextmanager
    def _calling(self, wake: Callable[[], object], delay_s: float) -> Iterator[None]:
        """Have ``wake`` called once ``delay_s`` has passed, if the block is not left before."""
        sleeper = _Sleeper(self._now + delay_s, wake)
        self._sleepers.append(sleeper)
        self._change.set()
        try:
            yield
        finally:
            if sleeper in self._sleepers:
                self._sleepers.remove(sleeper)

    async def _pass(self, scope: anyio.CancelScope) -> None:
        with scope:
            while True:
                await settle()
                sleeper = self._next()
                if sleeper is None or any(not hold.waiters for hold in self._holds):
                    self._change = anyio.Event()
                    await self._change.wait()
                else:
                    self._wake(sleeper)

    def _next(self) -> _Sleeper | None:
        return min(self._sleepers, key=lambda sleeper: sleeper.wakes_at, default=None)  # the first of equals

    def _wake(self, sleeper: _Sleeper) -> None:
        self._sleepers.remove(sleeper)
        self._now = max(self._now, sleeper.wakes_at)
        sleeper.wake()


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
