"""An asyncio loop on virtual time: nothing waits, order is decided by a seed, and workers can be crashed or paused.

When no callback is ready the clock jumps to the next timer, so an hour of a quiet fleet costs as much as its events.
Sockets, threads and signals are errors here. Which worker a callback belongs to is told by ``WORKER``, which tasks and
timers inherit. Seconds are virtual and begin at 0.
"""

import asyncio
import contextvars
import functools
import heapq
import math
import random
from collections import deque
from collections.abc import Callable, Coroutine
from itertools import count
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from anyio._core._eventloop import set_current_async_library

T = TypeVar("T")
P = ParamSpec("P")

WORKER: contextvars.ContextVar[str | None] = contextvars.ContextVar("WORKER", default=None)
"""Whose code runs; None is the test's own and the service's."""
LIVELOCK = 20_000
"""Rounds without any time passing after which something is taken to turn in circles."""
_ROOT = f"{Path(__file__).parents[1]}/"

_kept: "list[SimTask]" = []
"""Tasks that a crash has left behind, for the rest of the process."""


class DeadlockError(RuntimeError):
    """Nothing is ready and nothing is scheduled."""


class LivelockError(RuntimeError):
    """Callbacks keep each other busy and time stands still."""


class SimTask(asyncio.Task[Any]):
    """A task whose hash is its number: sets of tasks, which anyio keeps, then have the same order in every run."""

    def __init__(self, coro: Coroutine[Any, Any, Any], *, loop: "SimLoop", **more: Any) -> None:
        self.number = len(loop.tasks)
        self.maker = asyncio.current_task(loop) if loop.is_running() else None
        self.context = more.get("context") or contextvars.copy_context()
        loop.tasks.append(self)
        super().__init__(coro, loop=loop, **more)

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        return self is other

    @property
    def place(self) -> str:
        """Its name; that of the task which made it, if it was given none."""
        own = self.get_name()
        has_none = own.startswith("Task-") or own == "None"  # the latter from Python 3.13.0
        return self.maker.place if has_none and isinstance(self.maker, SimTask) else own

    @property
    def worker(self) -> str | None:
        return self.context.get(WORKER)


