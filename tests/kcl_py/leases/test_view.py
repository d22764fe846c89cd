"""What one worker knows of the fleet: who lives, which rows may be taken and how, and since when."""

from dataclasses import replace

import pytest

from kcl_py.leases.lineage import NewLease
from kcl_py.leases.row import LeaseRow, WorkerRow
from kcl_py.leases.view import How, View
from kcl_py.sources.source import ShardInfo

ME, OTHER = "me/1", "other/2"
F = 10.0


def a_view(*, exclusive_id: bool = False) -> View:
    return View(ME, failover_s=F, exclusive_id=exclusive_id)


def scan(view: View, *rows: LeaseRow, at: float) -> None:
    """Take in a scan that took no time."""
    view.note_scan({row.key: row for row in rows}, begun_at=at, ended_at=at)


def look(view: View, *rows: WorkerRow, at: float) -> tuple[tuple[str, ...], bool]:
    """Take in the worker table; return who is gone and whether there is news."""
    turnover = view.note_members(rows, begun_at=at, ended_at=at)
    return turnover.gone, turnover.has_news


ROW = LeaseRow("shard", counter=3)
HELD = replace(ROW, owner=OTHER)


@pytest.mark.parametrize(
    ("row", "how"),
    [
        (ROW, How.FREE),
        (HELD, None),
        (replace(ROW, owner=ME), How.OWN),
        (replace(ROW, owner=OTHER, checkpoint_owner=ME), How.OWN),
        (replace(ROW, owner=ME, checkpoint_owner=OTHER), How.AWAIT),
        (replace(ROW, owner="me/0"), None),
        (replace(ROW, checkpoint="SHARD_END"), None),
    ],
)
def test_row_is_on_offer_as_its_owners_say(row: LeaseRow, how: How | None) -> None:
    """The actual owner counts: during a handoff that is the one who still holds."""
    view = a_view()
    scan(view, row, at=0.0)
    assert (view.offers["shard"].how if "shard" in view.offers else None) is how


def test_row_of_an_earlier_run_is_mine_only_with_an_exclusive_id() -> None:
    """The promise is the user's: without it the row has to expire."""
    view = a_view(exclusive_id=True)
    scan(view, replace(ROW, owner="me/0"), replace(HELD, key="other", owner="menace/0"), at=0.0)
    assert {key: offer.how for key, offer in view.offers.items()} == {"shard": How.OWN}


def test_row_expires_by_two_looks_of_this_worker_alone() -> None:
    """Begun more than F after the end of the first that saw its counter."""
    view = a_view()
    scan(view, HELD, at=0.0)
    scan(view, HELD, at=10.0)
    assert not view.offers
    scan(view, HELD, at=10.1)
    assert view.offers["shard"].how is How.EXPIRED
    scan(view, replace(HELD, counter=4), at=11.0)
    assert not view.offers, "it lives after all"


def test_row_that_is_read_alone_expires_like_one_that_was_scanned() -> None:
    """A look at the one row that should have expired saves waiting for the next scan."""
    view = a_view()
    scan(view, HELD, at=0.0)
    assert view.to_reread(4.9) == []
    assert view.to_reread(5.1) == [("shard", 10.0)]
    view.note_row(HELD, begun_at=10.02, ended_at=10.03)
    assert view.offers["shard"].how is How.EXPIRED
    assert view.to_reread(10.03) == []


def test_row_that_has_ended_is_not_read_again() -> None:
    """It never moves again, and costs no read each tick for that."""
    view = a_view()
    scan(view, HELD, at=0.0)
    scan(view, replace(HELD, owner=None, checkpoint="SHARD_END"), at=1.0)
    assert view.to_reread(100.0) == []


