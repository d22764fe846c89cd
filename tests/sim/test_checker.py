"""Each law of the checker notices what breaks it, in a history written by hand."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.sim.checker import LAWS, broken
from tests.sim.checker.story import END

Line = dict[str, Any]


def line(t: float, event: str, **fields: Any) -> Line:
    return {"t": t, "e": event, **fields}


def put(n: int, shard: str = "s0", key: str = "k") -> Line:
    return line(0.0, "put", n=n, key=key, shard=shard, seq=str(100 + n))


def batch(t: float, *records: int, w: str = "a", processor: int = 0, shard: str = "s0", epoch: int = 1) -> Line:
    more = {"id": processor, "epoch": epoch, "records": list(records), "again": False}
    return line(t, "batch", w=w, processor=processor, shard=shard, **more)


def call(t: float, n: int, number: int = 0, mark: int = 0, **more: Any) -> Line:
    """Of ``process``, with one record."""
    return batch(t, n, **more) | {"id": number, "marks": [mark], "again": mark > 1}


def failed(
    t: float, *left: int, w: str = "a", number: int = 0, rejected: bool = False, after_s: float = 0.0
) -> list[Line]:
    said = {"rejected": list(left) if rejected else [], "after_s": after_s}
    return [line(t, "done", w=w, id=number, left=list(left)), line(t, "returned", w=w, id=number, done=False, **said)]


def away(t: float, number: int) -> list[Line]:
    """Of a call of ``process`` whose record goes to a batcher."""
    return [line(t, "returned", w="a", id=number, done=False, away="k")]


def gathered(t: float, *records: int, number: int) -> Line:
    """Of ``handle_batch``."""
    return batch(t, *records) | {"id": number, "marks": [0] * len(records), "key": "k"}


def gave_up(t: float, n: int, event: str, attempts: int = 1, rejected: bool = False) -> list[Line]:
    owned = {"w": "a", "processor": 0, "shard": "s0", "epoch": 1, "n": n}
    return [line(t, "given_up", attempts=attempts, rejected=rejected, **owned), line(t, event, **owned)]


def done(t: float, w: str = "a", processor: int = 0) -> list[Line]:
    return [line(t, "done", w=w, id=processor), line(t, "returned", w=w, id=processor, done=True)]


def row(t: float, checkpoint: str, w: str = "a", shard: str = "s0", owner: str | None = "A", token: str = "1") -> Line:
    named = {"owner": owner, "asked": None, "holder": owner, "token": token, "counter": int(token)}
    return line(t, "row", w=w, shard=shard, checkpoint=checkpoint, **named)


DONE: list[tuple[str, Line]] = [("done", {}), ("returned", {"done": True})]
START = [
    line(0.0, "life", seed=0, failover_s=3.0, strategy="count"),
    line(
        0.0, "up", w="a", owner="A", stores_within_s=1.0, ahead_records=1, concurrency=2, retries=1, batchers=[(1, 1)]
    ),
    line(0.0, "up", w="b", owner="B", stores_within_s=None, ahead_records=1, concurrency=2, retries=1),
]
FINISH = [line(90.0, "calm"), line(99.0, "left", tasks=[]), line(99.0, "shard", shard="s0", parents=[])]
TAKEN = row(1.0, "TRIM_HORIZON")
READ = [put(0), TAKEN, batch(2.0, 0), *done(3.0)]
ASKED = [line(3.5, "ask", shard="s0", id="r0", kind="seek", before=0),
    row(3.5, "100") | {"request": "r0", "kind": "seek"}]  # fmt: skip
MOVED = [*READ, *ASKED, row(4.0, "TRIM_HORIZON", token="2")]
CHILD = line(99.0, "shard", shard="s1", parents=["s0"])

BAD: dict[str, list[Line]] = {
    "every_record_is_finished": [*READ, put(1)],
    "nothing_is_passed_over": [put(0, key="j"), put(1), TAKEN, batch(2.0, 1), *done(3.0),
        row(3.5, "TRIM_HORIZON", token="2"), batch(4.0, 0, processor=1, epoch=2), *done(5.0, processor=1)],
    "a_processor_goes_on_where_it_is": [put(0), TAKEN, batch(2.0, 0) | {"again": True}, *done(3.0)],
    "nothing_finished_comes_again": [*READ, batch(4.0, 0, processor=1), *done(5.0, processor=1)],
    "what_is_asked_for_is_read": MOVED,
    "what_is_paused_rests": [put(0), TAKEN, row(1.5, "TRIM_HORIZON") | {"paused": "7", "quiet": "7"},
        row(1.7, "TRIM_HORIZON", owner="B", token="2") | {"paused": "7"}, batch(2.0, 0), *done(3.0)],
    "keys_keep_their_order": [put(0), put(1, "s1"), TAKEN, row(1.0, "TRIM_HORIZON", shard="s1"),
        batch(2.0, 0), batch(2.0, 1, shard="s1", processor=1), *done(3.0), *done(3.0, processor=1)],
    "effects_are_applied_once": [*READ, row(4.0, "100"), line(99.0, "effects", times=[[0, 2]])],
    "ownerships_are_disjoint": [put(0), TAKEN, row(1.5, "TRIM_HORIZON", w="b", owner="B", token="2"),
        batch(2.0, 0), batch(2.5, 0, w="b", processor=1, epoch=2), *done(3.0), *done(3.0, w="b", processor=1)],
    "who_hands_over_has_taken": [put(0), batch(2.0, 0), *done(3.0)],
    "epochs_grow": [put(0), row(1.0, "TRIM_HORIZON", token="2"), batch(2.0, 0, epoch=2), *done(3.0),
        row(3.5, "TRIM_HORIZON", w="b", owner="B"), batch(4.0, 0, w="b", processor=1),
        *done(5.0, w="b", processor=1)],
    "parents_come_first": [put(0), put(1, "s1", key="j"), TAKEN, row(1.0, "TRIM_HORIZON", shard="s1"), CHILD,
        batch(2.0, 0), batch(2.5, 1, shard="s1", processor=1), *done(3.0), *done(3.0, processor=1)],
    "what_failed_comes_again_as_what_it_is": [put(0), TAKEN, call(2.0, 0), *failed(3.0, 0), call(4.0, 0, 1, mark=3),
        *done(5.0, processor=1)],
    "nothing_is_given_up_early": [put(0), TAKEN, call(2.0, 0), *failed(3.0, 0), *gave_up(3.0, 0, "skipped")],
    "what_was_in_hand_is_marked": [put(0), TAKEN, call(2.0, 0), *done(3.0),
        row(3.5, "TRIM_HORIZON", w="b", owner="B", token="2"), call(4.0, 0, 1, w="b", processor=1, epoch=2),
        *done(5.0, w="b", processor=1)],
    "a_lane_is_serial": [put(0), TAKEN, call(2.0, 0), call(2.5, 0, 1, mark=-1, w="a"), *done(3.0),
        *done(3.0, processor=1)],
    "what_halts_rests": [put(0), put(1, key="j"), TAKEN, call(2.0, 0), *failed(3.0, 0, rejected=True),
        *gave_up(3.0, 0, "halts", rejected=True), call(4.0, 1, 1), *done(5.0, processor=1),
        row(6.0, "TRIM_HORIZON", token="2"), call(7.0, 0, 2, mark=-1, processor=2, epoch=2), *done(8.0, processor=2)],
    "no_more_are_in_work_than_may_be": [*(put(n, key=f"{n}") for n in range(3)), TAKEN,
        *(call(2.0, n, n) for n in range(3)), *(each for n in range(3) for each in done(3.0, processor=n))],
    "a_batcher_keeps_its_order": [put(0), put(1), TAKEN, call(2.0, 0), *away(2.1, 0), call(2.2, 1, 1), *away(2.3, 1),
        gathered(3.0, 1, number=2), *done(3.1, processor=2), gathered(3.2, 0, number=3), *done(3.3, processor=3)],
    "batches_are_no_larger_than_may_be": [put(0), put(1, key="j"), TAKEN, call(2.0, 0), *away(2.1, 0),
        call(2.2, 1, 1), *away(2.3, 1), gathered(3.0, 0, 1, number=2), *done(3.1, processor=2)],
    "checkpoints_are_true": [put(0), TAKEN, batch(2.0, 0), row(2.5, "100"), *done(3.0)],
    "only_the_owner_writes_a_checkpoint": [*READ, row(4.0, "100", w="b")],
    "an_end_is_final": [*READ, row(4.0, END, owner=None), row(5.0, END, w="b", owner="B", token="2")],
    "requests_are_carried_out": [*READ, *ASKED, line(95.0, "drained", left=0)],
    "what_stops_leaves_nothing": [*READ, line(98.0, "stop", w="a", grace_s=3.0),
        line(98.5, "stopped", w="a", let_go=True, unfinished=0)],
    "a_row_goes_when_it_is_done_with": [*READ, row(4.0, END, owner=None), line(12.0, "deleted", shard="s0", w="a")],
    "who_lets_go_stores_what_is_finished": [*READ, row(95.0, "TRIM_HORIZON", owner=None)],
    "what_is_finished_is_soon_stored": [put(0), TAKEN, batch(91.0, 0), *done(92.0),
        line(94.0, "rest", w="a", held_bytes=0)],
    "shares_are_even": [*READ, row(4.0, "100"), line(88.0, "drained", left=0),
        line(98.0, "rest", w="a", held_bytes=0), *(row(92.0 + n, "100", token=str(2 + n)) for n in range(4))],
    "a_stop_takes_no_longer_than_its_grace": [*READ, row(40.0, "100", owner=None),
        line(41.0, "stop", w="a", grace_s=3.0), line(53.0, "stopped", w="a", let_go=True, unfinished=0)],
    "reading_ahead_is_bounded": [put(0), put(1), TAKEN, line(1.5, "given", w="a", first=0, records=1),
        line(1.7, "given", w="a", first=1, records=1), batch(2.0, 0, 1), *done(3.0)],
    "memory_is_bounded": [*READ, line(4.0, "held", w="a", used_bytes=30_000_000, budget_bytes=1_000_000)],
    "nobody_fails": [*READ, line(4.0, "failed", w="a", error="KeyError", text="x")],
    "nobody_spins": [*READ, line(95.0, "spins", text="too many steps")],
    "all_is_read_in_the_end": [*READ, line(95.0, "stuck", left=1)],
}  # fmt: skip


FORMS = dict.fromkeys(
    (
        "a_lane_is_serial", "what_halts_rests", "no_more_are_in_work_than_may_be", "a_batcher_keeps_its_order",
        "batches_are_no_larger_than_may_be",
    ),
    "none",
)  # fmt: skip
"""In which records come for the law to be asked, where it is not whole batches."""


def judged(lines: list[Line], form: str = "batch") -> Iterator[str]:
    history = sorted([START[0] | {"form": form}, *START[1:], *lines, *FINISH], key=lambda one: one["t"])
    return (text.partition(":")[0].replace(" ", "_") for text in broken([json.dumps(one) for one in history]))


def test_a_good_history_breaks_no_law() -> None:
    """A record is put, handed over, finished and stored."""
    assert list(judged([*READ, row(4.0, "100")])) == []


ASLEEP = [put(0), TAKEN, line(1.0, "shard", shard="s0", parents=[]), batch(2.0, 0)]
OTHER = [row(6.0, "TRIM_HORIZON", w="b", owner="B", token="2"), batch(6.1, 0, w="b", processor=1, epoch=2),
    *done(6.2, w="b", processor=1)]  # fmt: skip


@pytest.mark.parametrize(
    ("asleep", "awake", "returned_s", "is_good"),
    [
        ("pause", "resume", 9.0, True),
        ("pause", "resume", 9.5, False),
        ("freeze", "thaw", 9.5, True),
        ("freeze", "thaw", 12.5, False),
    ],
)
def test_a_batch_in_the_middle_of_a_pause_ends_with_it_or_counts(
    asleep: str, awake: str, returned_s: float, is_good: bool
) -> None:
    """Who was asleep is stopped when he wakes up; after a freeze it may take him until his own deadline."""
    pause = [line(3.0, asleep, w="a", for_s=6.0), line(9.0, awake, w="a")]
    assert set(judged([*ASLEEP, *pause, *done(returned_s), *OTHER])) == (
        set() if is_good else {"ownerships_are_disjoint"}
    )


@pytest.mark.parametrize(
    ("deleted_s", "taken_s", "returned_s", "is_good"),
    [(3.0, 5.0, 5.9, True), (3.0, 5.0, 6.1, False), (4.5, 4.0, 5.0, False), (1.0, 4.0, 5.0, False)],
)
def test_who_holds_a_row_that_an_operator_deletes_hears_of_it_with_his_next_heartbeat(
    deleted_s: float, taken_s: float, returned_s: float, is_good: bool
) -> None:
    """Another one may have made it anew and taken it by then; not before, and not of a row that was there again."""
    found = set(
        judged(
            [
                put(0),
                line(1.0, "shard", shard="s0", parents=[]),
                row(1.5, "TRIM_HORIZON"),
                batch(2.0, 0),
                line(deleted_s, "deleted", shard="s0", w=""),
                *done(returned_s),
                row(taken_s, "TRIM_HORIZON", w="b", owner="B", token="2"),
                batch(taken_s + 0.1, 0, w="b", processor=1),
                *done(taken_s + 0.2, w="b", processor=1),
            ]
        )
    )
    assert ("ownerships_are_disjoint" not in found) == is_good


def test_bytes_that_are_held_with_nothing_in_hand_are_too_many() -> None:
    """All that was given is finished."""
    given = [line(1.5, "given", w="a", first=0, records=1), line(95.0, "rest", w="a", held_bytes=3)]
    assert set(judged([*READ, *given, row(4.0, "100")])) == {"memory_is_bounded"}


def test_what_a_processor_had_stored_comes_not_again_with_the_rest() -> None:
    """It raised after it had the first of two records stored."""
    stored = [
        line(2.5, "part", w="a", id=0, count=1),
        row(2.6, "100"),
        line(2.7, "saved", w="a", shard="s0", epoch=1, n=0),
    ]
    raised = [put(0), put(1), TAKEN, batch(2.0, 0, 1), *stored, line(3.0, "returned", w="a", id=0, done=False)]
    again = {"again": True}
    assert set(judged([*raised, batch(4.0, 0, 1) | again, *done(5.0)])) == {"nothing_finished_comes_again"}
    assert list(judged([*raised, batch(4.0, 1) | again, *done(5.0)])) == []


def test_what_comes_again_is_marked() -> None:
    """The processor has raised, and gets the same records again."""
    raised = [put(0), TAKEN, batch(2.0, 0), line(3.0, "returned", w="a", id=0, done=False)]
    assert set(judged([*raised, batch(4.0, 0), *done(5.0)])) == {"a_processor_goes_on_where_it_is"}
    assert list(judged([*raised, batch(4.0, 0) | {"again": True}, *done(5.0)])) == []


@pytest.mark.parametrize(("at_s", "is_good"), [(92.9, True), (93.1, False)])
def test_an_ownership_that_ended_by_itself_stores_nothing(at_s: float, is_good: bool) -> None:
    """He lets go of the row that still names him, in calm; but there nothing can end it, F after the last fault."""
    lost = line(at_s, "hook", w="a", processor=0, shard="s0", epoch=1, hook="lease_lost")
    let_go = row(95.0, "TRIM_HORIZON", owner=None)
    assert set(judged([*READ, lost, let_go])) == (set() if is_good else {"who_lets_go_stores_what_is_finished"})


@pytest.mark.parametrize(("for_s", "is_good"), [(0.9, False), (1.1, True)])
def test_an_ownership_that_ended_while_its_worker_was_cut_off_stores_nothing(for_s: float, is_good: bool) -> None:
    """He lets go of the row that still names him, by then in calm."""
    cut = [line(5.0, "cut", w="a", service="dynamodb", for_s=for_s), row(95.0, "TRIM_HORIZON", owner=None)]
    assert set(judged([*READ, *cut])) == (set() if is_good else {"who_lets_go_stores_what_is_finished"})


def test_a_storm_of_faults_before_a_cut_prolongs_it() -> None:
    """Neither alone is long enough for an ownership to end, and neither is the storm at another service."""
    cut = [line(5.5, "cut", w="a", service="dynamodb", for_s=0.9), row(95.0, "TRIM_HORIZON", owner=None)]
    for service, found in (("dynamodb", set()), ("kinesis", {"who_lets_go_stores_what_is_finished"})):
        storm = line(5.0, "storm", kind="hang", service=service, for_s=0.7)
        assert set(judged([*READ, storm, *cut])) == found


def test_an_actor_that_was_killed_takes_what_it_had_not_stored_with_it() -> None:
    """One of another shard does not."""
    for shard, found in (("s0", set()), ("s00", {"who_lets_go_stores_what_is_finished"})):
        killed = line(5.0, "kill", w="a", actor=f"stream/shards/{shard}/pipeline")
        assert set(judged([*READ, killed, row(95.0, "TRIM_HORIZON", owner=None)])) == found


def test_what_is_finished_in_an_ownership_that_ends_by_itself_need_not_be_stored() -> None:
    """The deadline is near as the calm comes; it cannot be in the midst of it."""
    batch_in_calm = [put(0), TAKEN, batch(91.0, 0), *done(92.0), line(98.0, "rest", w="a", held_bytes=0)]
    taken_anew = row(96.0, "TRIM_HORIZON", token="2")
    for at_s, found in ((92.5, set()), (93.5, {"what_is_finished_is_soon_stored"})):
        lost = line(at_s, "hook", w="a", processor=0, shard="s0", epoch=1, hook="lease_lost")
        assert set(judged([*batch_in_calm, lost, taken_anew])) == found


def test_a_batch_whose_end_could_not_be_stored_is_not_in_hand() -> None:
    """The processor has done it all, and raises since its checkpoint fails; nothing of it comes again."""
    given = [line(1.5, "given", w="a", first=0, records=1), line(4.0, "given", w="a", first=1, records=1)]
    raised = [line(3.0, "done", w="a", id=0), line(3.1, "returned", w="a", id=0, done=False)]
    rest = [batch(5.0, 1, processor=1), *done(6.0, processor=1), row(7.0, "101")]
    law = "reading_ahead_is_bounded"
    late = [line(3.0, "done", w="a", id=0), line(4.5, "returned", w="a", id=0, done=True)]
    part = [line(3.0, "part", w="a", id=0, count=1), line(3.1, "returned", w="a", id=0, done=False)]
    for said, is_good in ((raised, True), (raised[1:], False), (late, False), (part, True)):
        found = set(judged([put(0), put(1), TAKEN, *given, batch(2.0, 0), *said, *rest]))
        assert (law not in found) is is_good


def test_a_shard_waits_for_those_before_its_parents_too() -> None:
    """Its parent has no row yet, since what comes before that is still read."""
    shards = [line(99.0, "shard", shard="s1", parents=["s0"]), line(99.0, "shard", shard="s2", parents=["s1"])]
    rest = [line(88.0, "drained", left=0), line(98.0, "rest", w="a", held_bytes=0)]
    waits = [row(4.0, "TRIM_HORIZON", shard="s2", owner=None)]
    for end, found in (([], set()), ([row(60.0, END, owner=None)], {"shares_are_even"})):
        assert set(judged([*READ, row(5.0, "100"), *shards, *rest, *waits, *end])) - {"an_end_is_final"} == found


def test_a_child_that_was_moved_back_had_told_what_its_parent_tells() -> None:
    """In the moment in which the parent's row is deleted; one that never had progress has not."""
    ended = [*READ, CHILD, row(4.0, END, owner=None)]
    gone = line(40.0, "deleted", shard="s0", w="a")
    begun = row(5.0, "TRIM_HORIZON", shard="s1", owner=None)
    read = row(30.0, "7", shard="s1", owner=None)
    back = row(39.9, "AT_TIMESTAMP", shard="s1", owner=None, w="")
    long_ago = row(36.9, "AT_TIMESTAMP", shard="s1", owner=None, w="")
    law = "a_row_goes_when_it_is_done_with"
    assert law not in set(judged([*ended, begun, read, back, gone]))
    for told in ((), (read, long_ago)):
        assert law in set(judged([*ended, begun, *told, gone]))