class SimLoop(asyncio.BaseEventLoop):
    """The loop.

    Args:
        seed: decides in which order tasks that are ready run.
    """

    _ready: deque[Any]
    _stopping: bool
    _idle_rounds = 0

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self._now, self._random = 0.0, random.Random(seed)
        self._clock_resolution = 1e-9
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._timer_numbers = count()
        self._dead: dict[str, list[Any]] = {}
        self._parked: dict[str, list[Any]] = {}
        self.tasks: list[SimTask] = []
        self.before_step: Callable[[SimTask], None] | None = None
        """Called before each step of a worker's task; may crash or cancel."""
        self.steps = 0
        self.most_steps: float = math.inf
        """After so many something is taken to turn in circles, although time goes on."""
        self.set_task_factory(lambda loop, coro, **more: SimTask(coro, loop=self, **more))

    def time(self) -> float:
        return self._now

    def crash(self, worker: str) -> None:
        """Never run anything of ``worker`` again, not even clean-up."""
        self._dead.setdefault(worker, [])

    def pause(self, worker: str) -> None:
        """Run nothing of ``worker`` until ``resume``; time goes on."""
        self._parked.setdefault(worker, [])

    def resume(self, worker: str) -> None:
        """Run what has become due meanwhile."""
        self._ready.extend(self._parked.pop(worker))

    def postpone(self, worker: str, by_s: float) -> None:
        """Let the timers of ``worker`` ring so much later: its clock stood still for as long."""
        rung = [handle for handle in self._parked.get(worker, ()) if isinstance(handle, asyncio.TimerHandle)]
        for timer in rung:
            self._parked[worker].remove(timer)
            self._timers.append((timer.when(), next(self._timer_numbers), timer))
        for place, (when, number, timer) in enumerate(self._timers):
            if timer._context.get(WORKER) == worker:  # type: ignore[attr-defined]
                self._timers[place] = (when + by_s, number, timer)
                timer._when = when + by_s  # type: ignore[attr-defined]  # asked for if it rings in the next such while
        heapq.heapify(self._timers)

    def is_dead(self, worker: str) -> bool:
        return worker in self._dead

    def left(self) -> list[SimTask]:
        """Return the tasks that have not ended, but for those of crashed workers and of the caller."""
        current = asyncio.current_task(self)
        return [t for t in self.tasks if not t.done() and t is not current and t.worker not in self._dead]

    def unheard(self) -> list[str]:
        """Name the errors of tasks that nobody has asked for, and never will; those of crashed workers do not count."""
        found = []
        for task in self.tasks:
            if task.done() and task._log_traceback:
                task._log_traceback = False  # else the collector tells of it, some time
                if task.worker not in self._dead:
                    found.append(f"{task.worker}: {task.place}: {task.exception()!r}")
        return found

    # --- what BaseEventLoop has, without its checks, and with timers that C can compare --------------------------

    def call_soon(  # type: ignore[override]  # what it takes is the base's business
        self, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_at(  # type: ignore[override]  # as above
        self, when: float, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._timer_numbers), timer))
        return timer

    def call_later(  # type: ignore[override]  # as above
        self, delay: float, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    # --- what BaseEventLoop asks of its subclass ---------------------------------------------------------------

    def _run_once(self) -> None:
        self._wake_what_is_due()
        batch = list(self._ready)
        self._ready.clear()
        if len(batch) > 1:
            batch = self._in_order(batch)
        for handle in batch:
            if not handle.cancelled() and self._may_run(handle):
                self.steps += 1
                handle._run()

    def _wake_what_is_due(self) -> None:
        timers = self._timers
        self._idle_rounds = self._idle_rounds + 1 if self._ready else 0
        if self.steps > self.most_steps:
            raise LivelockError(f"more than {self.most_steps:g} steps were taken by {self._now:g} s")
        if self._idle_rounds > LIVELOCK:
            raise LivelockError(f"time stands still at {self._now:g} s: {list(self._ready)[:3]}")
        while not self._ready:
            if not timers:
                if self._stopping:
                    return
                raise DeadlockError(f"nothing can happen any more at {self._now:g} s")
            self._now = max(self._now, timers[0][0])
            while timers and timers[0][0] <= self._now:
                timer = heapq.heappop(timers)[2]
                if not timer.cancelled():
                    self._ready.append(timer)

    def _in_order(self, batch: list[Any]) -> list[Any]:
        """Plain callbacks as they came, then tasks by their number, shuffled by the seed."""
        callbacks: list[Any] = []
        numbered: list[tuple[int, int, Any]] = []
        for handle in batch:
            task = _task_of(handle)
            if task is None:
                callbacks.append(handle)
            else:
                numbered.append((task.number, len(numbered), handle))
        if len(numbered) > 1:
            numbered.sort()
            self._random.shuffle(numbered)
        return callbacks + [step[2] for step in numbered]

    def _may_run(self, handle: Any) -> bool:
        worker = handle._context.get(WORKER)
        if worker is None:
            return True
        task = _task_of(handle)
        if task is not None and self.before_step is not None and worker not in self._dead:
            self.before_step(task)
        for shelf in (self._dead, self._parked):
            if worker in shelf:
                shelf[worker].append(handle)
                return False
        return True

    def _process_events(self, event_list: object) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nobody sleeps in a selector."""

    def call_soon_threadsafe(  # type: ignore[override]  # there are no threads
        self, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]  # for nobody
        raise RuntimeError("cannot use a thread in the simulation: expected virtual time only")

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """There is none."""

    # --- the end -----------------------------------------------------------------------------------------------

    def bury(self) -> None:
        """Close the loop; what will never be resumed is kept, since collecting it would run its clean-up."""
        self.close()
        for task in self.tasks:
            asyncio.tasks._unregister_task(task)  # else asyncio.all_tasks() walks over what is kept, for ever
            if not task.done():
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                _kept.append(task)
        self.tasks.clear()


def _task_of(handle: Any) -> SimTask | None:
    task = getattr(handle._callback, "__self__", None)
    return task if isinstance(task, SimTask) else None


def run(main: Callable[[], Coroutine[Any, Any, T]], *, seed: int = 0) -> T:
    """Run ``main`` to its end on a loop of its own."""
    loop = SimLoop(seed)
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(_known_to_anyio(main))
    finally:
        asyncio.set_event_loop(None)
        loop.bury()


async def _known_to_anyio(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Spare anyio to find out with each of its calls on which kind of loop it is."""
    set_current_async_library("asyncio")
    return await main()


def simulated(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Make an async test run on virtual time."""

    @functools.wraps(test)
    def run_test(*args: P.args, **kwargs: P.kwargs) -> None:
        run(lambda: test(*args, **kwargs))

    return run_test


def sim_loop() -> SimLoop:
    """Return the running loop."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimLoop)
    return loop


def await_point(task: SimTask) -> str:
    """Name where ``task`` waits: file and line of its suspended frames in this project, outermost first."""
    places: list[str] = []
    awaited: Any = task.get_coro()
    while awaited is not None:
        frame = getattr(awaited, "cr_frame", None) or getattr(awaited, "gi_frame", None)
        places += [] if frame is None else _place(frame)
        awaited = getattr(awaited, "cr_await", None) or getattr(awaited, "gi_yieldfrom", None)
    return " > ".join(places)


def _place(frame: Any) -> list[str]:
    path = frame.f_code.co_filename.removeprefix(_ROOT)
    return [f"{path}:{frame.f_lineno}"] if path.startswith(("actors/", "kcl_py/", "tests/")) else []
