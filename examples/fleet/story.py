"""What is done to the fleet, in order, while records are put at a steady pace; figures are made from its files after.

Four workers share the stream. All are replaced one after the other, first stopped and then started, then the other way
round; one is killed; one sleeps for three failover times. Durations are seconds.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from pathlib import Path

import anyio

from actors.clock import Clock
from examples.demo.cloud import Cloud
from examples.demo.processes import Processes, Running
from examples.demo.view import worker_of
from examples.fleet.figures import Act, Place, read
from kcl_py.errors import KclError

HERE = Path(__file__).parent
KCL = Path(sys.executable).with_name("kcl")
WORKERS = 4
FAILOVER_S = 3.0
"""As in worker.yaml."""
PUT_EVERY_S, LOOK_S = 0.1, 0.1
PATIENCE_S = 60.0
STOP_S = 25.0


@dataclass(slots=True)
class Traces:
    """Where the files are, and what only the moment could tell."""

    folder: Path
    put: set[Place] = field(default_factory=set)
    acts: list[Act] = field(default_factory=list)
    sleeper: int = 0
    woke_at: float = 0.0
    took_at: float = 0.0
    """When the worker that slept has first taken a shard anew."""
    accidents: list[str] = field(default_factory=list)

    @property
    def out(self) -> Path:
        return self.folder / "out"


class StalledError(Exception):
    """The fleet does not come to what was waited for."""


class Story:
    """One run."""

    def __init__(self, folder: Path, clock: Clock, *, shards: int, rate: int, say: Callable[[str], None]) -> None:
        self._clock, self._shards, self._rate, self._say = clock, shards, rate, say
        self.traces = Traces(folder)
        self._names = (f"worker-{number}" for number in count(1))
        self._workers: dict[str, Running] = {}
        self._is_putting = True

    async def run(self) -> Traces:
        """Run from the first process to the end of the last."""
        self.traces.out.mkdir()
        async with Processes(self.traces.folder) as self._processes:
            stream = f"fleet:{self._shards}"
            _, ready = await self._processes.start_server("kcl-local", KCL, "local", "--port", "0", "--stream", stream)
            self._say(ready.strip())
            async with Cloud(ready.split()[1], HERE / "worker.yaml") as self._cloud, anyio.create_task_group() as tasks:
                tasks.start_soon(self._put)
                await self._act("start", self._begin)
                await self._act("deploy, stop first", self._deploy)
                await self._act("deploy, start first", self._deploy_with_surge)
                await self._act("kill -9", self._kill, is_gentle=False)
                await self._act("asleep for 9 s", self._sleep, is_gentle=False)
                self._is_putting = False
                await self._act("stop all", self._end)
        return self.traces

    async def _act(self, name: str, act: Callable[[], Awaitable[None]], *, is_gentle: bool = True) -> None:
        began_at = time.time()
        await act()
        self.traces.acts.append(Act(name, began_at, time.time(), is_gentle))
        self._say(f"{name}: {time.time() - began_at:.1f} s")

    # --- the acts ----------------------------------------------------------------------------------------------

    async def _begin(self) -> None:
        for _ in range(WORKERS):
            await self._start()
        await self._balanced()

    async def _deploy(self) -> None:
        for name in tuple(self._workers):
            await self._stop(name)
            await self._start()
            await self._balanced()

    async def _deploy_with_surge(self) -> None:
        for name in tuple(self._workers):
            await self._start()
            await self._balanced()
            await self._stop(name)
        await self._balanced()

    async def _kill(self) -> None:
        name, worker = next(iter(self._workers.items()))
        del self._workers[name]
        await self._processes.kill(worker)
        await self._balanced()
        await self._start()
        await self._balanced()

    async def _sleep(self) -> None:
        name, worker = next(iter(self._workers.items()))
        traces = self.traces
        os.kill(worker.pid, signal.SIGSTOP)
        await self._clock.sleep(3 * FAILOVER_S)
        traces.sleeper, traces.woke_at = worker.pid, time.time()
        os.kill(worker.pid, signal.SIGCONT)
        await self._until(lambda: self._first_take(name, traces.woke_at) is not None)
        traces.took_at = self._first_take(name, traces.woke_at) or 0.0
        await self._balanced()

    async def _end(self) -> None:
        await self._until(lambda: self.traces.put <= self._delivered())
        for name in tuple(self._workers):
            await self._stop(name)

    # --- what they are made of ---------------------------------------------------------------------------------

    async def _start(self) -> None:
        name = next(self._names)
        env = {
            "KCL_AWS__ENDPOINT": self._cloud.url,
            "KCL_LEASES__WORKER_ID": name,
            "KCL_LOG__FORMAT": "json",
            "FLEET_OUT": str(self.traces.out),
        }
        self._workers[name] = await self._processes.start(name, KCL, "run", HERE / "worker.yaml", env=env)

    async def _stop(self, name: str) -> None:
        if code := await self._processes.stop(self._workers.pop(name), within_s=STOP_S):
            self.traces.accidents.append(f"{name}: exit code {code}")

    async def _put(self) -> None:
        begun_at, done = self._clock.monotonic(), 0
        while self._is_putting:
            due = int((self._clock.monotonic() - begun_at) * self._rate) - done
            placed = (
                await self._cloud.writer.put([(str(done + number), b"x" * 100) for number in range(due)]) if due else []
            )
            self.traces.put |= {(place.shard_id, int(place.sequence_number)) for place in placed}
            done += due
            await self._clock.sleep(PUT_EVERY_S)

    async def _balanced(self) -> None:
        """Wait until every worker that is there, and nobody else, holds its share."""
        ends_at = self._clock.monotonic() + PATIENCE_S
        while not await self._is_balanced():
            if self._clock.monotonic() > ends_at:
                raise StalledError(f"{self._workers.keys()} have not come to even shares in {PATIENCE_S:g} s")
            await self._clock.sleep(LOOK_S)

    async def _is_balanced(self) -> bool:
        with suppress(KclError):
            shards = await self._cloud.shards()
            owners = [worker_of(shard["owner"]) for shard in shards if shard["state"] == "owned"]
            loads = [owners.count(name) for name in self._workers]
            return len(owners) == self._shards == sum(loads) and max(loads) - min(loads) <= 1
        return False

    async def _until(self, condition: Callable[[], bool]) -> None:
        ends_at = self._clock.monotonic() + PATIENCE_S
        while not condition():
            if self._clock.monotonic() > ends_at:
                raise StalledError(f"what was waited for has not come in {PATIENCE_S:g} s")
            await self._clock.sleep(LOOK_S)

    def _delivered(self) -> set[Place]:
        return {each.place for each in read(self.traces.out)}

    def _first_take(self, name: str, after: float) -> float | None:
        """When a worker says that it has taken a shard, after an instant."""
        for line in (self.traces.folder / f"{name}.log").read_text().splitlines():
            if '"kcl_py.lease.taken"' in line:
                at = datetime.fromisoformat(json.loads(line)["timestamp"]).timestamp()
                if at > after:
                    return at
        return None
