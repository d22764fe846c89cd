"""What a query and its tree begin from, for each place in a lineage where a checkpoint can stand."""

import pytest

from kcl_py.sources.source import ShardInfo
from spark_bridge.offsets import END, Mark
from spark_bridge.seed import first_offset, seed
from tests.spark_bridge.builders import an_offset

SPLIT = (ShardInfo("p"), ShardInfo("c", ("p",)), ShardInfo("d", ("p",)))
TWICE = (*SPLIT, ShardInfo("e", ("c",)), ShardInfo("f", ("c",)))
MERGE = (ShardInfo("p"), ShardInfo("q"), ShardInfo("m", ("p", "q")))


def begun(shards: tuple[ShardInfo, ...], **marks: str) -> dict[str, tuple[str, int | None]]:
    """Checkpoint and start instant of each row that a tree begins from."""
    return {row.key: (row.checkpoint, row.native.start_ms) for row in seed(an_offset(**marks), shards).rows}


def test_new_query_begins_at_the_shards_whose_parents_are_not_listed() -> None:
    """Children follow their parents; a shard whose parent aged out is a root."""
    assert first_offset(SPLIT, 0) == an_offset(p="@0")
    assert first_offset(SPLIT[1:], 1234) == an_offset(c="@1234", d="@1234")
    assert first_offset(MERGE[1:], 0) == an_offset(q="@0")


def test_row_says_where_its_shard_goes_on() -> None:
    """A number, the beginning, an instant or the end."""
    shards = tuple(map(ShardInfo, "abcd"))
    assert begun(shards, a="12345", b="@0", c="@1700000000000", d="END") == {
        "a": ("12345", None),
        "b": ("TRIM_HORIZON", None),
        "c": ("AT_TIMESTAMP", 1700000000000),
        "d": ("SHARD_END", None),
    }


def test_row_keeps_the_place_inside_an_aggregated_record() -> None:
    """User records of one Kinesis record differ only by their sub-sequence number."""
    [row] = seed(an_offset(a="12345:6"), [ShardInfo("a")]).rows
    assert (row.checkpoint, row.sub) == ("12345", 6)


@pytest.mark.parametrize(
    ("shards", "marks", "rows"),
    [
        pytest.param(SPLIT, {"p": "5"}, {"p": "5"}, id="parent under way: its children wait for its end"),
        pytest.param(
            SPLIT, {"p": "END"}, {"p": "SHARD_END", "c": "TRIM_HORIZON", "d": "TRIM_HORIZON"}, id="children not begun"
        ),
        pytest.param(
            SPLIT, {"p": "END", "c": "5"}, {"p": "SHARD_END", "c": "5", "d": "TRIM_HORIZON"}, id="one child not begun"
        ),
        pytest.param(SPLIT, {"c": "5", "d": "6"}, {"p": "SHARD_END", "c": "5", "d": "6"}, id="parent left the offset"),
        pytest.param(
            TWICE,
            {"p": "END", "e": "7", "f": "8"},
            {"p": "SHARD_END", "c": "SHARD_END", "d": "TRIM_HORIZON", "e": "7", "f": "8"},
            id="one child was read, split and left the offset, the other is not begun",
        ),
        pytest.param(
            MERGE, {"p": "END", "q": "5"}, {"p": "SHARD_END", "q": "5", "m": "TRIM_HORIZON"}, id="half merged"
        ),
        pytest.param(MERGE, {"m": "5"}, {"p": "SHARD_END", "q": "SHARD_END", "m": "5"}, id="merged"),
        pytest.param(
            (ShardInfo("old"), ShardInfo("a")), {"a": "5"}, {"old": "SHARD_END", "a": "5"}, id="not of this query"
        ),
    ],
)
def test_tree_begins_exactly_behind_the_offset(
    shards: tuple[ShardInfo, ...], marks: dict[str, str], rows: dict[str, str]
) -> None:
    """Nothing that Spark has is read again, nothing else is left out."""
    assert {key: checkpoint for key, (checkpoint, _) in begun(shards, **marks).items()} == rows


def test_shard_is_lost_when_the_stream_no_longer_has_it_and_it_was_not_read_to_its_end() -> None:
    """It counts as ended, so that its children can go on if the query may."""
    found = seed(an_offset(p="5", gone="END"), SPLIT[1:])
    assert found.lost == ("p",)
    assert {row.key: row.checkpoint for row in found.rows} == {"c": "TRIM_HORIZON", "d": "TRIM_HORIZON"}
    assert (found.strands["p"].base, found.strands["p"].end) == (Mark.parse("5"), END)


def test_children_of_an_ended_shard_are_known_from_the_listing() -> None:
    """The planner needs them to drop the parent's END."""
    assert seed(an_offset(p="END"), SPLIT).strands["p"].children == ("c", "d")
