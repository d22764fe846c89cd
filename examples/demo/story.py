"""What happens in the demo, in order; its figures are made afterwards, from the files that it leaves.

A local AWS, a Spark query, two workers; the flights are put at a steady pace. On the way one shard is split, one worker
is killed, and so is Spark's driver, which is started again. It ends when all that was put has arrived everywhere.
"""

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from actors.clock import Clock
from examples.demo import carriers, spark_rows
from examples.demo.cloud import Cloud
from examples.demo.dataset import JANUARY, TOTAL, flights
from examples.demo.facts import Follower
from examples.demo.processes import EndedError, Processes, Running
from examples.demo.put import put
from examples.demo.screen import Screen
from examples.demo.view import View, worker_of
from kcl_py.errors import KclError

EXAMPLES = Path(__file__).parents[1]
KCL = Path(sys.executable).with_name("kcl")
SHARDS = 4
SPLIT_AT, KILL_AT, KILL_SPARK_AT = 0.3, 0.5, 0.6
"""After which part of the flights; the three take place one beside the other."""
LOOK_S = 1.0
"""Between two looks at the files and the leases."""
BATCH_S = 0.05
"""Between two looks whether Spark is in a batch; one takes about a second."""
STALL_S = 90.0
"""If nothing arrives anywhere for so long, something is lost. On a busy machine Spark takes half of it to start."""
STOP_S = 25.0
"""A worker's own grace is 20 s."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Which demo to give."""

    is_quick: bool
    """January only."""
    has_spark: bool
    rate: float
    """Flights a second."""

    @property
    def total(self) -> int:
        return JANUARY if self.is_quick else TOTAL


@dataclass(slots=True)
class Traces:
    """Where the story leaves its files, and what only the moment could tell."""

    folder: Path
    killed_facts: Path | None = None
    checkpoints: dict[str, str] = field(default_factory=dict)
    """What the killed worker's rows said right after the kill, by shard."""
    accidents: list[str] = field(default_factory=list)

    @property
    def facts(self) -> Path:
        return self.folder / "facts"

    @property
    def put(self) -> Path:
        return self.folder / "put.tsv"

    @property
    def spark(self) -> Path:
        return self.folder / "spark"


class StalledError(Exception):
    """Nothing comes any more."""

    def __str__(self) -> str:
        return f"nothing has arrived anywhere for {STALL_S:.0f} s"


