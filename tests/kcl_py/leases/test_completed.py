"""Which rows of shards that were read may be deleted, and that nobody misses them, over any lineage."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcl_py.leases.completed import deletable
from kcl_py.leases.row import AT_TIMESTAMP, LATEST, SHARD_END, TRIM_HORIZON, LeaseRow
from kcl_py.sources.source import LATEST as FROM_LATEST
from kcl_py.sources.source import TRIM_HORIZON as FROM_HORIZON
from kcl_py.sources.source import Position, PositionKind
from tests.kcl_py.leases.consumer import Consumer
from tests.kcl_py.leases.streams import Stream

AT_INSTANT = Position(PositionKind.AT_TIMESTAMP, 1_000_085)
STARTS = [FROM_HORIZON, FROM_LATEST, AT_INSTANT]
STEPS = ("reshard", "read", "read", "read", "list", "delete", "delete")


def table(**rows: str) -> dict[str, LeaseRow]:
    """Read ``b="7 after a"`` as the row of shard b, and ``a="SHARD_END before b c"`` as that of one that has ended."""
    found = {}
    for key, text in rows.items():
        checkpoint, _, rest = text.partition(" ")
        word, _, names = rest.partition(" ")
        family = {"after": "parents", "before": "children"}
        relatives: dict[str, Any] = {family[word]: tuple(names.split())} if word else {}
        found[key] = LeaseRow(key, checkpoint=checkpoint, **relatives)
    return found


def deleted(rows: dict[str, LeaseRow], settled: str = "abcdef") -> str:
    return "".join(row.key for row in deletable(rows, settled))


SPLIT = "SHARD_END before b c"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param({"a": SPLIT}, "", id="no child has a row"),
        pytest.param({"a": SPLIT, "b": "7 after a"}, "", id="one child has no row"),
        pytest.param({"a": SPLIT, "b": "7 after a", "c": TRIM_HORIZON}, "", id="one child is at its beginning"),
        pytest.param({"a": SPLIT, "b": "7 after a", "c": LATEST}, "", id="one child is at an instant"),
        pytest.param({"a": SPLIT, "b": "7 after a", "c": AT_TIMESTAMP}, "", id="one child is at an instant"),
        pytest.param({"a": SPLIT, "b": "7 after a", "c": "8 after a"}, "a", id="both children have progress"),
        pytest.param({"a": SPLIT, "b": "7 after a", "c": SHARD_END}, "a", id="one child has ended"),
        pytest.param({"a": "7 before b", "b": "7 after a"}, "", id="it has not ended"),
        pytest.param({"a": SHARD_END}, "", id="nobody knows its children"),
        pytest.param({"a": SHARD_END, "b": "7 after a"}, "", id="nobody knows whether those are all its children"),
        pytest.param(
            {"a": "SHARD_END before b", "b": "7 after a", "c": "TRIM_HORIZON after a"}, "", id="a child not named"
        ),
        pytest.param({"a": "SHARD_END before b", "b": "SHARD_END before c", "c": "7 after b"}, "ab", id="generations"),
    ],
)  # fmt: skip
def test_row_goes_when_all_its_children_are_beyond_their_beginning(rows: dict[str, str], expected: str) -> None:
    """Until then it says that they may begin, and that its own shard was read."""
    assert deleted(table(**rows)) == expected


def test_row_stays_while_that_of_a_parent_is_there() -> None:
    """Of a merge whose other leg is still there none of its descendants goes; parents go before their children."""
    rows = table(a="SHARD_END before c", b="SHARD_END before c", d="7 after c")
    rows["c"] = LeaseRow("c", checkpoint=SHARD_END, parents=("a", "b"), children=("d",))
    assert deleted(rows) == "abc"
    assert deleted(rows, settled="ac") == "a"


def test_rows_that_descend_from_themselves_stay() -> None:
    """Somebody has written that by hand."""
    own = LeaseRow("a", checkpoint=SHARD_END, parents=("a",), children=("a",))
    assert not deletable({"a": own}, {"a"})


@settings(max_examples=150, deadline=None)
@given(
    rng=st.randoms(use_true_random=False),
    start=st.sampled_from(STARTS),
    steps=st.lists(st.sampled_from(STEPS), max_size=60),
)
def test_nobody_misses_a_row_that_was_deleted(rng: random.Random, start: Position, steps: list[str]) -> None:
    """Over any lineage, in any order: each record comes once, after all of its parents', and no row comes back."""
    stream, consumer = begun(rng, start)
    for step in steps:
        take(step, stream, consumer)
        consumer.check()
    stream.live_on(1)
    consumer.read_to_the_tips()
    consumer.check()
    for shard in stream.shards.values():
        wanted = [at_ms for at_ms in shard.records if at_ms >= consumer.since_ms]
        assert consumer.handed.get(shard.name, 0) == len(wanted), f"{shard.name} was not read to its end"


