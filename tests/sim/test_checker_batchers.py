"""The laws of batchers and effects, in histories written by hand."""

import pytest

from tests.sim.test_checker import (
    ASKED,
    MOVED,
    READ,
    TAKEN,
    Line,
    away,
    call,
    done,
    failed,
    gathered,
    gave_up,
    judged,
    line,
    put,
    row,
)


@pytest.mark.parametrize(("mark", "is_good"), [(2, True), (3, False)])
def test_attempts_of_what_was_given_to_a_batcher_count_anew(mark: int, is_good: bool) -> None:
    """The record that is given away leaves its lane; first it says there what it said before."""
    given = [put(0), TAKEN, call(2.0, 0), *failed(3.0, 0), call(4.0, 0, 1, mark=2), *away(4.1, 1)]
    tried = [gathered(5.0, 0, number=2) | {"marks": [2]}, *failed(5.1, 0, number=2)]
    again = [gathered(6.0, 0, number=3) | {"marks": [mark]}, *done(6.1, processor=3), row(7.0, "100")]
    found = set(judged([*given, *tried, *again], "key"))
    assert found == (set() if is_good else {"what_failed_comes_again_as_what_it_is"})


@pytest.mark.parametrize(("first", "is_good"), [(0, True), (1, False)])
def test_what_has_failed_in_a_batcher_comes_before_what_was_given_later(first: int, is_good: bool) -> None:
    """The lane has gone on meanwhile."""
    given = [put(0), TAKEN, call(2.0, 0), *away(2.1, 0), gathered(3.0, 0, number=1), *failed(3.1, 0, number=1)]
    later = [put(1, key="j"), call(4.0, 1, 2), *away(4.1, 2)]
    then = []
    for number, record in enumerate((first, 1 - first), 3):
        mark = {"marks": [0 if record else 2]}
        then += [gathered(2.0 + number, record, number=number) | mark, *done(2.1 + number, processor=number)]
    found = set(judged([*given, *later, *then, row(9.0, "101")], "none"))
    assert found == (set() if is_good else {"a_batcher_keeps_its_order"})


def test_a_record_of_a_batcher_is_finished_with_its_batch() -> None:
    """Not when it is given away."""
    given = [put(0), TAKEN, call(2.0, 0), *away(2.1, 0)]
    assert "every_record_is_finished" in set(judged(given, "key"))
    stored = {"checkpoints_are_true"}
    assert stored <= set(judged([*given, row(2.5, "100"), gathered(3.0, 0, number=1), *done(3.1, processor=1)], "key"))


@pytest.mark.parametrize(
    ("form", "times", "is_good"), [("batch", [[0, 2]], True), ("key", [[0, 2]], False), ("key", [], False)]
)
def test_effects_of_what_is_read_once_more_count_again_unless_a_marker_knows(
    form: str, times: list[list[int]], is_good: bool
) -> None:
    """The holder was asked to begin anew."""
    again = {"marks": [-1]}
    anew = [call(5.0, 0, 1, processor=1, epoch=2) | again, *done(6.0, processor=1), row(7.0, "100", token="2")]
    found = set(judged([*MOVED, *anew, line(99.0, "effects", times=times)], form))
    assert found == (set() if is_good else {"effects_are_applied_once"})


GIVEN = [put(0), put(1), TAKEN, call(2.0, 0), *away(2.1, 0), call(2.2, 1, 1), *away(2.3, 1)]


@pytest.mark.parametrize(("returned_s", "is_good"), [(3.1, True), (3.3, False)])
def test_batches_of_a_key_come_one_after_the_other(returned_s: float, is_good: bool) -> None:
    """The records are in their order all the same."""
    first = [gathered(3.0, 0, number=2), *done(returned_s, processor=2)]
    second = [gathered(3.2, 1, number=3), *done(3.4, processor=3)]
    found = set(judged([*GIVEN, *first, *second, row(4.0, "101")], "key"))
    assert ("a_batcher_keeps_its_order" not in found) is is_good
    assert ("batches_are_no_larger_than_may_be" not in found) is is_good
    assert ("keys_keep_their_order" not in found) is is_good


@pytest.mark.parametrize(("mark", "told", "is_good"), [(-1, -1, True), (-1, 0, False), (0, 0, True), (0, -1, False)])
def test_a_record_says_in_its_batch_what_it_said_as_it_was_given_away(mark: int, told: int, is_good: bool) -> None:
    """That it may have been in an earlier owner's hands, say."""
    given = [put(0), TAKEN, call(2.0, 0, mark=mark), *away(2.1, 0)]
    batch = gathered(3.0, 0, number=1) | {"marks": [told]}
    found = set(judged([*given, batch, *done(3.1, processor=1), row(4.0, "100")], "key"))
    assert found == (set() if is_good else {"what_failed_comes_again_as_what_it_is"})


