"""Where a micro-batch ends, which shards may be in it, and how its ranges become tasks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_bridge.offsets import BEGINNING, END, Mark, Offset, OffsetError
from spark_bridge.plan import ShardRange, Strand, pack, plan_end, plan_ranges, release
from tests.spark_bridge.builders import a_segment, a_strand, an_offset


def test_batch_ends_on_segment_ends_when_the_limit_falls_inside_one() -> None:
    """Only whole segments, so that a range means the same records for ever."""
    end = plan_end(an_offset(a="@0"), {"a": a_strand("a", 4, 8, 12)}, max_rows=10)
    assert end == an_offset(a="8")


def test_batch_takes_the_first_segment_when_it_is_larger_than_the_limit() -> None:
    """A limit below a segment must not stop the query."""
    assert plan_end(an_offset(a="@0"), {"a": a_strand("a", 8, 12)}, max_rows=3) == an_offset(a="8")


def test_batch_takes_everything_when_there_is_no_limit() -> None:
    """Trigger.AvailableNow and Once read all that is there."""
    strands = {"a": a_strand("a", 8, 12), "b": a_strand("b", 5)}
    assert plan_end(an_offset(a="@0", b="@0"), strands, max_rows=None) == an_offset(a="12", b="5")


def test_batch_prefers_the_oldest_records_when_the_limit_cuts() -> None:
    """No shard starves because of its name."""
    strands = {
        "a": Strand(segments=[a_segment("a", 1, 5, arrived_s=20.0)]),
        "b": Strand(segments=[a_segment("b", 1, 5, arrived_s=10.0)]),
    }
    assert plan_end(an_offset(a="@0", b="@0"), strands, max_rows=5) == an_offset(a="@0", b="5")


def test_offset_is_the_same_object_when_nothing_is_new() -> None:
    """No empty batches on an idle stream."""
    start = an_offset(a="7", p="END")
    strands = {"a": a_strand("a", base=Mark.parse("7")), "p": a_strand("p", base=END, has_ended=True, children=("a",))}
    assert plan_end(start, strands, max_rows=10) is start


def test_shard_is_at_end_in_the_batch_that_takes_its_last_segment() -> None:
    """Children follow one batch later, not two."""
    strands = {"p": a_strand("p", 5, 9, has_ended=True)}
    assert plan_end(an_offset(p="@0"), strands, max_rows=5) == an_offset(p="5")
    assert plan_end(an_offset(p="5"), strands, max_rows=5) == an_offset(p="END")


def test_shard_ends_in_an_empty_batch_when_it_had_no_records() -> None:
    """Children of an idle shard must not wait for ever."""
    strands = {"p": a_strand("p", has_ended=True)}
    assert plan_end(an_offset(p="@0"), strands, max_rows=5) == an_offset(p="END")
    assert plan_end(an_offset(p="7"), strands, max_rows=5) == an_offset(p="END")


def test_child_waits_when_its_parent_ends_in_this_very_batch() -> None:
    """A key's records of before and after a split are never in one batch."""
    strands = {"p": a_strand("p", 5, has_ended=True, children=("c",)), "c": a_strand("c", 3, parents=("p",))}
    end = plan_end(an_offset(p="@0"), strands, max_rows=None)
    assert end == an_offset(p="END")
    assert plan_end(end, strands, max_rows=None) == an_offset(p="END", c="3")


def test_child_of_a_merge_waits_until_both_parents_are_at_end() -> None:
    """One finished parent is not enough."""
    strands = {"p": a_strand("p", 5), "q": a_strand("q", 5), "m": a_strand("m", 3, parents=("p", "q"))}
    assert "m" not in plan_end(an_offset(p="END", q="@0"), strands, max_rows=None)
    assert "m" in plan_end(an_offset(p="END", q="END"), strands, max_rows=None)


def test_grandchild_waits_when_its_parent_is_read_but_not_yet_in_the_offset() -> None:
    """Two splits within one batch's time enter in two batches."""
    strands = {
        "p": a_strand("p", 5, has_ended=True),
        "c": a_strand("c", has_ended=True, parents=("p",)),
        "g": a_strand("g", 3, parents=("c",)),
    }
    assert plan_end(an_offset(p="END"), strands, max_rows=None) == an_offset(p="END", c="END")


def test_child_enters_when_its_parent_is_known_to_nobody() -> None:
    """A parent that was read to its end long ago has left the offset."""
    assert plan_end(an_offset(), {"c": a_strand("c", 3, parents=("old",))}, max_rows=None) == an_offset(c="3")


