"""Reading a shard: iterators, pages, lag and the two shapes of its end."""

from typing import Any

import pytest

from kcl_py.local.errors import ModelError
from kcl_py.local.model import EndShape
from kcl_py.local.tokens import LIFE_S
from tests.kcl_py.local.world import World

ROOT = "shardId-000000000000"


def refusal(error: pytest.ExceptionInfo[ModelError]) -> str:
    """Return AWS's code for it."""
    return error.value.code


def test_a_page_holds_at_most_limit_records_and_goes_on_where_it_ended() -> None:
    """Pages neither repeat nor skip a record."""
    world = World()
    put = [world.put()["SequenceNumber"] for _ in range(7)]
    assert [record.sequence_number for record in world.read(limit=3)] == put
    assert len(world.get(world.iterator(), Limit=3)["Records"]) == 3


def test_a_page_holds_at_most_ten_thousand_records() -> None:
    """The default Limit is also the greatest."""
    world = World()
    world.put_many(10_001)
    assert len(world.get(world.iterator())["Records"]) == 10_000
    with pytest.raises(ModelError, match="ValidationException"):
        world.get(world.iterator(), Limit=10_001)
    with pytest.raises(ModelError, match="ValidationException"):
        world.get(world.iterator(), Limit=0)


def test_a_page_holds_at_most_ten_mebibytes_with_keys() -> None:
    """Ten records of 1 MiB fill a page; the smallest eleventh comes with the next."""
    world = World()
    for _ in range(10):
        world.put(b"x" * (1024 * 1024 - 1))
    world.put(b"")
    first = world.get(world.iterator())
    assert (len(first["Records"]), first["MillisBehindLatest"] > 0) == (10, True)
    assert len(world.get(first["NextShardIterator"])["Records"]) == 1


def test_lag_is_the_age_of_the_last_record_read_and_zero_only_at_the_tip() -> None:
    """MillisBehindLatest says how far behind the tip the answer is, as time passes."""
    world = World()
    world.put()
    world.clock.now_s += 2
    world.put()
    assert world.get(world.iterator(), Limit=1)["MillisBehindLatest"] == 2000
    world.clock.now_s += 3
    behind = world.get(world.iterator(), Limit=1)
    assert behind["MillisBehindLatest"] == 5000
    at_tip = world.get(behind["NextShardIterator"], Limit=1)
    assert (len(at_tip["Records"]), at_tip["MillisBehindLatest"]) == (1, 0)


def test_lag_is_not_zero_before_the_tip_even_within_one_millisecond() -> None:
    """A reader that stops at lag 0 must have everything."""
    world = World()
    world.put_many(2)
    assert world.get(world.iterator(), Limit=1)["MillisBehindLatest"] == 1


def test_the_end_comes_with_the_last_records_when_so_shaped() -> None:
    """No next iterator, and the children, beside the last records."""
    world = World(end_shape=EndShape.WITH_LAST)
    world.put_many(2)
    world.split(ROOT)
    first = world.get(world.iterator(), Limit=1)
    assert "ChildShards" not in first
    last = world.get(first["NextShardIterator"], Limit=1)
    assert (len(last["Records"]), "NextShardIterator" in last, last["MillisBehindLatest"]) == (1, False, 0)
    assert [child["ShardId"] for child in last["ChildShards"]] == ["shardId-000000000001", "shardId-000000000002"]
    assert all(child["ParentShards"] == [ROOT] for child in last["ChildShards"])


def test_the_end_comes_in_a_later_empty_answer_when_so_shaped() -> None:
    """The last records still have a next iterator; the answer after them has none, and the children."""
    world = World(end_shape=EndShape.AFTER_LAST)
    world.put_many(2)
    world.split(ROOT)
    last = world.get(world.iterator())
    assert (len(last["Records"]), "ChildShards" in last) == (2, False)
    end = world.get(last["NextShardIterator"])
    assert (end["Records"], "NextShardIterator" in end, len(end["ChildShards"])) == ([], False, 2)


@pytest.mark.parametrize("end_shape", EndShape)
def test_an_empty_closed_shard_ends_at_once(end_shape: EndShape) -> None:
    """Even LATEST on a closed shard gives a valid iterator, whose first answer is the end."""
    world = World(end_shape=end_shape)
    world.split(ROOT)
    for kind in ("TRIM_HORIZON", "LATEST"):
        assert len(world.get(world.iterator(kind=kind))["ChildShards"]) == 2


def test_a_merged_child_names_both_parents() -> None:
    """At the end of either parent, and in the listing."""
    world = World(2)
    world.merge(*world.open_ids())
    for parent in (ROOT, "shardId-000000000001"):
        [child] = world.get(world.iterator(parent))["ChildShards"]
        assert child["ParentShards"] == [ROOT, "shardId-000000000001"]
    merged = world.shards()[-1]
    assert (merged["ParentShardId"], merged["AdjacentParentShardId"]) == (ROOT, "shardId-000000000001")


def test_an_open_shard_never_ends() -> None:
    """At the tip the answer is empty and has a next iterator, which sees what comes later."""
    world = World()
    empty = world.get(world.iterator(kind="LATEST"))
    world.put(b"later")
    assert (empty["Records"], empty["MillisBehindLatest"]) == ([], 0)
    assert [record.data for record in world.get(empty["NextShardIterator"])["Records"]] == [b"later"]