def test_what_is_passed_over_in_a_batcher_is_not_waited_for() -> None:
    """It is finished: the next one of its key goes on."""
    rejected = [gathered(3.0, 0, number=2), *failed(3.1, 0, number=2, rejected=True)]
    skipped = gave_up(3.1, 0, "skipped", rejected=True)
    second = [gathered(3.2, 1, number=3), *done(3.3, processor=3), row(4.0, "101")]
    assert list(judged([*GIVEN, *rejected, *skipped, *second], "key")) == []


@pytest.mark.parametrize(("first_done_s", "is_good"), [(2.1, True), (2.6, False)])
def test_others_of_an_ordered_shard_wait_for_each_other_though_not_for_what_is_given_away(
    first_done_s: float, is_good: bool
) -> None:
    """The second of three records is given to a batcher, and comes from there last."""
    lines = [put(n, key=str(n)) for n in range(3)]
    lines += [TAKEN, call(2.0, 0), *done(first_done_s), call(2.2, 1, 1), *away(2.3, 1)]
    lines += [call(2.5, 2, 2), *done(2.7, processor=2), gathered(3.0, 1, number=3), *done(3.1, processor=3)]
    assert ("nothing_is_passed_over" not in set(judged(lines, "shard"))) is is_good


REJECTED = [put(0), TAKEN, call(2.0, 0), *failed(3.0, 0, rejected=True)]


@pytest.mark.parametrize(("what", "is_good"), [("skipped", True), ("letter", True), ("halts", False)])
def test_only_what_was_passed_over_needs_no_effect(what: str, is_good: bool) -> None:
    """What halts its shard has to come again, and to be done."""
    again = [
        row(6.0, "TRIM_HORIZON", token="2"),
        call(7.0, 0, 1, mark=-1, processor=1, epoch=2),
        *done(8.0, processor=1),
    ]
    ended = again if what == "halts" else [row(4.0, "100")]
    lines = [*REJECTED, *gave_up(3.0, 0, what, rejected=True), *ended, line(99.0, "effects", times=[])]
    assert set(judged(lines, "shard")) == (set() if is_good else {"effects_are_applied_once"})


@pytest.mark.parametrize(
    ("before", "times", "is_good"),
    [(0, 2, True), (0, 3, False), (1, 1, True), (1, 0, True), (1, 2, False)],
)
def test_an_effect_counts_once_more_for_each_move_behind_its_record(before: int, times: int, is_good: bool) -> None:
    """A move beyond it has it passed over, if it was not done before."""
    moved = [
        *READ,
        ASKED[0] | {"before": before},
        ASKED[1],
        row(4.0, "TRIM_HORIZON" if before == 0 else "100", token="2"),
    ]
    again: list[Line] = []
    if before == 0:
        again = [call(5.0, 0, 1, mark=-1, processor=1, epoch=2), *done(6.0, processor=1), row(7.0, "100", token="2")]
    applied = line(99.0, "effects", times=[[0, times]] if times else [])
    assert ("effects_are_applied_once" not in set(judged([*moved, *again, applied], "shard"))) is is_good


@pytest.mark.parametrize(("w", "is_good"), [("", True), ("b", False)])
def test_an_effect_counts_once_more_if_an_operator_deletes_the_row(w: str, is_good: bool) -> None:
    """With it the checkpoint is gone; a worker has no such excuse."""
    lines = [*READ, row(4.0, "100"), line(5.0, "deleted", shard="s0", w=w), line(99.0, "effects", times=[[0, 2]])]
    assert ("effects_are_applied_once" not in set(judged(lines, "shard"))) is is_good


def test_what_was_stored_with_its_effect_comes_not_again_though_its_call_raised() -> None:
    """The next one of its lane may come."""
    saved = [put(0), put(1), TAKEN, call(2.0, 0), line(2.5, "done", w="a", id=0),
        row(2.6, "100"), line(2.7, "saved", w="a", shard="s0", epoch=1, processor=0, n=0),
        line(3.0, "returned", w="a", id=0, done=False)]  # fmt: skip
    next_one = [call(4.0, 1, 1), *done(5.0, processor=1), row(6.0, "101")]
    assert list(judged([*saved, *next_one], "shard")) == []
    again = [call(4.0, 0, 1, mark=2), *done(4.5, processor=1)]
    assert {"nothing_finished_comes_again", "a_lane_is_serial"} <= set(judged([*saved, *again], "shard"))