@pytest.mark.parametrize(
    ("children", "start", "kept"),
    [
        (("c", "d"), an_offset(p="END", c="3", d="3"), False),
        (("c", "d"), an_offset(p="END", c="3"), True),
        (None, an_offset(p="END", c="3", d="3"), True),
        ((), an_offset(p="END", c="3", d="3"), True),
    ],
)
def test_end_leaves_the_offset_only_when_all_children_are_in_it(
    children: tuple[str, ...] | None, start: Offset, kept: bool
) -> None:
    """Until then a restart needs it to know that the children are still to be read."""
    strands = {"p": Strand(base=END, has_ended=True, children=children), "c": a_strand("c", 3, 9, parents=("p",))}
    assert ("p" in plan_end(start, strands, max_rows=None)) is kept


def test_ranges_name_the_segments_when_they_cover_the_range() -> None:
    """Tasks read the spool, and know how many rows there must be."""
    strand = a_strand("a", 4, 8, 12)
    assert plan_ranges(an_offset(a="4"), an_offset(a="12"), {"a": strand}) == [
        ShardRange("a", Mark.parse("4"), Mark.parse("12"), tuple(strand.segments[1:]))
    ]


@pytest.mark.parametrize("strands", [{}, {"a": a_strand("a", 10, base=Mark.parse("6"))}, {"a": a_strand("a", 7)}])
def test_ranges_name_no_segments_when_the_spool_does_not_cover_them(strands: dict[str, Strand]) -> None:
    """After a restart, and wherever in doubt, Kinesis is read."""
    assert plan_ranges(an_offset(a="4"), an_offset(a="10"), strands) == [
        ShardRange("a", Mark.parse("4"), Mark.parse("10"), None)
    ]


def test_ranges_leave_out_shards_without_records_in_the_batch() -> None:
    """No task for nothing: unmoved shards, shards that only ended, starts that were resolved."""
    start = an_offset(a="4", b="7", c="@5", d="END")
    end = an_offset(a="4", b="END", c="@9", d="END")
    assert plan_ranges(start, end, {"b": a_strand("b", base=Mark.parse("7"), has_ended=True)}) == []


def test_range_of_a_child_starts_at_its_beginning() -> None:
    """The offset names it first with the end of its first batch."""
    assert plan_ranges(an_offset(p="END"), an_offset(p="END", c="5"), {})[0].start == BEGINNING


def test_ranges_are_refused_when_a_shard_goes_back() -> None:
    """A checkpoint of another query is not half-read."""
    with pytest.raises(OffsetError, match="shard 'a'"):
        plan_ranges(an_offset(a="4"), an_offset(a="3"), {})


RANGES = st.lists(st.integers(0, 1000), max_size=12).map(
    lambda sizes: [
        ShardRange(f"s{index:02}", BEGINNING, END, (a_segment("s", 1, 1, size_bytes=size),))
        for index, size in enumerate(sizes)
    ]
)


@given(RANGES, st.integers(1, 5))
def test_packing_keeps_every_range_once_and_no_group_is_empty(ranges: list[ShardRange], most: int) -> None:
    """Each shard is in one task, so its order is kept."""
    groups = pack(ranges, most=most)
    assert sorted((item for group in groups for item in group), key=lambda item: item.shard_id) == ranges
    assert len(groups) == min(most, len(ranges))
    assert all(groups)


@given(RANGES, st.integers(1, 5))
def test_packing_balances_bytes(ranges: list[ShardRange], most: int) -> None:
    """No group is heavier than the lightest by more than one range."""
    sizes = [sum(item.size_bytes for item in group) for group in pack(ranges, most=most)]
    assert not sizes or max(sizes) - min(sizes) <= max(item.size_bytes for item in ranges)


def test_release_frees_what_is_finished_and_nothing_else() -> None:
    """Room comes back exactly for what Spark has."""
    strands = {"a": a_strand("a", 4, 8, 12), "b": a_strand("b", 3)}
    freed = release(an_offset(a="8", b="@0"), strands)
    assert [segment.last.value for segment in freed] == [4, 8]
    assert (strands["a"].base, len(strands["a"].segments), len(strands["b"].segments)) == (Mark.parse("8"), 1, 1)


def test_release_forgets_an_ended_shard_only_after_it_left_the_offset() -> None:
    """Its children must be known until the planner has dropped it."""
    strands = {"p": a_strand("p", 4, has_ended=True)}
    release(an_offset(p="END"), strands)
    assert "p" in strands
    release(an_offset(), strands)
    assert "p" not in strands
