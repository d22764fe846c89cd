"""Wherever a worker ends, the others deliver what it leaves behind: tried at some 200 await points of one short life.

Each point is a step of a Lease or Pipeline (its mailbox, its tasks, the user's hook), named by the file and line of the
frames that wait there. ``await_points`` has the life and what is checked after it.
"""

import gc
from collections.abc import Callable, Iterator

import pytest
from structlog.testing import LogCapture

from tests.kcl_py.tree.await_points import Point, end_at, every_point, sample
from tests.kcl_py.tree.fleet import Member

POINTS = {"A": 130, "B": 70}
"""A holds the shards first; B pulls some of them."""
FEWER_POINTS = {"A": 25, "B": 15}
PLACES = (
    "actors/mailbox.py",
    "kcl_py/leases/writer.py",
    "kcl_py/tree/lease_requests.py",
    "kcl_py/tree/pipeline.py",
    "tests/kcl_py/tree/diary.py",
)
"""Files in which a Lease, a Pipeline or the user's hook waits."""


def freeze(member: Member) -> None:
    """Stop for ever: no coroutine of the worker is resumed, no ``finally`` runs, what it has sent still arrives."""
    member.crash()


def cancel(member: Member) -> None:
    """Cancel every task of the worker's tree at once."""
    member.kill()


def leave(member: Member) -> None:
    """Cancel the task that holds the worker open: it drains and lets go in order."""
    member.cancel()


@pytest.fixture
def put_aside() -> Iterator[Callable[[], None]]:
    """Spare the collector what frozen workers leave behind: it would be looked through again and again."""

    def collect_and_freeze() -> None:
        gc.collect()
        gc.freeze()

    gc.disable()
    yield collect_and_freeze
    gc.enable()
    gc.unfreeze()


@pytest.mark.parametrize(
    ("end", "wanted"),
    [(cancel, POINTS), (leave, FEWER_POINTS), (freeze, POINTS)],
    ids=["cancelled", "left", "frozen"],
)
def test_fleet_delivers_every_record_when_a_worker_ends_at_any_await_point(
    end: Callable[[Member], None],
    wanted: dict[str, int],
    log: LogCapture,
    put_aside: Callable[[], None],
    record_property: Callable[[str, object], None],
) -> None:
    """No record is lost or out of order, no child early, no two workers at once, and the shards go over in time."""
    points = [point for victim, count in wanted.items() for point in sample(every_point(victim), count)]
    met: list[Point] = []
    for point in points:
        log.entries.clear()
        try:
            met.append(end_at(point, end))
        except AssertionError as broken:
            raise AssertionError(f"ended {point}: {broken}") from broken
        put_aside()
    record_property("await points", [str(point) for point in met])
    assert met == points, "a life with one seed was not the same twice"
    assert len(met) >= sum(wanted.values())
    for place in PLACES:
        assert any(place in point.place for point in met), f"no point in {place} was met"