def test_row_tells_since_when_it_has_stood_still_only_for_the_counter_it_has() -> None:
    """Whoever waits for it must not count from what another counter did."""
    view = a_view()
    scan(view, HELD, at=3.0)
    scan(view, HELD, at=5.0)
    assert view.seen_at(HELD) == 3.0
    assert view.seen_at(replace(HELD, counter=4)) is None
    assert view.seen_at(replace(HELD, key="unknown")) is None


def test_offer_keeps_the_instant_it_was_first_seen_as_such() -> None:
    """Others come one tick after the winner, so this instant must not move with each scan."""
    view = a_view()
    scan(view, ROW, at=1.0)
    scan(view, ROW, at=2.0)
    assert view.offers["shard"].since_at == 1.0
    assert (view.overdue_rows(0.9), view.overdue_rows(1.0)) == (set(), {"shard"})
    scan(view, at=3.0)
    assert not view.offers


def test_worker_is_alive_until_its_beat_has_stood_still_for_f() -> None:
    """And then it is gone once, which is news."""
    view = a_view()
    assert look(view, WorkerRow(ME), WorkerRow(OTHER, beat=1), at=0.0) == ((), True)
    assert look(view, WorkerRow(ME), WorkerRow(OTHER, beat=1), at=9.0) == ((), False)
    assert [row.worker for row in view.others()] == [OTHER]
    assert look(view, WorkerRow(ME), WorkerRow(OTHER, beat=1), at=10.1) == ((OTHER,), True)
    assert view.others() == []
    assert look(view, WorkerRow(ME), WorkerRow(OTHER, beat=1), at=10.2) == ((), False)
    assert look(view, WorkerRow(ME), WorkerRow(OTHER, beat=2), at=10.3) == ((), True), "it was only slow"


def test_nobody_looks_dead_after_a_pause_of_the_reader() -> None:
    """One look after a long sleep is a first look, unless the beat is the very same."""
    view = a_view()
    look(view, WorkerRow(OTHER, beat=1), at=0.0)
    assert look(view, WorkerRow(OTHER, beat=9), at=1000.0)[0] == ()


def test_own_row_never_looks_dead_to_me() -> None:
    """Whatever the table says, I am here."""
    view = a_view()
    look(view, WorkerRow(ME, beat=1), at=0.0)
    look(view, WorkerRow(ME, beat=1), at=1000.0)
    assert ME in (view.members or {})


def test_raised_news_of_another_are_news_and_mine_are_not() -> None:
    """Everybody scans when somebody says so."""
    view = a_view()
    look(view, WorkerRow(ME, news=1), WorkerRow(OTHER, beat=1, news=1), at=0.0)
    assert not look(view, WorkerRow(ME, news=2), WorkerRow(OTHER, beat=2, news=1), at=1.0)[1]
    assert look(view, WorkerRow(ME, news=2), WorkerRow(OTHER, beat=3, news=2), at=2.0)[1]


@pytest.mark.parametrize(
    ("other", "takes"),
    [
        (WorkerRow(OTHER, state="active"), True),
        (WorkerRow(OTHER, state="starting"), True),
        (WorkerRow(OTHER, state="draining"), False),
        (WorkerRow(OTHER, state="active", held=2, max_leases=2), False),
        (WorkerRow(OTHER, state="active", held=1, max_leases=2), True),
        (WorkerRow(ME, state="active"), False),
    ],
)
def test_leaver_waits_only_for_one_who_can_take(other: WorkerRow, takes: bool) -> None:
    """A worker with room that stays; never oneself."""
    view = a_view()
    look(view, other, at=0.0)
    assert view.has_taker() is takes


def test_owners_of_living_rows_stand_in_for_a_worker_table() -> None:
    """Where there is none, whoever's rows still move counts as a worker with that load."""
    view = a_view()
    rows = [replace(HELD, key=f"shard-{number}") for number in range(3)]
    scan(view, *rows, replace(ROW, key="mine", owner=ME), replace(ROW, key="free"), at=0.0)
    assert [(row.worker, row.held) for row in view.others()] == [(OTHER, 3)]


