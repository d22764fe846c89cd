"""What happens in one simulated life of a fleet, decided by its seed before anything runs.

Pure: the same seed gives the same plan, and a plan written as JSON can be run again or made smaller. Nothing here knows
how an event is carried out. Instants are virtual seconds from the beginning.
"""

import random
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

KINDS = (
    "start", "crash", "cancel", "stop", "kill", "pause", "freeze", "jump", "cut", "storm",
    "split", "merge", "count", "delete row", "request",
)  # fmt: skip
FAULTS = ("error", "lost_reply", "reset", "throttle", "truncated", "hang", "delay", "stale", "expired")
REQUESTS = ("number", "number", "time", "latest", "release")
PAUSES = ("pause shard", "pause stream", "resume shard", "resume stream")
SERVICES = ("kinesis", "dynamodb")
ORDERINGS = ("key", "shard", "none")
FORMS = ("batch", "mixed", *ORDERINGS)
"""How records reach processors: whole batches, batches with an outcome for each record, or lanes by their ordering."""
GATHERING_CHANCE = 0.3
"""Of a fleet with lanes to have batchers."""
EFFECTS_CHANCE = 0.25
"""Of another fleet to have effects."""
MOST_EFFECTS = 50
"""Records of a batch that has them."""
GATHERED_S = 0.5
"""How long a record waits in a batcher for others."""


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that happens to the fleet or its services; which fields mean something depends on the kind."""

    at_s: float
    kind: str
    slot: int = 0
    """Which of the machines."""
    for_s: float = 0.0
    share: float = 0.0
    """Picks one of the shards, rows or actors that are there then: 0 the first, just below 1 the last."""
    what: str = ""
    step: int = 0
    """A crash waits for so many steps of the worker's tasks, and so hits any of its await points."""
    to: float = 0.0
    """Where in the shard, or in the time until now, a request goes: 0 the beginning, just below 1 the end."""


class Weather(msgspec.Struct, frozen=True, omit_defaults=True):
    """A chance of one kind of fault while the faults last."""

    kind: str
    service: str
    probability: float
    delay_s: float = 0.0
    operation: str = ""
    code: str = ""


