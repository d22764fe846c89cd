"""One simulated life from its plan to the verdict, and how often what happened in it."""

import asyncio
import gc
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import structlog

from kcl_py.leases import wide
from tests import simloop
from tests.sim.checker import broken
from tests.sim.history import History
from tests.sim.plan import Plan, plan
from tests.sim.world import World


class Result(msgspec.Struct):
    """How a life went."""

    seed: int
    broken: list[str]
    """What broke which law, as ``law: what``; none in a good life."""
    counts: dict[str, int]
    lines: list[bytes]
    """Its history; kept only where asked for or needed."""
    cpu_s: float
    virtual_s: float
    steps: int

    @property
    def laws(self) -> set[str]:
        """Names of the broken laws."""
        return {text.partition(":")[0] for text in self.broken}


def live(plan: Plan, *, keeps_log: bool = False) -> Result:
    """Live ``plan`` and judge what happened; with its log, the workers' own events are in the history too.

    The rubbish of a life is cheaper to collect afterwards.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return _live(plan, keeps_log)
    finally:
        if collects:
            gc.enable()


def _live(plan: Plan, keeps_log: bool) -> Result:
    began_s = time.process_time()
    life = _Life(plan, keeps_log)
    life.live()
    lines = life.history.lines
    faults = life.errors + _judged(lines)
    return Result(
        plan.seed,
        faults,
        dict(life.counts()),
        lines if faults or keeps_log else [],
        time.process_time() - began_s,
        round(life.virtual_s, 3),
        life.steps,
    )


def _judged(lines: list[bytes]) -> list[str]:
    try:
        return broken(lines)
    except Exception as error:  # of a life so bad that even its laws cannot be asked
        return [f"the checker ended with {type(error).__name__}: {error}"]


def lives(seeds: Iterable[int]) -> list[Result]:
    """Live the plans of ``seeds``, one after the other."""
    results = [live(plan(seed)) for seed in seeds]
    gc.collect()
    return results


@contextmanager
def _large_tables(*, is_any: bool) -> Iterator[None]:
    """Let any table count as large, and be read as a whole each ten to sixty seconds."""
    before = wide.LARGE, wide.ROWS_A_SECOND
    if is_any:
        wide.LARGE, wide.ROWS_A_SECOND = 0, 0.1
    try:
        yield
    finally:
        wide.LARGE, wide.ROWS_A_SECOND = before


class _Life:
    """A life while it lasts."""

    def __init__(self, plan: Plan, keeps_log: bool) -> None:
        self._plan, self._keeps_log = plan, keeps_log
        self._logged: Counter[str] = Counter()
        self._world: World | None = None
        self.errors: list[str] = []
        self.virtual_s, self.steps = 0.0, 0

    def live(self) -> None:
        structlog.configure(processors=[self._on_event])
        try:
            with _large_tables(is_any=self._plan.wide):
                simloop.run(self._main, seed=self._plan.seed)
        except (simloop.LivelockError, simloop.DeadlockError) as error:
            self.history.note("spins", text=str(error))
        except Exception as error:  # whatever it is, this life is a bad one
            self.errors.append(f"the simulation ended with {type(error).__name__}: {error}")
        finally:
            structlog.reset_defaults()

    async def _main(self) -> None:
        loop = simloop.sim_loop()
        loop.set_exception_handler(self._on_error)
        self.history = History(loop.time)
        strategy = self._plan.options["leases"].get("strategy", "count")
        self.history.note(
            "life", seed=self._plan.seed, failover_s=self._plan.failover_s, strategy=strategy, form=self._plan.form.kind
        )
        self._world = World(self._plan, self.history)
        try:
            await self._world.live()
        finally:
            self.errors += [f"nobody heard of an error: {unheard}" for unheard in loop.unheard()]
            self.virtual_s, self.steps = loop.time(), loop.steps

    def counts(self) -> Counter[str]:
        """Return how often what happened."""
        happened = Counter() if self._world is None else self._world.happened()
        return Counter(self.history.counts) + self._logged + happened

    def _on_event(self, logger: object, method: str, event: Any) -> Any:
        name = event["event"]
        self._logged[f"{name} {event['why']}" if "why" in event else name] += 1
        if self._keeps_log:
            worker = simloop.WORKER.get()
            self.history.note("log", w=worker, level=method, **{key: _plain(value) for key, value in event.items()})
        raise structlog.DropEvent

    def _on_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.errors.append(f"the loop was told of an error: {context.get('message')}: {context.get('exception')!r}")


def _plain(value: object) -> object:
    return value if isinstance(value, str | int | float | bool | None) else str(value)
