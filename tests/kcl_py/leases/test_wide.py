"""What speaks for reading a single row of a large table: its worker says so, or says nothing any more."""

import pytest

from kcl_py.leases.row import LeaseRow, WorkerRow
from kcl_py.leases.view import QUIET, View
from kcl_py.leases.wide import LARGE, ROWS_A_SECOND, Silences, changed, period_s

ME, OTHER = "me/1", "other/1"


@pytest.mark.parametrize(("rows", "expected_s"), [(0, 0.0), (LARGE, 0.0), (LARGE + 100, 7.0), (9_000, 30.0)])
def test_table_is_read_less_often_the_larger_it_is(rows: int, expected_s: float) -> None:
    """Up to 2,000 rows nothing changes; beyond, a worker reads as many rows a second however many there are."""
    assert period_s(rows) == expected_s
    assert ROWS_A_SECOND == 300


def test_news_name_the_rows_that_have_changed() -> None:
    """Each of the others' news since the last look is about one row, or none."""
    before = {OTHER: WorkerRow(OTHER, news=5, changed=("a", "b"))}
    assert changed(before, [WorkerRow(OTHER, news=5, changed=("a", "b"))], ME) == frozenset()
    assert changed(before, [WorkerRow(OTHER, news=7, changed=("a", "b", "c", "d"))], ME) == frozenset("cd")
    assert changed(before, [WorkerRow(OTHER, news=6, changed=("b", ""))], ME) == frozenset()
    assert changed({}, [WorkerRow(OTHER, news=1, changed=("x",)), WorkerRow(ME, news=9)], ME) == frozenset("x")


@pytest.mark.parametrize(
    "row",
    [
        WorkerRow(OTHER, news=8, changed=("c", "d")),
        WorkerRow(OTHER, news=6),  # of a version that names none
        WorkerRow(OTHER, news=2, changed=("a", "b")),  # begun anew
    ],
    ids=["too many", "none named", "fewer than before"],
)
def test_more_news_than_are_named_call_for_the_whole_table(row: WorkerRow) -> None:
    """What cannot be told from the row is not guessed."""
    assert changed({OTHER: WorkerRow(OTHER, news=5)}, [row], ME) is None


def test_worker_is_silent_when_its_row_stands_still_for_longer_than_a_beat_takes() -> None:
    """By reads alone: a reader that paused finds nobody silent at its first look."""
    silences = Silences(5.0)
    for at, beat in ((0.0, 1), (4.9, 1), (5.2, 2), (100.0, 3)):
        silences.note([WorkerRow(OTHER, beat=beat)], begun_at=at, ended_at=at + 0.1)
        assert silences.since_at(OTHER) is None
    silences.note([WorkerRow(OTHER, beat=3)], begun_at=105.2, ended_at=105.3)
    silences.note([WorkerRow(OTHER, beat=3)], begun_at=106.2, ended_at=106.3)
    assert silences.since_at(OTHER) == 105.3
    silences.note([WorkerRow(OTHER, beat=4)], begun_at=107.2, ended_at=107.3)
    assert silences.since_at(OTHER) is None


def test_worker_that_has_left_is_silent_since_then_and_an_unknown_one_always_was() -> None:
    """Rows may go on naming either."""
    silences = Silences(5.0)
    silences.note([WorkerRow(OTHER)], begun_at=0.0, ended_at=0.1)
    silences.note([], begun_at=1.0, ended_at=1.1)
    assert silences.since_at(OTHER) == 1.1
    assert silences.since_at("stranger/1") == float("-inf")
    silences.keep([])
    assert silences.since_at(OTHER) == float("-inf")


def test_rows_of_a_silent_worker_are_read_once_and_again_when_they_would_expire() -> None:
    """So they expire F after the silence was noticed, though the whole table was read long before."""
    view = View(ME, failover_s=10.0, exclusive_id=False)
    view.note_members((WorkerRow(OTHER, beat=1),), begun_at=0.0, ended_at=0.1)
    rows = {"a": LeaseRow("a", counter=1, owner=OTHER), "mine": LeaseRow("mine", counter=1, owner=ME)}
    view.note_scan(rows, begun_at=0.0, ended_at=0.1)
    assert view.silent_rows(50.0) == []
    view.note_members((WorkerRow(OTHER, beat=2),), begun_at=50.0, ended_at=50.1)
    silent_at = 50.1 + 10.0 * QUIET + 0.1
    view.note_members((WorkerRow(OTHER, beat=2),), begun_at=silent_at, ended_at=silent_at)
    assert view.silent_rows(silent_at) == ["a"]
    view.note_row(LeaseRow("a", counter=9, owner=OTHER), begun_at=56.0, ended_at=56.1)
    assert view.silent_rows(66.0) == []
    assert view.silent_rows(66.2) == ["a"]
    view.note_row(LeaseRow("a", counter=9, owner=OTHER), begun_at=66.2, ended_at=66.3)
    assert view.offers["a"].how == "expired"
    assert view.silent_rows(70.0) == []