class Story:
    """One run of the demo."""

    def __init__(self, plan: Plan, folder: Path, screen: Screen, clock: Clock) -> None:
        self._plan, self._screen, self._clock = plan, screen, clock
        self.traces = Traces(folder)
        self._view = View(plan.total)
        self._news = anyio.Event()
        self._moved_at = clock.monotonic()
        self._workers: dict[str, Running] = {}

    async def run(self) -> Traces:
        """Run from the first process to the end of the last; what goes wrong is in the traces."""
        self.traces.facts.mkdir()
        try:
            async with Processes(self.traces.folder) as self._processes:
                await self._begin()
        except* (EndedError, StalledError, KclError) as group:
            self.traces.accidents += [str(error) for error in _leaves(group)]
        return self.traces

    async def _begin(self) -> None:
        _, ready = await self._processes.start_server(
            "kcl-local", KCL, "local", "--port", "0", "--stream", f"flights:{SHARDS}"
        )
        self._screen.say(
            f"kcl local: {ready.strip()}; starting {'Spark and ' if self._plan.has_spark else ''}two workers"
        )
        async with (
            Cloud(ready.split()[1], EXAMPLES / "flights.yaml") as self._cloud,
            anyio.create_task_group() as tasks,
        ):
            if self._plan.has_spark:
                await self._start_spark()
            for name in ("worker-1", "worker-2"):
                await self._start_worker(name)
            tasks.start_soon(self._look)
            async with anyio.create_task_group() as acts:
                acts.start_soon(self._put)
                acts.start_soon(self._split)
                acts.start_soon(self._kill_worker)
                if self._plan.has_spark:
                    acts.start_soon(self._kill_spark)
            await self._until(self._has_all)
            await self._end()
            tasks.cancel_scope.cancel()

    # --- the acts --------------------------------------------------------------------------------------------

    async def _put(self) -> None:
        async def tell(done: int) -> None:
            self._view.put = done
            self._tell()

        source = flights(is_quick=self._plan.is_quick)
        await put(source, self._cloud.writer, self.traces.put, rate=self._plan.rate, clock=self._clock, tell=tell)

    async def _split(self) -> None:
        await self._until_put(SPLIT_AT)
        parent, children = await self._cloud.split()
        self._screen.say(f"split {parent} into {' and '.join(children)}")

    async def _kill_worker(self) -> None:
        """Kill the worker that holds most, and note at once how far its checkpoints had come.

        They are read after the kill: then only a write that was under way can still move them, and would make the
        truth smaller than the bound. And they are read at once: another worker takes the shards after ``failover_s``
        without a heartbeat at the earliest, and would move them.
        """
        await self._until_put(KILL_AT)
        await self._until(lambda: bool(self._view.owners))
        held = [worker_of(shard["owner"]) for shard in self._view.shards if shard["owner"]]
        name = max(sorted(self._workers), key=held.count)
        killed = self._workers.pop(name)
        await self._processes.kill(killed)
        killed_at = self._clock.monotonic()
        shards = await self._cloud.shards()
        self.traces.killed_facts = self.traces.facts / f"{killed.pid}.tsv"
        self.traces.checkpoints = {
            shard["shard"]: shard["checkpoint"]
            for shard in shards
            if shard["owner"] and worker_of(shard["owner"]) == name
        }
        self._screen.say(f"killed {name} (SIGKILL), which held {len(self.traces.checkpoints)} shards")
        await self._until(lambda: name not in self._view.owners)
        took_s = self._clock.monotonic() - killed_at
        self._screen.say(f"{', '.join(self._workers)} took them over within {took_s:.0f} s")

    async def _kill_spark(self) -> None:
        await self._until_put(KILL_SPARK_AT)
        while not (is_busy := spark_rows.is_in_a_batch(self.traces.spark)) and not self._has_all():
            await self._clock.sleep(BATCH_S)
            self._check_moving()
        await self._processes.kill(self._spark)
        where = "in the middle of a batch" if is_busy else "between two batches"
        self._screen.say(f"killed Spark's driver (SIGKILL) {where}, with {self._view.stored:,} stored")
        await self._start_spark()

    async def _end(self) -> None:
        """Stop in order what still runs."""
        async with anyio.create_task_group() as stopping:
            for name, worker in self._workers.items():
                stopping.start_soon(self._stop_worker, name, worker)
            if self._plan.has_spark:
                stopping.start_soon(lambda: self._processes.stop(self._spark, within_s=STOP_S))

    async def _stop_worker(self, name: str, worker: Running) -> None:
        if code := await self._processes.stop(worker, within_s=STOP_S):
            self.traces.accidents.append(f"{name}: exit code {code}")

    async def _start_worker(self, name: str) -> None:
        env = {
            "KCL_AWS__ENDPOINT": self._cloud.url,
            "KCL_LEASES__WORKER_ID": name,
            "FLIGHTS_OUT": str(self.traces.facts),
        }
        self._workers[name] = await self._processes.start(name, KCL, "run", EXAMPLES / "flights.yaml", env=env)

    async def _start_spark(self) -> None:
        self._view.spark = "running again" if self._view.spark else "running"
        self._moved_at = self._clock.monotonic()
        options = ("--endpoint", self._cloud.url, "--out", self.traces.spark)
        self._spark = await self._processes.start("spark", sys.executable, EXAMPLES / "flights_spark.py", *options)

    # --- looking and waiting ---------------------------------------------------------------------------------

    async def _look(self) -> None:
        follower, view, before = Follower(self.traces.facts), self._view, self._clock.monotonic()
        while True:
            await self._clock.sleep(LOOK_S)
            seen, stored, now = len(view.seen), view.stored, self._clock.monotonic()
            view.add(follower.news(), over_s=now - before)
            view.carriers = carriers.read(self.traces.spark / "carriers.json")
            with suppress(KclError):  # no answer in time: the next look shows it
                view.shards = await self._cloud.shards()
            before = now
            if (seen, stored) != (len(view.seen), view.stored):
                self._moved_at = now
            self._tell()
            self._screen.show(view)

    def _has_all(self) -> bool:
        view = self._view
        return view.put == view.total <= len(view.seen) and (not self._plan.has_spark or view.stored >= view.total)

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()

    async def _until_put(self, part: float) -> None:
        await self._until(lambda: self._view.put >= part * self._view.total)

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._news.wait()
            self._check_moving()

    def _check_moving(self) -> None:
        if self._clock.monotonic() - self._moved_at > STALL_S:
            raise StalledError


def _leaves(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]
