"""One short life of two workers, ended for one of them at a chosen await point of its Leases and Pipelines.

The life: A takes four busy shards, B joins and pulls two of them, one shard is split. It is the same, step by step, in
each run with one seed, so a point found in one run is met again in the next.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from tests.kcl_py.tree.fleet import FAILOVER_S, Fleet, Member
from tests.simloop import SimTask, await_point, run

SEED = 7
LIFE_S = 6.0
JOINS_AT_S, SPLITS_AT_S = 0.3, 4.6
PUT_EVERY_S, RECORDS_EACH = 0.1, 8
IDLE_S = 0.9
TAKEN_OVER_S = FAILOVER_S + FAILOVER_S / 3 + 0.5
"""Until when the survivor has a dead worker's shards: F + H + 0.5 s."""
ACTORS = ("/lease", "/lease task", "/pipeline", "/pipeline task")


@dataclass(frozen=True)
class Point:
    """A step of one worker's tasks."""

    victim: str
    number: int
    """Among the steps of its Leases and Pipelines."""
    actor: str
    place: str
    """File and line of the frames that wait, outermost first."""
    at: float

    def __str__(self) -> str:
        return f"{self.victim}'s step {self.number} at {self.at:.3f} s: {self.actor} in {self.place}"


class Steps:
    """Counts the steps of a worker's Leases and Pipelines, and does something at one of them."""

    def __init__(self, fleet: Fleet, victim: str, number: int | None, act: Callable[[], None]) -> None:
        self._fleet, self._victim, self._number, self._act = fleet, victim, number, act
        self.points: list[Point] = []

    def __call__(self, task: SimTask) -> None:
        name = task.place
        if task.worker != self._victim or not name.endswith(ACTORS):
            return
        number = len(self.points)
        if number == self._number or self._number is None:
            place, actor = await_point(task) or "its first step", name.rpartition("/")[2]
            self.points.append(Point(self._victim, number, actor, place, self._fleet.loop.time()))
            if self._number is not None:
                self._fleet.loop.before_step = None
                self._act()
        else:
            self.points.append(Point(self._victim, number, "", "", 0.0))


def every_point(victim: str) -> list[Point]:
    """Live the life undisturbed and return all await points of one worker."""

    async def live() -> list[Point]:
        fleet = Fleet(seed=SEED, fetch={"idle_s": IDLE_S})
        steps = fleet.loop.before_step = Steps(fleet, victim, None, lambda: None)
        await _live(fleet)
        await fleet.stopped()
        return [point for point in steps.points if point.at <= LIFE_S]

    return run(live, seed=SEED)


def sample(points: list[Point], wanted: int) -> list[Point]:
    """Choose points so that each place is among them, and the more often a place is met the more of it."""
    by_place: dict[tuple[str, str], list[Point]] = defaultdict(list)
    for point in points:
        by_place[point.actor, point.place].append(point)
    each = wanted / len(points)
    chosen = {
        found[round(index * (len(found) - 1) / max(count - 1, 1))]
        for found in by_place.values()
        for count in [max(1, round(len(found) * each))]
        for index in range(count)
    }
    rest = [point for point in points if point not in chosen]
    missing = max(wanted - len(chosen), 0)
    chosen.update(rest[:: max(len(rest) // (missing + 1), 1)][:missing])
    return sorted(chosen, key=lambda point: point.number)


def end_at(point: Point, end: Callable[[Member], None]) -> Point:
    """Live the life, end one worker at ``point``, and check that the other makes up for it; return the point met."""

    async def live() -> Point:
        fleet = Fleet(seed=SEED, fetch={"idle_s": IDLE_S})
        late: list[bool] = []

        def act() -> None:
            dead = fleet.members[point.victim]
            end(dead)
            fleet.loop.call_later(TAKEN_OVER_S, lambda: late.append(_is_named(fleet, dead)))

        steps = fleet.loop.before_step = Steps(fleet, point.victim, point.number, act)
        await _live(fleet)
        await fleet.until(lambda: late)
        assert late == [False], "the survivor was late"
        await _make_up(fleet, fleet.members[point.victim])
        return steps.points[-1]

    return run(live, seed=SEED)


async def _live(fleet: Fleet) -> None:
    fleet.start("A")
    loop = fleet.loop
    loop.call_at(JOINS_AT_S, lambda: fleet.start("B"))
    loop.call_at(SPLITS_AT_S, lambda: fleet.split(fleet.shards()[1]))
    while loop.time() < LIFE_S:
        fleet.put(RECORDS_EACH)
        await asyncio.sleep(PUT_EVERY_S)


async def _make_up(fleet: Fleet, dead: Member) -> None:
    [survivor] = [member for member in fleet.members.values() if member is not dead]
    await fleet.delivered()
    assert (await survivor.stop()).is_clean
    fleet.check()
    assert not [key for key, row in fleet.rows().items() if row.owner or row.checkpoint_owner]
    assert not fleet.loop.left()


def _is_named(fleet: Fleet, dead: Member) -> bool:
    return bool(fleet.held_by(dead))