def test_what_the_ownership_before_had_asked_for_is_not_in_the_hand_of_the_next() -> None:
    """It was on its way when the holder went back to the beginning, where all comes in one reply; then one is more."""
    before = [line(1.5, "given", w="a", first=0, records=3), batch(2.0, 0, 1, 2), *done(3.0), *ASKED]
    anew = [row(4.0, "TRIM_HORIZON", token="2"), line(4.1, "given", w="a", first=0, records=4)]
    after = [batch(5.0, 0, 1, 2, 3, processor=1, epoch=2), *done(6.0, processor=1)]
    for first, found in ((3, set()), (2, {"reading_ahead_is_bounded"})):
        late = line(4.2, "given", w="a", first=first, records=1)
        assert set(judged([*map(put, range(4)), TAKEN, *before, *anew, late, *after])) == found


def test_a_row_is_freed_by_its_owner_or_by_hand() -> None:
    """Not by the owner before, whose request was under way for long."""
    for life, found in (("a", set()), ("", set()), ("b", {"only_the_owner_writes_a_checkpoint"})):
        assert set(judged([*READ, row(4.0, "100"), row(5.0, "100", w=life, owner=None)])) == found


def test_a_row_that_was_deleted_names_nobody() -> None:
    """Its holder stopped before it could be made anew."""
    end = [line(94.0, "deleted", shard="s0", w=""), line(98.0, "stop", w="a", grace_s=3.0),
        line(98.5, "stopped", w="a", let_go=True, unfinished=0)]  # fmt: skip
    assert list(judged([*READ, *end])) == []


