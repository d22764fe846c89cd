"""What happened between two looks, in sentences."""

from dataclasses import replace
from typing import Any

import pytest

from kcl_py.changes import changes
from kcl_py.config import Config
from kcl_py.leases.row import Halt, LeaseRow, Native, Paused, WorkerRow
from kcl_py.status import report

CONFIG = Config(app="demo", stream="flights", processor="m:C")
NOW_S = 1_767_258_000.0
HALTED = Native(owner="a", halted=Halt("ValueError: no", "49"))


def at(*rows: LeaseRow | WorkerRow) -> dict[str, Any]:
    """Return the report of these rows."""
    leases = [row for row in rows if isinstance(row, LeaseRow)]
    workers = [row for row in rows if isinstance(row, WorkerRow)]
    return report(CONFIG, leases, workers, NOW_S)


def worker(name: str, state: str, seen_s_ago: int = 1) -> WorkerRow:
    return WorkerRow(name, state=state, updated_s=int(NOW_S) - seen_s_ago)


FREE, HELD = LeaseRow("s"), LeaseRow("s", owner="a")
ASKED = LeaseRow("s", owner="b", checkpoint_owner="a")
PAUSE = Paused(5, "no database")
PAUSING = LeaseRow("s", owner="a", native=Native(owner="a", paused=PAUSE))
PAUSED = LeaseRow("s", owner="a", native=Native(owner="a", paused=PAUSE, quiet_for=5))
OF_ALL = Native(owner="a", paused=Paused(5, is_of_stream=True))


def taken(why: str) -> LeaseRow:
    """Return the row that b has taken."""
    return LeaseRow("s", owner="b", native=Native(owner="b", why=why))


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ((FREE,), (HELD,), ["s was taken by a"]),
        ((HELD,), (LeaseRow("s", owner="b"),), ["s went from a to b"]),
        ((HELD,), (taken("expired"),), ["s went from a to b: it had expired"]),
        ((ASKED,), (taken("leaver"),), ["s went from a to b: its holder leaves"]),
        ((HELD,), (taken("balance"),), ["s went from a to b: for balance"]),
        ((FREE,), (taken("free"),), ["s was taken by b"]),
        ((ASKED,), (HELD,), ["s is kept by a, not given to b"]),
        ((HELD,), (FREE,), ["s was let go by a"]),
        ((HELD,), (ASKED,), ["s is asked for by b, held by a"]),
        ((ASKED,), (LeaseRow("s", owner="b"),), ["s went from a to b"]),
        ((HELD,), (LeaseRow("s", checkpoint="SHARD_END"),), ["s is read to its end, by a"]),
        ((HELD,), (HELD, LeaseRow("t", parents=("s",))), ["t has a row, after s"]),
        ((), (HELD,), ["s has a row", "s was taken by a"]),
        ((HELD,), (), ["s has no row any more"]),
        ((HELD,), (LeaseRow("s", owner="a", native=HALTED),), ["s has halted: ValueError: no, at 49"]),
        ((LeaseRow("s", owner="a", native=HALTED),), (HELD,), ["s is halted no more"]),
        ((FREE,), (LeaseRow("s", native=Native(fault="no way")),), ["s could not be run: no way"]),
        ((HELD,), (PAUSING,), ["s is paused: no database"]),
        ((HELD,), (LeaseRow("s", owner="a", native=OF_ALL),), ["s is paused with the whole stream"]),
        ((PAUSING,), (PAUSED,), ["s has come to rest"]),
        ((PAUSED,), (HELD,), ["s is paused no more"]),
        ((), (worker("a", "starting"),), ["a is there, starting"]),
        ((worker("a", "starting"),), (worker("a", "active"),), ["a is active, was starting"]),
        (
            (worker("a", "starting"),),
            (replace(worker("a", "active"), held_off="no reason"),),
            ["a is active, was starting", "a takes no more shards: no reason"],
        ),
        ((worker("a", "active"),), (worker("a", "active", 60),), ["a is silent, was active"]),
        ((worker("a", "draining"),), (), ["a has left"]),
    ],
)
def test_each_change_is_one_sentence(
    before: tuple[LeaseRow | WorkerRow, ...], after: tuple[LeaseRow | WorkerRow, ...], said: list[str]
) -> None:
    """In words for people, workers first."""
    assert changes(at(*before), at(*after)) == said


def test_what_only_moves_on_is_no_change() -> None:
    """Heartbeats, checkpoints and lags are in the table."""
    later = LeaseRow("s", owner="a", counter=9, checkpoint="77", native=Native(owner="a", lag_ms=3, lag_at_ms=4))
    assert changes(at(HELD, worker("a", "active")), at(later, worker("a", "active", 2))) == []


def test_nothing_in_a_sentence_can_steer_a_terminal() -> None:
    """Texts of exceptions are the processor's."""
    evil = LeaseRow("s", owner="a", native=Native(owner="a", halted=Halt("\x1b[2J", "49")))
    assert changes(at(HELD), at(evil)) == ["s has halted: \\x1b[2J, at 49"]
