"""Who gets which shard: laws of balance over any fleet, and the single rules."""

from dataclasses import replace
from hashlib import blake2b
from math import ceil, log2
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcl_py.leases.assignment import Fleet, HeldOff, Plan, fair_share, plan, rendezvous
from tests.kcl_py.leases.fleets import Play, Snapshot, a_fleet, a_worker, ended, held_row, plays, rows_of


def moves_needed(loads: list[int]) -> int:
    """Count the rows that must move for nobody to have two more than another."""
    floor, more = divmod(sum(loads), len(loads))
    targets = [floor + 1] * more + [floor] * (len(loads) - more)
    return sum(max(0, load - target) for load, target in zip(sorted(loads, reverse=True), targets, strict=True))


@given(plays(limits=st.none(), states=st.just("active")))
@settings(max_examples=300, deadline=None)
def test_fleet_is_balanced_in_two_ticks_and_the_logarithm_of_what_lacks(play: Play) -> None:
    """From agreed views nobody has two more than another, soon; then nothing moves for ever."""
    total = sum(not row.has_ended for row in play.rows.values())
    lack = max(total // len(play.workers) - load for load in play.loads().values())
    free = sum(row.owner is None and not row.has_ended for row in play.rows.values())
    needed = moves_needed(list(play.loads().values()))
    assert play.settle(99) <= 2 + ceil(log2(max(1, lack)))
    assert free or play.moves == needed
    loads = play.loads().values()
    assert sum(loads) == total
    assert max(loads) - min(loads) <= 1
    moves = play.moves
    for _ in range(5):
        play.tick()
    assert play.moves == moves


@given(plays())
@settings(max_examples=300, deadline=None)
def test_limits_hold_and_nothing_is_left_that_somebody_has_room_for(play: Play) -> None:
    """A worker never goes beyond max_leases; rows stay free only when all are full; leavers give what can be given."""
    limits = {name: row.max_leases or 99 for name, row in play.workers.items()}
    stay = play.loads().keys()
    while True:
        before = play.moves
        play.tick()
        assert all(len(play.held(name)) <= limit for name, limit in limits.items())
        if play.moves == before and play.ticks > 2:
            break
        assert play.ticks < 60
    loads = play.loads()
    with_room = [name for name in stay if loads[name] < limits[name]]
    unplaced = [row for row in play.rows.values() if not row.has_ended and row.owner not in stay]
    assert not (with_room and unplaced)
    assert all(max(loads.values()) - loads[name] <= 1 for name in with_room)


@given(plays())
@settings(max_examples=200, deadline=None)
def test_leavers_shards_are_asked_for_within_two_ticks(play: Play) -> None:
    """A draining worker waits for nobody who has room."""
    room = sum((row.max_leases or 99) for row in play.workers.values() if row.state != "draining")
    total = sum(not row.has_ended for row in play.rows.values())
    play.tick()
    play.tick()
    left = [row for row in play.rows.values() if row.owner and play.workers[row.owner].state == "draining"]
    assert not left or room < total


@given(plays())
@settings(max_examples=200, deadline=None)
def test_workers_that_see_the_same_never_reach_for_the_same_row(play: Play) -> None:
    """Everybody works out the whole plan and does its own part."""
    plans = play.tick()
    wanted = [key for chosen in plans.values() for key in (*chosen.takes, *chosen.pulls)]
    assert len(wanted) == len(set(wanted))


@given(plays(), st.data())
@settings(max_examples=150, deadline=None)
def test_fleet_settles_when_views_were_stale(play: Play, data: st.DataObject) -> None:
    """Old views cost ticks, never a limit; once all see the same again, it ends as it should."""
    seen: list[Snapshot] = [play.snapshot()]
    for _ in range(6):
        seen.append(play.snapshot())
        views = {name: seen[data.draw(st.integers(max(0, len(seen) - 3), len(seen) - 1))] for name in play.workers}
        play.tick(views)
        assert all(len(play.held(name)) <= (row.max_leases or 99) for name, row in play.workers.items())
    play.settle(60)


@given(plays(), st.randoms())
@settings(max_examples=50, deadline=None)
def test_plan_does_not_depend_on_the_order_of_what_was_read(play: Play, rng: Any) -> None:
    """Tables are read in any order; the same content gives the same plan."""
    view = play.snapshot()
    me = sorted(view.workers)[0]
    rows = list(view.rows.items())
    rng.shuffle(rows)
    workers = dict(reversed(list(view.workers.items())))
    other = replace(view, rows=dict(rows), workers=workers)
    assert plan(view.fleet(me, play.held(me))) == plan(other.fleet(me, play.held(me)))


def test_rows_that_all_are_too_many_for_are_counted() -> None:
    """Limits that are too low leave shards unread, which somebody must be told."""
    rows = rows_of([None] * 2 + ["other"] * 3)
    limited = a_fleet(rows, a_worker("other", limit=3), me=a_worker("me", limit=1))
    assert plan(limited).spilled == 1
    assert plan(replace(limited, me=a_worker("me", limit=2))).spilled == 0


def test_lone_worker_takes_one_row_until_a_processor_has_initialised_and_then_the_rest() -> None:
    """A worker whose processor cannot start holds up one shard, not all."""
    rows = rows_of([None] * 5)
    first = plan(a_fleet(rows, is_initialised=False))
    assert len(first.takes) == 1
    assert plan(a_fleet(rows, is_initialised=False, mine=first.takes)) == Plan(held_off=HeldOff.NO_PROCESSOR)
    assert {*plan(a_fleet(rows, mine=first.takes)).takes, *first.takes} == set(rows)


def test_free_row_is_taken_by_its_winner_and_a_tick_later_by_anyone() -> None:
    """A winner that does not act delays a row by one tick."""
    rows = rows_of([None] * 12)
    fleet = a_fleet(rows, a_worker("other"))
    won = plan(fleet).takes
    assert 0 < len(won) < 12
    assert {*plan(replace(fleet, overdue_rows=frozenset(rows))).takes} == set(rows)


def test_winner_is_the_highest_score_below_a_fair_share() -> None:
    """Which of two workers gets a row does not depend on the third."""
    rows = rows_of([None] * 3)
    names = ["me", "a", "b"]
    expected = max(names, key=lambda name: rendezvous(name, "shardId-000000000000"))
    chosen = plan(a_fleet(rows, a_worker("a"), a_worker("b")))
    assert ("shardId-000000000000" in chosen.takes) == (expected == "me")
    assert rendezvous("w", "k") == blake2b(b"w\0k").digest()


def test_expired_row_in_a_handoff_goes_to_its_receiver_first() -> None:
    """Who was promised the row takes it when its holder dies; others a tick later."""
    key = next(key for key in map(str, range(99)) if rendezvous("me", key) > rendezvous("receiver", key))
    rows = {key: replace(held_row(key, "receiver"), checkpoint_owner="dead")}
    fleet = a_fleet(rows, a_worker("receiver"), offered={key})
    assert plan(fleet) == Plan()
    assert plan(replace(fleet, overdue_rows={key})).takes == (key,)


def test_nothing_is_pulled_for_balance_before_the_worker_has_beaten_long_enough() -> None:
    """A deploy that crashes at once takes nobody's shards, but free ones it may take."""
    rows = rows_of(["other"] * 6 + [None])
    chosen = plan(a_fleet(rows, a_worker("other"), may_pull=False))
    assert chosen.pulls == ()
    assert len(chosen.takes) == 1


def test_joining_worker_pulls_one_shard_until_a_processor_has_initialised() -> None:
    """With nothing free, the first shard is a pulled one."""
    rows = rows_of(["other"] * 4)
    assert len(plan(a_fleet(rows, a_worker("other"), is_initialised=False)).pulls) == 1
    assert plan(a_fleet(rows, a_worker("other"), is_initialised=False, may_pull=False)) == Plan(held_off=HeldOff.NEW)


def test_leavers_shards_are_pulled_before_the_worker_has_beaten_long_enough() -> None:
    """They have to go somewhere; a rolling deploy does not wait for F."""
    rows = rows_of(["leaver"] * 4)
    chosen = plan(a_fleet(rows, a_worker("leaver", state="draining"), may_pull=False))
    assert set(chosen.pulls) == set(rows)


def test_leavers_shards_go_to_the_youngest_within_a_fair_share() -> None:
    """In a rolling deploy the old workers leave next."""
    rows = rows_of(["leaver"] * 4 + ["me", "old"])
    leaver, old = a_worker("leaver", state="draining"), a_worker("old", beat=900)
    young = a_fleet(rows, leaver, old, me=a_worker("me", beat=5))
    assert plan(young).pulls == ("shardId-000000000003", "shardId-000000000002")
    assert plan(replace(young, me=a_worker("me", beat=1000))).pulls == ("shardId-000000000001", "shardId-000000000000")


def test_leavers_shards_wait_a_tick_for_a_worker_that_initialises_its_first_processor() -> None:
    """Else a deploy whose steps follow each other fast has the old workers take what they let go of next."""
    rows = rows_of(["leaver"] * 4 + ["me"])
    leaver, new = a_worker("leaver", state="draining"), a_worker("new", state="starting", beat=1)
    fleet = a_fleet(rows, leaver, new)
    assert plan(fleet).pulls == ("shardId-000000000000",)
    assert set(plan(replace(fleet, overdue_workers={"leaver"})).pulls) == set(fleet.rows) - {"shardId-000000000004"}
    me = a_worker("me", state="starting", beat=1)
    first = a_fleet(rows_of(["leaver"] * 4), leaver, a_worker("old"), me=me, is_initialised=False, may_pull=False)
    assert plan(first).pulls == ("shardId-000000000003",)


def test_leavers_shards_go_to_anyone_when_the_youngest_does_not_act() -> None:
    """A tick later whoever has room asks for the rest, whatever its share."""
    rows = rows_of(["leaver"] * 4)
    leaver = a_worker("leaver", state="draining")
    fleet = a_fleet(rows, leaver, a_worker("younger", beat=1))
    assert len(plan(fleet).pulls) == 2
    assert set(plan(replace(fleet, overdue_workers={"leaver"})).pulls) == set(rows)


def test_full_worker_is_not_expected_to_pull() -> None:
    """The row that its donor took last goes to one with room."""
    rows = rows_of(["full"] + ["me"] * 2 + ["other"] * 5)
    assert plan(a_fleet(rows, a_worker("full", limit=1), a_worker("other"))).pulls == ("shardId-000000000007",)


def test_pull_prefers_what_the_donor_took_last() -> None:
    """A shard that has just moved moves on rather than one that has settled."""
    rows = {f"s{at}": held_row(f"s{at}", "other", taken_ms=at) for at in (5, 9, 1, 7)}
    assert plan(a_fleet(rows, a_worker("other"))).pulls == ("s9",)


def test_donors_are_pulled_from_by_load() -> None:
    """Half of what lacks is asked for at once, from the most loaded first."""
    rows = rows_of(["a"] * 10 + ["b"] * 2)
    chosen = plan(a_fleet(rows, a_worker("a"), a_worker("b")))
    assert [rows[key].owner for key in chosen.pulls] == ["a", "a"]


def test_nothing_is_pulled_when_the_difference_is_one() -> None:
    """A move would only swap the two."""
    assert plan(a_fleet(rows_of(["other"] * 3 + ["me"] * 2), a_worker("other"))) == Plan()


def test_row_that_is_asked_for_counts_for_its_receiver_and_is_not_asked_for_again() -> None:
    """Handoffs under way are load of who will have them."""
    asked = {key: replace(row, owner="me", checkpoint_owner="other") for key, row in rows_of(["other"] * 2).items()}
    rows = asked | {f"s{n}": held_row(f"s{n}", "other") for n in range(3)}
    assert plan(a_fleet(rows, a_worker("other"))) == Plan()
    giving = {key: replace(held_row(key, "other"), checkpoint_owner="me") for key in ("g1", "g2")}
    rows = rows_of(["other"] * 5) | giving
    assert len(plan(a_fleet(rows, a_worker("other"), mine=frozenset(giving))).pulls) == 2


def test_ended_and_blocked_rows_count_nowhere() -> None:
    """A table full of finished shards makes nobody busy."""
    rows = rows_of(["other"] * 8)
    blocked = frozenset(list(rows)[4:7])
    for owner in (None, "other"):  # the Java client leaves the name
        done = {key: replace(ended(row), owner=owner) for key, row in list(rows.items())[:4]}
        fleet = a_fleet(rows | done, a_worker("other"), offered=(), blocked=blocked)
        assert plan(fleet) == Plan()
        limited = replace(fleet, me=a_worker("me", limit=1), others=[])
        assert plan(limited).spilled == 0


def test_resting_row_is_left_to_others() -> None:
    """What failed to open here is not tried again at once."""
    rows = rows_of([None, None])
    assert plan(a_fleet(rows, resting=["shardId-000000000000"])).takes == ("shardId-000000000001",)


def test_balance_pulls_another_row_than_one_that_rests_here() -> None:
    """Such as one that was let go because somebody asked for that: it would come straight back."""
    rows = {key: held_row(key, "b", taken_ms=taken) for taken, key in enumerate(("s-0", "s-1", "s-2"))}
    assert plan(a_fleet(rows, a_worker("b"))).pulls == ("s-2",)
    assert plan(a_fleet(rows, a_worker("b"), resting={"s-2"})).pulls == ("s-1",)
    assert plan(a_fleet(rows, a_worker("b"), resting=set(rows))).pulls == ()


def test_draining_worker_wants_nothing() -> None:
    """Who leaves takes nothing on."""
    assert plan(a_fleet(rows_of([None, "other"]), me=a_worker("me", state="draining"))) == Plan()


def test_dead_owner_is_no_donor() -> None:
    """Rows of a worker that has left wait until they expire."""
    assert plan(a_fleet(rows_of(["dead"] * 6))) == Plan()


@pytest.mark.parametrize(
    ("total", "limits", "share"),
    [(10, [99, 99, 99], 4), (9, [99, 99, 99], 3), (10, [1, 99, 99], 5), (9, [1, 2], 9), (0, [5], 0)],
)
def test_fair_share_fills_the_smaller_workers_first(total: int, limits: list[int], share: int) -> None:
    """Who may have less leaves more for the others."""
    assert fair_share(total, limits) == share


@pytest.mark.parametrize(("mine", "others", "taken"), [(0, 0, 1), (1, 1, 1), (2, 2, 1), (0, 3, 2), (2, 0, 0)])
def test_children_stay_where_their_parent_was_read_within_a_fair_share(mine: int, others: int, taken: int) -> None:
    """Whoever of the two wins the hash; what is beyond the share is left to it."""
    workers = [a_worker(name) for name in ("me/0", "other/0")]
    held = {f"m{n}": held_row(f"m{n}", "me/0") for n in range(mine)}
    held |= {f"o{n}": held_row(f"o{n}", "other/0") for n in range(others)}
    for child in (f"child{n}" for n in range(20)):
        born = {child: held_row(child, None), f"{child}b": held_row(f"{child}b", None)}
        fleet = Fleet(
            me=workers[0],
            others=workers[1:],
            rows=held | born,
            offered=set(born),
            born=set(born),
            mine={key for key in held if key.startswith("m")},
            is_initialised=True,
        )
        assert len(plan(fleet).takes) == taken
