"""The offset is text in Spark's checkpoint: it must survive JSON, compare as text and never go back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_bridge.offsets import BEGINNING, END, Mark, Offset, OffsetError, Reach, check_forward
from tests.spark_bridge.builders import an_offset

MARKS = st.one_of(
    st.just(END),
    st.builds(Mark, st.just(Reach.SINCE), st.integers(0, 10**14)),
    st.builds(Mark, st.just(Reach.AFTER), st.integers(0, 10**56 - 1), st.integers(0, 10**6)),
)
OFFSETS = st.builds(Offset, st.dictionaries(st.text(min_size=1, max_size=12), MARKS, max_size=6))


@given(OFFSETS)
def test_offset_comes_back_equal_when_it_went_through_json(offset: Offset) -> None:
    """A restart continues exactly where the log says."""
    assert Offset.parse(json.loads(json.dumps(offset.to_json()))) == offset


@given(OFFSETS, st.randoms())
def test_offset_is_written_the_same_when_its_shards_came_in_another_order(offset: Offset, random: object) -> None:
    """Spark takes another text for new data and would run empty batches for ever."""
    marks = list(offset.marks.items())
    random.shuffle(marks)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
    assert json.dumps(Offset(dict(marks)).to_json()) == json.dumps(offset.to_json())


def test_offset_has_the_published_form() -> None:
    """Tools and later versions read these texts."""
    offset = an_offset(b="49590338271490256608559692538361571095921575989136588898:3", a="@1700000000000", c="END")
    assert offset.to_json() == {
        "v": 1,
        "s": {"a": "@1700000000000", "b": "49590338271490256608559692538361571095921575989136588898:3", "c": "END"},
    }


def test_marks_are_ordered_by_number_when_their_texts_differ_in_length() -> None:
    """Sequence numbers compare as numbers, and a shard passes from since over numbers to END."""
    texts = ["@0", "@999", "9", "10", "10:1", "10:2", "100", "END"]
    marks = [Mark.parse(text) for text in texts]
    assert sorted(marks, reverse=True) == marks[::-1]
    assert [str(mark) for mark in marks] == texts


@pytest.mark.parametrize("text", ["", "x", "@", "@-1", "-1", "1:", "1:2:3", "end", "TRIM_HORIZON", "1.5", "@1 "])
def test_offset_is_refused_when_a_mark_is_none(text: str) -> None:
    """A foreign offset must not be read as some place in the stream."""
    with pytest.raises(OffsetError, match="shard 's'"):
        Offset.parse({"v": 1, "s": {"s": text}})


@pytest.mark.parametrize("raw", [{}, {"v": 2, "s": {}}, {"v": 1}, {"v": 1, "s": []}, {"index": 3}, None, [], "x"])
def test_offset_is_refused_when_it_is_of_another_source_or_version(raw: object) -> None:
    """A checkpoint of another source is named as such."""
    with pytest.raises(OffsetError, match="expected version 1 of the format 'kcl'"):
        Offset.parse(raw)


def test_shard_begins_at_its_beginning_when_the_offset_does_not_name_it() -> None:
    """Children of a split have no mark before their first record."""
    assert an_offset(a="5")["b"] == BEGINNING


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (an_offset(a="10"), an_offset(a="9")),
        (an_offset(a="10"), an_offset(a="@5")),
        (an_offset(a="END"), an_offset(a="10")),
        (an_offset(a="10"), an_offset()),
        (an_offset(a="@5"), an_offset()),
    ],
)
def test_offset_is_refused_when_a_shard_goes_back(start: Offset, end: Offset) -> None:
    """Spark itself accepts such an offset silently."""
    with pytest.raises(OffsetError, match="shard 'a'"):
        check_forward(start, end)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (an_offset(a="9"), an_offset(a="10", b="3")),
        (an_offset(a="@5"), an_offset(a="1")),
        (an_offset(a="END", b="3"), an_offset(b="3")),
        (an_offset(a="7"), an_offset(a="7")),
    ],
)
def test_offset_is_accepted_when_every_shard_goes_on_or_left_at_its_end(start: Offset, end: Offset) -> None:
    """What the planner does is what the check allows."""
    check_forward(start, end)
