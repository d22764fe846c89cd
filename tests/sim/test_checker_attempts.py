"""The laws of single records, in histories written by hand: of what is left of batches, and of lanes."""

import pytest

from tests.sim.test_checker import (
    BAD,
    DONE,
    TAKEN,
    batch,
    call,
    done,
    failed,
    gave_up,
    judged,
    line,
    put,
    row,
)


@pytest.mark.parametrize(("at_s", "is_good"), [(7.9, False), (8.1, True)])
def test_what_was_put_off_comes_when_it_is_due(at_s: float, is_good: bool) -> None:
    """Within one processor, whose time is that of the loop."""
    put_off = [put(0), TAKEN, call(2.0, 0), *failed(3.0, 0, after_s=5.0), call(at_s, 0, 1, mark=2)]
    for form in ("batch", "mixed", "key", "shard", "none"):
        assert set(judged([*put_off, *done(9.0, processor=1)], form)) == (
            set() if is_good else {"what_failed_comes_again_as_what_it_is"}
        )


def test_what_was_given_up_comes_not_again() -> None:
    """In the same processor; what its record was passed over for is finished."""
    skipped = [put(0), TAKEN, call(2.0, 0), *failed(3.0, 0, rejected=True), *gave_up(3.0, 0, "skipped", rejected=True)]
    assert list(judged([*skipped, row(4.0, "100")], "key")) == []
    again = set(judged([*skipped, call(5.0, 0, 1, mark=2), *done(6.0, processor=1)], "key"))
    assert again == {"what_failed_comes_again_as_what_it_is", "nothing_finished_comes_again", "a_lane_is_serial"}


@pytest.mark.parametrize(("left", "is_good"), [((1,), True), ((0, 1), False), ((), False)])
def test_what_is_left_of_a_batch_comes_again_and_no_more(left: tuple[int, ...], is_good: bool) -> None:
    """Of two records one has failed."""
    first = batch(2.0, 0, 1) | {"marks": [0, 0]}
    marks = {"marks": [2 if n else -1 for n in left], "again": True} if left else {}
    second = [batch(4.0, *(left or (2,))) | {"id": 1} | marks, *done(5.0, processor=1)]
    lines = [put(0), put(1), *([] if left else [put(2)]), TAKEN, first, *failed(3.0, 1), *second]
    assert (list(judged(lines, "mixed")) == []) is is_good


@pytest.mark.parametrize(
    ("key", "checkpoint", "is_good"), [("j", "100", True), ("j", "101", False), ("k", "100", False)]
)
def test_lanes_are_stored_up_to_the_first_record_that_is_not_finished(key: str, checkpoint: str, is_good: bool) -> None:
    """The third of three records is done before the second, which is of another lane, or should be."""
    lines = [put(0), put(1, key=key), put(2), TAKEN, call(2.0, 0), *done(2.5), call(3.0, 2, 1), *done(3.5, processor=1)]
    stored = [row(4.0, checkpoint), call(5.0, 1, 2), *done(6.0, processor=2), row(95.0, "102", owner=None)]
    assert (list(judged([*lines, *stored], "key")) == []) is is_good


@pytest.mark.parametrize(("checkpoint", "is_good"), [("100", True), ("TRIM_HORIZON", False)])
def test_who_lets_go_of_lanes_stores_the_unbroken_run(checkpoint: str, is_good: bool) -> None:
    """What is finished behind an unfinished record cannot be stored; the next owner finishes that."""
    ran = [put(0), put(1, key="j"), put(2), TAKEN, call(91.0, 0), *done(91.1), call(91.2, 1, 1),
        *failed(91.3, 1, number=1), call(91.4, 2, 2), *done(91.5, processor=2),
        row(92.0, checkpoint, owner=None)]  # fmt: skip
    after = [row(93.0, checkpoint, w="b", owner="B", token="2")]
    for number, record in enumerate((0, 1, 2)[is_good:], 3):
        after += [call(93.1 + number, record, number, mark=-1, w="b", processor=3, epoch=2)]
        after += [line(93.2 + number, event, w="b", id=number, **more) for event, more in DONE]
    assert set(judged([*ran, *after], "key")) == (set() if is_good else {"who_lets_go_stores_what_is_finished"})


@pytest.mark.parametrize(("behind_s", "is_good"), [(299.0, False), (301.0, True)])
def test_record_is_not_marked_by_a_worker_whose_clock_is_far_behind(behind_s: float, is_good: bool) -> None:
    """It believes that the record came later than it took the shard."""
    clock = [line(0.0, "start", w="b", skew_s=0.0), line(0.5, "jump", w="b", by_s=-behind_s)]
    found = set(judged([*clock, *BAD["what_was_in_hand_is_marked"]]))
    assert found == (set() if is_good else {"what_was_in_hand_is_marked"})


@pytest.mark.parametrize(("first", "is_good"), [(2, True), (1, False)])
def test_who_was_asked_to_begin_at_a_time_has_nothing_to_store_before_the_first_record(
    first: int, is_good: bool
) -> None:
    """The row has no number for that place. What is finished behind a gap cannot be stored."""
    asked = [line(5.5, "ask", shard="s0", id="r0", kind="seek", before=1)]
    rows = [row(5.5, "102") | {"request": "r0", "kind": "seek"}, row(91.0, "AT_TIMESTAMP", token="2")]
    read = [[put(n, key=f"{n}"), call(2.0 + n, n, n), *done(2.5 + n, processor=n)] for n in range(3)]
    anew = [call(91.1, first, 3, mark=-1, processor=1, epoch=2), *done(91.2, processor=3)]
    let_go = [row(92.0, "AT_TIMESTAMP", owner=None, token="2"), row(93.0, "AT_TIMESTAMP", w="b", owner="B", token="3")]
    after = []
    for number, record in enumerate((1, 2), 4):
        after += [call(90.0 + number, record, number, mark=-1, w="b", processor=4, epoch=3)]
        after += [line(90.5 + number, event, w="b", id=number, **more) for event, more in DONE]
    found = set(judged([*read[0], *read[1], *read[2], *asked, *rows, TAKEN, *anew, *let_go, *after], "none"))
    assert found == (set() if is_good else {"who_lets_go_stores_what_is_finished"})


def test_what_was_done_by_a_call_that_raised_is_not_to_be_stored() -> None:
    """It comes again, unless the call had it stored itself."""
    end, let_go = line(3.1, "returned", w="a", id=0, done=False), row(95.0, "TRIM_HORIZON", owner=None)
    raised = [put(0), TAKEN, batch(2.0, 0), line(3.0, "done", w="a", id=0)]
    saved = line(3.05, "saved", w="a", shard="s0", epoch=1, n=0)
    law = "who_lets_go_stores_what_is_finished"
    assert law not in judged([*raised, end, let_go])
    assert law in judged([*raised, saved, end, let_go])
    assert law in judged([*raised, end | {"done": True}, let_go])