@pytest.mark.parametrize(
    ("owners", "is_good"), [("AB", True), ("AAB", True), ("AAA", False), ("AA", False), ("ABC", False)]
)
def test_shares_are_those_of_the_workers_that_rest(owners: str, is_good: bool) -> None:
    """C is nobody's: it died, and its row should have been taken."""
    rows = [row(4.0, "TRIM_HORIZON", shard=f"s{n}", owner=owner, w=owner.lower()) for n, owner in enumerate(owners)]
    shards = [line(5.0, "shard", shard=f"s{n}", parents=[]) for n in range(len(owners))]
    rest = [line(98.0, "rest", w=life, held_bytes=0) for life in "ab"]
    found = set(judged([*rows, *shards, line(88.0, "drained", left=0), *rest]))
    assert found == (set() if is_good else {"shares_are_even"})


AGAIN = [batch(5.0, 0, processor=1, epoch=2), *done(6.0, processor=1)]


def test_who_is_asked_to_go_back_reads_again_and_stores_it_anew() -> None:
    """Under another epoch; what was finished before counts no more."""
    assert list(judged([*MOVED, *AGAIN, row(7.0, "100", token="2")])) == []
    assert set(judged([*MOVED, row(4.5, "100", token="2"), *AGAIN])) == {"checkpoints_are_true"}
    begins_late = [*MOVED, put(1), batch(5.0, 1, processor=1, epoch=2), *done(6.0, processor=1)]
    assert set(judged(begins_late)) == {"what_is_asked_for_is_read"}