def test_vanished_row_may_be_made_again_only_after_f_without_it() -> None:
    """Its holder may still be handing over; a row that never was may be made at once."""
    view = a_view()
    scan(view, HELD, at=0.0)
    for at in (1.0, 5.0, 9.0):
        scan(view, at=at)
    assert view.may_make("new", 9.0)
    assert not view.may_make("shard", 11.0)
    assert view.may_make("shard", 11.1)
    scan(view, HELD, at=12.0)
    assert not view.may_make("shard", 12.1)


def test_row_is_not_missed_while_nobody_looks() -> None:
    """It may have been made, taken and deleted again during a pause: its holder has yet to notice."""
    view = a_view()
    scan(view, HELD, at=0.0)
    scan(view, at=1.0)
    assert not view.may_make("shard", 20.0)
    for at in (20.0, 24.0, 28.0):
        scan(view, at=at)
    assert not view.may_make("shard", 30.0)
    assert view.may_make("shard", 30.1)


@pytest.mark.parametrize(
    ("rows", "held", "at_once"),
    [((), None, True), ((), 0, True), ((HELD,), None, True), ((HELD,), 0, False), ((), 1, False)],
    ids=["alone", "all are new", "nobody else lives", "others have rows", "all rows are gone"],
)
def test_row_that_a_newcomer_misses_is_made_at_once_only_if_nobody_can_hold_it(
    rows: tuple[LeaseRow, ...], held: int | None, at_once: bool
) -> None:
    """It may have been deleted, even with all others, before the newcomer looked; after F its holder has noticed."""
    view = a_view()
    look(view, *(WorkerRow(OTHER, state="active", held=count) for count in (held,) if count is not None), at=0.0)
    scan(view, *rows, at=0.0)
    assert view.may_make("missed", 1.0) is at_once
    for at in (4.0, 8.0):
        scan(view, *rows, at=at)
    assert view.may_make("missed", 10.1)


def test_shards_are_listed_by_the_winner_of_a_hash_among_those_who_stay() -> None:
    """Of three workers one; another one when he drains or dies, and each alone."""
    names = [ME, OTHER, "third/3"]

    def winners(*states: str) -> list[str]:
        rows = [WorkerRow(name, state=state) for name, state in zip(names, states, strict=False)]
        found = []
        for row in rows:
            view = View(row.worker, failover_s=F, exclusive_id=False)
            look(view, *rows, at=0.0)
            found += [row.worker] * (view.is_auditor() and row.state != "draining")
        return found

    [first] = winners("active", "active", "active")
    [second] = winners(*("draining" if name == first else "active" for name in names))
    assert second != first
    assert winners("starting") == [ME]


def test_row_has_ended_since_it_was_first_seen_at_its_end() -> None:
    """By this worker's own clock, and only while it is there."""
    view, done = a_view(), replace(HELD, owner=None, checkpoint="SHARD_END", counter=4)
    scan(view, HELD, at=1.0)
    scan(view, done, at=5.0)
    scan(view, done, at=9.0)
    assert view.ended_before(5.0) == frozenset()
    assert view.ended_before(5.1) == {"shard"}
    scan(view, at=10.0)
    assert view.ended_before(99.0) == frozenset()


def test_shard_is_forgotten_once_it_has_no_row_and_is_not_listed() -> None:
    """A stream that is resharded for years leaves nothing behind; what is listed may yet be made again."""
    view = a_view()
    for at in (0.0, 4.0, 8.0, 12.0):
        scan(view, *([ROW] if at == 0.0 else []), at=at)
    view.keep({"shard"})
    new = NewLease(ShardInfo("shard"), "TRIM_HORIZON")
    assert view.first_row(new, stream="s:1", now_s=1_700_000_000).counter == 1_700_000_000
    view.keep(set())
    assert view.first_row(new, stream="s:1", now_s=1_700_000_000).counter == 0