def test_an_iterator_expires_after_five_minutes() -> None:
    """It works for 300 s and then is refused by name, whether or not it was used."""
    world = World()
    iterator = world.iterator()
    world.clock.now_s += LIFE_S
    world.get(iterator)
    world.clock.now_s += 0.001
    with pytest.raises(ModelError) as error:
        world.get(iterator)
    assert refusal(error) == "ExpiredIteratorException"


@pytest.mark.parametrize("text", ["x", "AAAA", "é", "A" * 200])
def test_a_made_up_iterator_is_an_invalid_argument(text: str) -> None:
    """Not a failure of the service (moto and kinesis-local answer 500)."""
    with pytest.raises(ModelError) as error:
        World().get(text)
    assert refusal(error) == "InvalidArgumentException"


def test_an_iterator_of_an_earlier_stream_of_the_name_is_refused() -> None:
    """A deleted and recreated stream is another stream."""
    world = World()
    iterator = world.iterator()
    world.call("DeleteStream", StreamName="s")
    world.settle()
    world.model.add_stream("s", 1)
    with pytest.raises(ModelError) as error:
        world.get(iterator)
    assert refusal(error) == "ResourceNotFoundException"


def test_at_and_after_a_sequence_number_include_and_exclude_it() -> None:
    """AT begins with the record itself, AFTER with the next."""
    world = World()
    numbers = [world.put(str(i).encode())["SequenceNumber"] for i in range(3)]
    at = world.get(world.iterator(kind="AT_SEQUENCE_NUMBER", StartingSequenceNumber=numbers[1]))
    after = world.get(world.iterator(kind="AFTER_SEQUENCE_NUMBER", StartingSequenceNumber=numbers[1]))
    assert [record.data for record in at["Records"]] == [b"1", b"2"]
    assert [record.data for record in after["Records"]] == [b"2"]


def test_a_shards_own_bounds_are_places_to_start() -> None:
    """The first number stands before every record, the last one of a closed shard after them."""
    world = World()
    world.put_many(2)
    world.split(ROOT)
    bounds = world.shards()[0]["SequenceNumberRange"]
    for kind in ("AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"):
        first = world.iterator(kind=kind, StartingSequenceNumber=bounds["StartingSequenceNumber"])
        last = world.iterator(kind=kind, StartingSequenceNumber=bounds["EndingSequenceNumber"])
        assert (len(world.get(first)["Records"]), len(world.get(last)["Records"])) == (2, 0)


def test_a_sequence_number_that_the_shard_never_gave_is_refused() -> None:
    """Neither another shard's, nor one plus 1, nor one not yet given, nor an earlier stream's."""
    world = World(2)
    lower, upper = world.open_ids()
    mine = world.put(ExplicitHashKey=str(world.hash_range(lower)[0]))["SequenceNumber"]
    strangers = [
        world.put(ExplicitHashKey=str(world.hash_range(upper)[0]))["SequenceNumber"],
        str(int(mine) + 1),
        str(int(mine) + (1 << 80)),
        "1",
    ]
    for stranger in strangers:
        for kind in ("AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"):
            with pytest.raises(ModelError) as error:
                world.iterator(lower, kind, StartingSequenceNumber=stranger)
            assert refusal(error) == "InvalidArgumentException"


def test_a_sequence_number_of_an_earlier_stream_of_the_name_is_refused() -> None:
    """It names a shard and a place that exist, in another stream."""
    world = World()
    number = world.put()["SequenceNumber"]
    world.call("DeleteStream", StreamName="s")
    world.clock.now_s += 1
    world.model.add_stream("s", 1)
    world.put()
    with pytest.raises(ModelError) as error:
        world.iterator(kind="AFTER_SEQUENCE_NUMBER", StartingSequenceNumber=number)
    assert refusal(error) == "InvalidArgumentException"


def test_at_timestamp_begins_with_the_first_record_at_or_after_it() -> None:
    """To the millisecond; a time after the last record waits for the next; a time to come is refused."""
    world = World()
    times = []
    for number in range(3):
        times.append(world.clock.now_s)
        world.put(str(number).encode())
        world.clock.now_s += 0.002

    def first(timestamp: float) -> list[bytes]:
        answer = world.get(world.iterator(kind="AT_TIMESTAMP", Timestamp=timestamp))
        return [record.data for record in answer["Records"]][:1]

    assert [first(0.0), first(times[1]), first(times[1] + 0.001), first(world.clock.now_s)] == [
        [b"0"],
        [b"1"],
        [b"2"],
        [],
    ]
    with pytest.raises(ModelError) as error:
        first(world.clock.now_s + 1)
    assert refusal(error) == "InvalidArgumentException"


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("LATEST", {"StartingSequenceNumber": "1"}),
        ("AT_SEQUENCE_NUMBER", {}),
        ("AT_TIMESTAMP", {}),
        ("TRIM_HORIZON", {"Timestamp": 1.0}),
    ],
)
def test_an_iterator_type_takes_its_own_argument_and_no_other(kind: str, more: dict[str, Any]) -> None:
    """A start that is not what the caller meant is refused, not guessed."""
    with pytest.raises(ModelError) as error:
        World().iterator(kind=kind, **more)
    assert refusal(error) == "InvalidArgumentException"


def test_arrival_times_do_not_go_back_when_the_clock_does() -> None:
    """The order of a shard and its arrival times agree."""
    world = World()
    world.put()
    world.clock.now_s -= 60
    world.put()
    first, second = world.read()
    assert first.arrived_s == second.arrived_s == 1_700_000_000.25