def test_who_is_asked_to_go_forward_need_not_read_what_is_before() -> None:
    """But all that comes after it."""
    ahead = [*READ, put(1), put(2), ASKED[0] | {"before": 2}, ASKED[1], row(4.0, "101", token="2")]
    rest = [batch(5.0, 2, processor=1, epoch=2), *done(6.0, processor=1)]
    assert list(judged([*ahead, *rest])) == []
    assert "every_record_is_finished" in set(judged(ahead))


@pytest.mark.parametrize(("kind", "owner", "token", "is_good"), [
    ("release", None, "1", True), ("release", "A", "1", False), ("seek", None, "1", False), ("release", "B", "2", True),
])  # fmt: skip
def test_request_goes_with_what_was_asked_for(kind: str, owner: str | None, token: str, is_good: bool) -> None:
    """A release with the owner, or with another who has taken the shard meanwhile."""
    asked = [ASKED[0] | {"kind": kind}, row(3.5, "100") | {"request": "r0", "kind": kind}]
    answer = [row(4.0, "100", w=(owner or "a").lower(), owner=owner, token=token)]
    found = set(judged([*READ, *asked, *answer]))
    assert found == (set() if is_good else {"requests_are_carried_out"})


def test_who_is_cancelled_in_calm_lets_go_too() -> None:
    """Ctrl-C stops a worker in order."""
    end = [line(98.0, "cancel", w="a", grace_s=20.0), line(98.5, "cancelled", w="a")]
    assert set(judged([*READ, *end])) == {"what_stops_leaves_nothing"}


def test_a_part_of_a_batch_is_finished_before_the_rest() -> None:
    """A processor that says so may have it stored, and not more."""
    parts = [put(0), put(1), TAKEN, batch(2.0, 0, 1), line(2.5, "part", w="a", id=0, count=1)]
    assert list(judged([*parts, row(2.6, "100"), *done(3.0)])) == []
    assert set(judged([*parts, row(2.6, "101"), *done(3.0)])) == {"checkpoints_are_true"}


def test_an_ownership_answers_for_what_was_finished_in_it_alone() -> None:
    """A worker that lost a shard and took it again stores at its stop what it has finished since: here nothing."""
    again = [row(94.0, "TRIM_HORIZON", token="2"), row(95.0, "TRIM_HORIZON", owner=None, token="2")]
    assert list(judged([*READ, *again])) == []


@pytest.mark.parametrize("law", [law.__name__ for law in LAWS])
def test_each_law_notices_what_breaks_it(law: str) -> None:
    """And no other one does, so that a name is worth something."""
    assert set(judged(BAD[law], FORMS.get(law, "batch"))) == {law}