class Work(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the processors behave while the faults last."""

    slow: float = 0.0
    """Chance of a call to take seconds."""
    fails: float = 0.0
    """Chance of a call to raise."""
    saves: float = 0.0
    """Chance of a call to checkpoint, at one place or another."""
    swallows: bool = False
    """Whether a call that is cancelled returns as though it were done."""


class Gathering(msgspec.Struct, frozen=True):
    """What processors of single records give away to a batcher."""

    share: float
    """Of all records, drawn by their numbers: whoever gets one does the same with it."""
    records: int
    """Most of a batch."""
    concurrency: int
    is_by_key: bool
    """Whether there are batches for each partition key."""


class Form(msgspec.Struct, frozen=True, omit_defaults=True):
    """How records reach the processors, and what these say of single ones while the faults last."""

    kind: str = "batch"
    rejects: float = 0.0
    """Chance of a record to be refused."""
    puts_off: float = 0.0
    """Chance of a record to be put off for seconds."""
    loses_letters: float = 0.0
    """Chance of a dead letter not to be stored."""
    gathers: Gathering | None = None
    has_effects: bool = False
    """Whether processors apply an effect of each record, once."""

    @property
    def has_lanes(self) -> bool:
        """Whether records come one by one."""
        return self.kind in ORDERINGS


class Plan(msgspec.Struct, frozen=True):
    """One life."""

    seed: int
    slots: int
    shards: int
    calm_s: float
    """When faults, and all that is planned, are over."""
    options: dict[str, Any]
    """Of every worker's configuration."""
    end_shape: str
    put_every_s: float
    keys: int
    work: Work
    weather: tuple[Weather, ...]
    late: float
    """Chance of a request to the lease table to take effect up to a failover time later."""
    stale_s: float
    events: tuple[Event, ...]
    wide: bool = False
    """Whether the lease table counts as large, however few rows it has."""
    form: Form = Form()
    ends_busy: bool = True
    """Whether the fleet is stopped in the middle of its work, and another worker has to go on."""

    @property
    def failover_s(self) -> float:
        found: float = self.options["leases"]["failover_s"]
        return found

    def drawn(self, what: str) -> random.Random:
        """Return the chance of one part of the life."""
        return random.Random(f"{what} {self.seed}")


SWALLOWS_CHANCE = 0.25


def plan(seed: int, kind: str = "") -> Plan:
    """Return the life that ``seed`` stands for: one in fifty is large. ``kind`` says in which form, if not any."""
    draw = random.Random(f"plan {seed}")
    is_large = draw.random() < 0.02
    slots = draw.randint(4, 8) if is_large else draw.choice((1, 2, 2, 3))
    shards = draw.choice((8, 8, 16, 16, 32, 64)) if is_large else draw.randint(1, 5)
    calm_s = draw.uniform(40, 70)
    failover_s = 10 if is_large else draw.choice((3, 5, 10, 10))
    options = _options(draw, failover_s)
    options["leases"]["strategy"] = random.Random(f"strategy {seed}").choice(("count", "throughput"))
    form, delivery = _form(random.Random(f"form {seed}"), kind)
    if form.has_lanes:
        form = replace(form, gathers=_gathering(random.Random(f"gathering {seed}")))
    if _can_have_effects(form, options) and random.Random(f"effects {seed}").random() < EFFECTS_CHANCE:
        form = replace(form, has_effects=True)
    options["delivery"] |= delivery
    return Plan(
        seed=seed,
        slots=slots,
        shards=shards,
        calm_s=round(calm_s, 3),
        options=options,
        end_shape=draw.choice(("with_last", "after_last")),
        put_every_s=draw.choice((0.3, 0.6, 1.5)),
        keys=draw.choice((1, 3, 20)),
        work=replace(_work(draw), swallows=random.Random(f"swallows {seed}").random() < SWALLOWS_CHANCE),
        weather=_weather(draw),
        late=draw.choice((0.0, 0.0, 0.01, 0.05)),
        stale_s=draw.choice((0.0, 0.0, 1.0)),
        events=_in_order(*_events(draw, slots, calm_s, failover_s), *_requests(seed, calm_s), *_pauses(seed, calm_s)),
        wide=random.Random(f"wide {seed}").random() < 0.25,
        form=form,
    )


FAIR = Plan(
    seed=0,
    slots=1,
    shards=2,
    calm_s=20.0,
    options={"leases": {"failover_s": 3, "handoff_timeout_s": 20}, "delivery": {"batch": {"max_records": 10}}},
    end_shape="with_last",
    put_every_s=0.3,
    keys=3,
    work=Work(),
    weather=(),
    late=0.0,
    stale_s=0.0,
    events=(Event(0.0, "start"),),
    ends_busy=False,
)
"""One worker, two shards, and nothing goes wrong."""


def _options(draw: random.Random, failover_s: float) -> dict[str, Any]:
    return {
        "start": draw.choice(("trim_horizon", "trim_horizon", "trim_horizon", "2023-11-14T22:13:15Z")),
        "leases": {
            "failover_s": failover_s,
            "handoff_timeout_s": draw.choice((2, 20)),
            "exclusive_id": draw.random() < 0.2,
        },
        "delivery": {
            "retries": 1000,
            "backoff_s": 0.1,
            "backoff_max_s": 1.0,
            "batch": {"max_records": draw.choice((3, 10, 1000))},
            "max_ahead": {"records": draw.choice((20, 10_000))},
        },
        "fetch": {"idle_s": draw.choice((0.5, 1.0, 3.0)), "budget_bytes": draw.choice((1 << 20, 1 << 28))},
        "checkpoint": draw.choice(({}, {}, {"interval_s": 2.0}, {"records": 7}, {"mode": "manual"})),
    }


def _work(draw: random.Random) -> Work:
    return Work(
        slow=draw.choice((0.0, 0.05, 0.2)), fails=draw.choice((0.0, 0.0, 0.05, 0.2)), saves=draw.choice((0.0, 0.2))
    )


def _form(draw: random.Random, kind: str) -> tuple[Form, dict[str, Any]]:
    """Draw the form, and the options of delivery that belong to it; whole batches come until they are done."""
    kind = kind or draw.choice(FORMS)
    if kind == "batch":
        return Form(), {}
    form = Form(
        kind=kind,
        rejects=draw.choice((0.0, 0.02, 0.1)),
        puts_off=draw.choice((0.0, 0.02, 0.1)),
        loses_letters=draw.choice((0.0, 0.1, 0.5)),
    )
    policy = draw.choice(("halt", "skip", "dead_letter"))
    options: dict[str, Any] = {
        "retries": draw.choice((0, 2, 1000)),
        "on_failure": policy,
        "concurrency": draw.choice((1, 3, 64)),
        "attempt_timeout_s": draw.choice((None, None, 2.0)),
        "rate": {"records": draw.choice((None, None, 100))},
    }
    if policy == "dead_letter":
        options["dead_letter"] = "file:///letters"
    return form, options | ({} if kind == "mixed" else {"ordering": kind})


def _gathering(draw: random.Random) -> Gathering | None:
    if draw.random() >= GATHERING_CHANCE:
        return None
    return Gathering(
        share=draw.choice((0.2, 1.0)),
        records=draw.choice((2, 7, 100)),
        concurrency=draw.choice((1, 3)),
        is_by_key=draw.random() < 0.5,
    )


def _can_have_effects(form: Form, options: dict[str, Any]) -> bool:
    """A transaction has its bounds; and batches with outcomes, or in which others wait, have none."""
    if form.kind == "batch":
        return int(options["delivery"]["batch"]["max_records"]) <= MOST_EFFECTS
    return form.has_lanes and form.gathers is None


def _weather(draw: random.Random) -> tuple[Weather, ...]:
    most = draw.choice((0.0, 0.02, 0.05, 0.1))
    if not most:
        return ()
    chosen = draw.sample(FAULTS, draw.randint(1, 4))
    return tuple(_gust(draw, kind, draw.choice(SERVICES), draw.uniform(0, most)) for kind in chosen)


def _gust(draw: random.Random, kind: str, service: str, probability: float) -> Weather:
    if kind == "expired":
        return Weather("error", "kinesis", round(probability, 4), 0.0, "GetRecords", "ExpiredIteratorException")
    return Weather(kind, service, round(probability, 4), round(draw.uniform(0.1, 2), 3) if kind == "delay" else 0.0)


def _events(draw: random.Random, slots: int, calm_s: float, failover_s: float) -> tuple[Event, ...]:
    events = [Event(0.0 if slot == 0 else _at(draw, calm_s / 3), "start", slot) for slot in range(slots)]
    reshards, deletes = draw.random() < 0.7, draw.random() < 0.1
    kinds = ["visit", "visit", "crash", "cancel", "stop", "stop", "kill", "pause", "freeze", "jump", "cut", "storm"]
    kinds += ["split", "split", "merge", "count"] * reshards + ["delete row"] * deletes
    at_s, every_s = 1.0, draw.choice((2.0, 4.0, 8.0))
    while (at_s := at_s + draw.expovariate(1 / every_s)) < calm_s:
        kind = draw.choice(kinds)
        slot = draw.randrange(slots)
        for_s = 0.0
        if kind == "visit":  # of one who asks for shards, and is gone before he has them
            leaves_s = at_s + failover_s + draw.uniform(0, 2)
            events += [
                Event(round(at_s, 3), "start", slot, what="new"),
                Event(round(leaves_s, 3), "crash", slot, step=1),
            ]
            continue
        match kind:
            case "crash" | "cancel" | "stop":
                again_s = at_s + draw.uniform(0.5, 8)
                events.append(Event(round(again_s, 3), "start", slot, what=draw.choice(("same", "new"))))
                for_s = draw.choice((0.0, 0.5, 3.0, 10.0)) if kind == "stop" else 0.0
            case "pause" | "freeze" | "storm":
                for_s = draw.choice((0.3, 1.0, 2.5, failover_s, failover_s * 1.5, failover_s * 3))
            case "cut":
                for_s = draw.choice((1.0, failover_s, failover_s * 2, failover_s * 3))
            case "jump":
                for_s = draw.choice((-3600.0, -2.0, 2.0, 3600.0))
        what = (
            draw.choice(("kinesis", "dynamodb", "dynamodb", "both"))
            if kind == "cut"
            else draw.choice(FAULTS[:6])
            if kind == "storm"
            else ""
        )
        step = draw.randint(1, 200) if kind == "crash" else 0
        events.append(Event(round(at_s, 3), kind, slot, for_s, round(draw.random(), 6), what, step))
    return _in_order(*events)


def _requests(seed: int, calm_s: float) -> Iterator[Event]:
    """Draw what an operator asks of holders; from a chance of its own, so that all else in a life stays as it was."""
    draw = random.Random(f"requests {seed}")
    if draw.random() < 0.6:
        for _ in range(draw.choice((1, 1, 2, 5))):
            at_s, share, to = _at(draw, calm_s), round(draw.random(), 6), round(draw.random(), 6)
            yield Event(at_s, "request", share=share, what=draw.choice(REQUESTS), to=to)


def _pauses(seed: int, calm_s: float) -> Iterator[Event]:
    """Draw what an operator pauses and resumes; what is left when it becomes calm goes on then."""
    draw = random.Random(f"pauses {seed}")
    if draw.random() < 0.5:
        for _ in range(draw.choice((1, 2, 4))):
            what, share = draw.choice(PAUSES[:2]), round(draw.random(), 6)
            at_s, for_s = _at(draw, calm_s), draw.choice((0.5, 3.0, 10.0, 30.0))
            yield Event(at_s, "request", share=share, what=what)
            yield Event(round(at_s + for_s, 3), "request", share=share, what=draw.choice(PAUSES[2:]))


def _in_order(*events: Event) -> tuple[Event, ...]:
    return tuple(sorted(events, key=lambda event: event.at_s))


def _at(draw: random.Random, until_s: float) -> float:
    return round(draw.uniform(0, until_s), 3)
