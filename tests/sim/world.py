"""A fleet and its services living one plan: the real workers over the models of Kinesis and DynamoDB.

It does what the plan says at its instants, then lets things calm down, waits until everything has been read, and stops
the fleet. What happened is in the history; nothing is judged here. Seconds are virtual.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from itertools import count
from typing import Any

from kcl_py.config import Config
from kcl_py.local.faults.client import FaultyClient
from kcl_py.local.faults.fault import Fault, Kind
from kcl_py.local.faults.faults import Faults
from tests.sim.history import History
from tests.sim.life import Life
from tests.sim.network import Link
from tests.sim.plan import GATHERED_S, SERVICES, Event, Plan, Weather
from tests.sim.processor import PUT_OFF_S, WORK_S, Day, Letters, Storm, processor
from tests.sim.services import APP, STREAM, Services, number_of
from tests.simclock import SimClock
from tests.simloop import sim_loop

AGAIN_S = 2.0
"""A worker that has failed is started again after this, as any process supervisor would."""
LAST_RECORDS, LAST_S = 40, 3.0
"""So many are put when it becomes calm, and so long before the end, so that the fleet is busy when it stops."""
QUIET_S = 3.0
"""How long a fleet that has read everything is still watched."""
LONG_QUIET_CHANCE, LONG_QUIET_S = 0.2, 4.0
"""Some are watched for longer, beside two failover times: shares of the dead expire, and move."""
GRACE_S = 20.0
SKEWS_S = (0.0, 0.0, -0.4, 0.4, 90.0)
"""How wrong a machine's wall clock can be."""
MOST_SKEW_S = 100.0
"""How far two machines' clocks may be apart so that the one heeds what the other has put off."""
MOST_STEPS = 100_000
"""Of the event loop, for each worker and shard; a life takes a twentieth."""
STORM_CHANCE = 0.5
TAIL_CHANCE, TAIL_S = 0.02, 0.5
"""How many requests and replies take long, and how long at the most."""
CANCEL_CHANCE = 0.25
"""Of a worker to be cancelled in the end, as by Ctrl-C, rather than stopped."""