@settings(max_examples=150, deadline=None)
@given(
    rng=st.randoms(use_true_random=False),
    start=st.sampled_from(STARTS),
    steps=st.lists(st.sampled_from((*STEPS, "age out")), max_size=60),
)
def test_nobody_misses_a_row_when_shards_age_out(rng: random.Random, start: Position, steps: list[str]) -> None:
    """Whether they were read by then or not: all that is still there when it is its turn is read, once."""
    stream, consumer = begun(rng, start)
    for step in steps:
        take(step, stream, consumer)
        consumer.check()
    stream.live_on(1)
    consumer.read_to_the_tips()
    for shard in stream.shards.values():
        wanted = [at_ms for at_ms in shard.records if at_ms >= consumer.since_ms]
        is_read = consumer.handed.get(shard.name, 0) == len(wanted)
        assert is_read or shard.name in stream.gone, f"{shard.name} was not read to its end"


@settings(max_examples=100, deadline=None)
@given(
    rng=st.randoms(use_true_random=False),
    start=st.sampled_from(STARTS),
    steps=st.lists(st.sampled_from(STEPS), max_size=40),
    more=st.lists(st.sampled_from(STEPS[:4]), max_size=20),
)
def test_nothing_is_lost_when_somebody_deletes_a_row_after_those_that_were_done_with(
    rng: random.Random, start: Position, steps: list[str], more: list[str]
) -> None:
    """Records may come again then, and none is passed over."""
    stream, consumer = begun(rng, start)
    for step in steps:
        take(step, stream, consumer)
    consumer.lose_a_row()
    for step in more:
        take(step, stream, consumer)
    stream.live_on(1)
    consumer.read_to_the_tips()
    for shard in stream.shards.values():
        wanted = [at_ms for at_ms in shard.records if at_ms >= consumer.since_ms]
        assert consumer.has_read(shard.name, len(wanted)), f"{shard.name} was not read to its end"


def begun(rng: random.Random, start: Position) -> tuple[Stream, Consumer]:
    """Begin to read a stream that has lived for a while."""
    stream = Stream(rng)
    stream.live_on(rng.randrange(8))
    stream.now_ms += 5000 if start is FROM_LATEST else 0
    return stream, Consumer(stream, start)


@pytest.mark.parametrize("start", STARTS, ids=["horizon", "latest", "instant"])
@pytest.mark.parametrize("seed", range(20))
def test_rows_that_are_left_are_those_of_open_shards(seed: int, start: Position) -> None:
    """Once every shard has had a record, nothing is left of the generations before."""
    stream = Stream(random.Random(seed))
    stream.live_on(6)
    stream.now_ms += 5000 if start is FROM_LATEST else 0
    consumer = Consumer(stream, start)
    stream.live_on(20)
    for shard in stream.shards.values():
        if shard.closed_ms is None:
            shard.records.append(stream.now_ms)
    consumer.read_to_the_tips()
    assert consumer.delete(most=1000) > 5
    assert not [key for key, row in consumer.rows.items() if row.has_ended]


@pytest.mark.parametrize("seed", range(20))
def test_instant_where_reading_began_outlives_the_rows_that_were_made_then(seed: int) -> None:
    """A row that somebody deletes generations later begins there, and not at the newest record."""
    stream = Stream(random.Random(seed))
    stream.now_ms += 5000
    consumer = Consumer(stream, FROM_LATEST)
    begun_ms = {row.native.start_ms for row in consumer.rows.values()}
    for _ in range(5):
        stream.live_on(6)
        consumer.read_to_the_tips()
        consumer.delete(most=1000)
    assert len(consumer.deleted) > 5
    assert {row.native.start_ms for row in consumer.rows.values()} == begun_ms


def take(step: str, stream: Stream, consumer: Consumer) -> None:
    """Do one of the things that can happen."""
    match step:
        case "reshard":
            stream.live_on(1)
        case "read":
            consumer.read()
        case "list":
            consumer.look_at_shards()
        case "delete":
            consumer.delete()
        case "age out":
            stream.age_out()
