"""Makes the plan of a bad life smaller for as long as the same law is broken: what is left tells what it takes."""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from tests.sim.plan import Plan, Work
from tests.sim.run import Result

MOST_TRIES = 300
TAIL_S = 1.0
"""How long after the last event a shortened life becomes calm."""


def shrink(plan: Plan, result: Result, live: Callable[[Plan], Result]) -> tuple[Plan, Result]:
    """Return a smaller plan that breaks one of the laws that ``plan`` broke, and how that life goes.

    Args:
        plan: one whose life is bad.
        result: of it.
        live: lives another plan.
    """
    laws, tries, is_smaller = result.laws, 0, True
    while is_smaller:
        is_smaller = False
        for candidate in _smaller(plan):
            tries += 1
            if tries > MOST_TRIES:
                return plan, result
            found = live(candidate)
            if found.laws & laws:
                plan, result, is_smaller = candidate, found, True
                break
    return plan, result


def _smaller(plan: Plan) -> Iterator[Plan]:
    """Yield plans that are smaller in one way, the boldest first."""
    if plan.events:
        yield from _without_events(plan)
    if plan.weather:
        yield replace(plan, weather=())
        for number in range(len(plan.weather)):
            yield replace(plan, weather=plan.weather[:number] + plan.weather[number + 1 :])
    if plan.work != Work():
        yield replace(plan, work=Work())
    if plan.late:
        yield replace(plan, late=0.0)
    if plan.stale_s:
        yield replace(plan, stale_s=0.0)
    for slot in range(plan.slots):
        events = tuple(event for event in plan.events if event.slot != slot)
        if len(events) < len(plan.events):
            yield replace(plan, events=events)
    for shards in {plan.shards // 2, plan.shards - 1} - {0, plan.shards}:
        yield replace(plan, shards=shards)
    calm_s = max((event.at_s + event.for_s for event in plan.events), default=0.0) + TAIL_S
    if calm_s < plan.calm_s:
        yield replace(plan, calm_s=calm_s)


def _without_events(plan: Plan) -> Iterator[Plan]:
    """Yield the plan without its halves, quarters, and so on to single events."""
    size = len(plan.events)
    while size := size // 2:
        for start in range(0, len(plan.events), size):
            yield replace(plan, events=plan.events[:start] + plan.events[start + size :])