class World:
    """One life of a fleet."""

    def __init__(self, plan: Plan, history: History) -> None:
        self.plan, self.history, self._loop = plan, history, sim_loop()
        self._draw = plan.drawn("world")
        self._services = Services(plan, history, self._loop, self._draw)
        self._storm = Storm(self._services.operator.finished)
        self._lives = count(1)
        self._slots: dict[int, Life] = {}
        self.lives: list[Life] = []
        self._by_name: dict[str, Life] = {}
        self._faults: list[Faults] = []
        self._weather = [fault_of(gust) for gust in plan.weather]
        """What can happen to requests at present, also to those of a worker that starts."""
        self._steps_left: dict[str, int] = {}

    def happened(self) -> Counter[str]:
        """Return how often each kind of fault befell a request, and what was done to the stream."""
        found: Counter[str] = Counter()
        for faults in self._faults:
            for (_, _, kind), times in faults.happened.items():
                found[kind] += times
        return found + self._services.done + self._services.operator.done

    # --- the course of things ----------------------------------------------------------------------------------

    async def live(self) -> None:
        """Go through the plan, and to the end of the fleet."""
        self._loop.most_steps = MOST_STEPS * (self.plan.slots + self.plan.shards)
        putting = self._loop.create_task(self._services.put_on())
        for event in self.plan.events:
            await self._until(event.at_s)
            self._do(event)
        await self._until(self.plan.calm_s)
        putting.cancel()
        self._calm()
        await self._drained()
        await self._rested()
        if self.plan.ends_busy:
            self._services.put(LAST_RECORDS)
            await asyncio.sleep(self._draw.uniform(0, LAST_S))
        await self._stopped()
        await self._drained()  # by one more worker, if there is anything left
        await self._stopped()
        self._services.note_shards()
        self._services.note_effects()

    async def _until(self, at_s: float) -> None:
        while (left_s := at_s - self._loop.time()) > 0:
            await asyncio.sleep(min(left_s, AGAIN_S))
            self._revive()

    @property
    def _unread(self) -> int:
        """Return how many records nobody has finished."""
        return self._services.put_records - len(self._storm.finished)

    def _revive(self) -> None:
        """Start again what has failed by itself."""
        for slot, life in sorted(self._slots.items()):
            if life.task.done() and not life.is_crashed and not life.is_stopping:
                self._start(slot, "same")

    def _calm(self) -> None:
        """Let nothing go wrong any more."""
        self._storm.is_on = False
        self._steps_left.clear()
        self._weather.clear()
        for faults in self._faults:
            faults.clear()
        for life in self.lives:
            for link in life.links.values():
                link.is_cut = False
        self._services.operator.resume_all()
        self._services.operator.go_on()
        self.history.note("calm")
        self._services.put(LAST_RECORDS)

    async def _drained(self) -> None:
        """Keep a worker running until all is read and nothing is asked, or for as long as that may take."""
        ends_at_s = self._loop.time() + self._patience_s
        while (is_any_paused := any(life.is_paused for life in self.lives)) or (
            (self._unread or self._services.rows.standing) and self._loop.time() < ends_at_s
        ):
            self._revive()
            self._services.operator.go_on()  # with what has halted at last
            if not any(not life.is_over and not life.is_stopping for life in self.lives):
                self._start(0, "new")
            await asyncio.sleep(0.5)
            if is_any_paused:
                ends_at_s = self._loop.time() + self._patience_s
        self.history.note("drained" if not self._unread else "stuck", left=self._unread)

    @property
    def _patience_s(self) -> float:
        """How long a fleet without faults may take to have read everything, or to stop.

        A holder's row expires, or one that was deleted is made anew, and its parent's before it; a handoff comes
        between; one shard is read as fast as its quota allows, and handed over as fast as the rate does; its records,
        which may be of one lane, or batches are worked on one by one, or wait for others as often as reading has to
        wait for them; one that a worker has put off waits until the clock of the next one says that it is due.
        """
        handoff_s = float(self.plan.options["leases"]["handoff_timeout_s"])
        rate = self.plan.options["delivery"].get("rate", {}).get("records")
        rated_s = self._services.put_records / rate if rate else 0.0
        put_off_s = PUT_OFF_S + MOST_SKEW_S if self.plan.form.puts_off else 0.0
        worked_s = self._services.put_records * WORK_S
        if not self.plan.form.has_lanes:
            worked_s /= self.plan.options["delivery"]["batch"]["max_records"]
        if self.plan.form.gathers:
            ahead: int = self.plan.options["delivery"]["max_ahead"]["records"]
            worked_s += (self._services.put_records / ahead + 1) * GATHERED_S
        return 15 + 3 * self.plan.failover_s + handoff_s + self._services.read_s + rated_s + worked_s + put_off_s

    async def _rested(self) -> None:
        is_long = self._draw.random() < LONG_QUIET_CHANCE
        await asyncio.sleep(2 * self.plan.failover_s + LONG_QUIET_S if is_long else QUIET_S)
        for life in self.lives:
            life.note_rest()

    async def _stopped(self) -> None:
        """Stop all workers that are there, and see what is left of them."""
        going = [life for life in self.lives if not life.is_over]
        ends_at_s = self._loop.time() + self._patience_s
        while any(not life.is_over for life in going) and self._loop.time() < ends_at_s:
            for life in going:
                if life.is_free and self._draw.random() < CANCEL_CHANCE:  # who is paused is asked when he wakes up
                    life.cancel()
                elif life.is_free:
                    life.stop(GRACE_S)
            await asyncio.sleep(0.2)
        for life in going:
            if not life.is_over:
                self.history.note("hangs", w=life.name)
        left = sorted({f"{task.worker}: {task.place}" for task in self._loop.left() if task.worker is not None})
        self.history.note("left", tasks=left)

    # --- what can happen ---------------------------------------------------------------------------------------

    def _do(self, event: Event) -> None:
        life = self._slots.get(event.slot)
        match event.kind:
            case "start":
                if life is None or life.is_over:
                    self._start(event.slot, event.what)
            case "split" | "merge" | "count":
                self._services.reshard(event)
            case "delete row":
                self._services.delete_row(event.share)
            case "request":
                self._services.operator.ask(event)
            case "storm":
                self._blow(event)
            case _ if life is not None and life.can(event.kind):
                self._do_to(life, event)

    def _do_to(self, life: Life, event: Event) -> None:
        match event.kind:
            case "crash":
                self._crash_after(life, event.step)
            case "cancel":
                life.cancel()
            case "stop":
                life.stop(event.for_s)
            case "kill":
                life.kill(event.share)
            case "pause" | "freeze":
                life.pause(event.for_s, with_clock=event.kind == "freeze")
            case "jump":
                life.clock.skew_s += event.for_s
                self.history.note("jump", w=life.name, by_s=event.for_s)
            case "cut":
                self._cut(life, event)

    def _start(self, slot: int, identity: str) -> None:
        number = next(self._lives)
        name, draw = f"w{slot}.{number}", self.plan.drawn(f"life {number}")
        worker_id = f"w{slot}" if identity == "same" else name
        links = {
            service: Link(self._noted(name, service), self._loop, draw, self._late(service, draw))
            for service in SERVICES
        }
        clock = SimClock(self._loop)
        clock.skew_s = draw.choice(SKEWS_S)
        faults = Faults(self._weather, random=draw)
        self._faults.append(faults)
        clients = {service: FaultyClient(link, service, faults, clock=clock) for service, link in links.items()}
        self.history.note("start", w=name, id=worker_id, skew_s=clock.skew_s)
        config = self._config(worker_id)
        day = Day(
            name,
            self.plan.work,
            self.plan.form,
            self._storm,
            self.history,
            self.plan.drawn(f"work {number}"),
            on_failure=config.delivery.on_failure,
            must_save=config.checkpoint.mode == "manual",
        )
        life = Life(
            name,
            config,
            loop=self._loop,
            clock=clock,
            draw=draw,
            links=links,
            clients=clients,
            processor=processor(day),
            letters=Letters(day),
            history=self.history,
        )
        self._slots[slot] = self._by_name[name] = life
        self.lives.append(life)

    def _config(self, worker_id: str) -> Config:
        options = {**self.plan.options, "leases": {**self.plan.options["leases"], "worker_id": worker_id}}
        return Config(app=APP, stream=STREAM, processor="tests:Noting", **options)

    def _noted(self, life: str, service: str) -> Callable[[str, Any], Any]:
        """Answer as the service does, and note what the worker holds and gets, and what becomes of lease rows."""
        answer, rows = self._services.answers[service], self._services.rows

        def written(operation: str, params: Any) -> Any:
            reply = answer(operation, params)
            rows.follow(life, operation, params, reply)
            return reply

        def read(operation: str, params: Any) -> Any:
            reply = answer(operation, params)
            if operation == "GetRecords":
                self._by_name[life].note_memory()
                if records := reply["Records"]:
                    self.history.note("given", w=life, first=number_of(records[0]), records=len(records))
            return reply

        return written if service == "dynamodb" else read

    def _late(self, service: str, draw: random.Random) -> Callable[[], float]:
        """Return what draws by how much a request or a reply is late."""
        chance = self.plan.late if service == "dynamodb" else 0.0

        def late() -> float:
            if not self._storm.is_on:
                return 0.0
            if chance and draw.random() < chance:
                return draw.uniform(0, self.plan.failover_s)
            return draw.uniform(0, TAIL_S) if draw.random() < TAIL_CHANCE else 0.0

        return late

    def _crash_after(self, life: Life, steps: int) -> None:
        """Crash it at the so manieth step of its tasks from now on."""
        self._steps_left[life.name] = steps

        def count_down(task: Any) -> None:
            left = self._steps_left.get(task.worker)
            if left is not None and left > 1:
                self._steps_left[task.worker] = left - 1
            elif left is not None:
                del self._steps_left[task.worker]
                life.crash()
            if not self._steps_left:
                self._loop.before_step = None

        self._loop.before_step = count_down

    def _cut(self, life: Life, event: Event) -> None:
        cut = [link for service, link in life.links.items() if event.what in (service, "both")]
        for link in cut:
            link.is_cut = True
        self.history.note("cut", w=life.name, service=event.what, for_s=event.for_s)

        def heal() -> None:
            for link in cut:
                link.is_cut = False
            self.history.note("healed", w=life.name)

        self._loop.call_later(event.for_s, heal)

    def _blow(self, event: Event) -> None:
        """Let one kind of fault befall half of all requests of everybody for a while."""
        service = SERVICES[int(event.share * 2)]
        fault = fault_of(Weather(event.what, service, STORM_CHANCE))
        self.history.note("storm", kind=event.what, service=service, for_s=event.for_s)
        self._weather.append(fault)
        for faults in self._faults:
            faults.add(fault)

        def abate() -> None:
            if fault in self._weather:
                self._weather.remove(fault)
            for faults in self._faults:
                faults.remove(fault)
            self.history.note("abated", kind=event.what, service=service)

        self._loop.call_later(event.for_s, abate)


def fault_of(weather: Weather) -> Fault:
    """Return the rule for one kind of weather."""
    return Fault(
        kind=Kind(weather.kind),
        service=weather.service,
        operation=weather.operation,
        probability=weather.probability,
        code=weather.code,
        delay_s=weather.delay_s,
    )
