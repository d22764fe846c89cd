"""Laws that hold through any sequence of puts, splits and merges."""

from contextlib import suppress
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from kcl_py.local.errors import ModelError
from kcl_py.local.hashing import RING, even_ranges, hash_key
from kcl_py.local.sequence import parse
from kcl_py.records import Record
from tests.kcl_py.local.world import World

Step = tuple[str, int]
steps = st.lists(st.tuples(st.sampled_from(["put", "put", "put", "split", "merge", "wait"]), st.integers(0, 30)))
worlds = st.integers(1, 4)


def play(world: World, story: list[Step]) -> list[tuple[str, int]]:
    """Do what ``story`` says, as far as it can be done, and return the (key, number) of each put, in order."""
    put: list[tuple[str, int]] = []
    for word, number in story:
        open_ids = world.open_ids()
        at = number % len(open_ids)
        if word == "put":
            key = f"key-{number}"
            world.put(str(len(put)).encode(), key)
            put.append((key, len(put)))
        elif word == "split":
            with suppress(ModelError):  # a range too narrow
                world.split(open_ids[at])
        elif word == "merge" and at + 1 < len(open_ids):
            world.merge(open_ids[at], open_ids[at + 1])
        elif word == "wait":
            world.clock.now_s += number
    return put


def by_lineage(world: World) -> list[tuple[str, list[Record]]]:
    """Return every shard's records, parents before children."""
    return [(shard["ShardId"], world.read(shard["ShardId"])) for shard in world.shards()]


@given(st.integers(1, 3000))
def test_even_ranges_cover_the_ring_without_gap_or_overlap(count: int) -> None:
    """Every hash key belongs to exactly one shard of a new stream."""
    ranges = even_ranges(count)
    assert (ranges[0][0], ranges[-1][1], len(ranges)) == (0, RING - 1, count)
    assert all(last + 1 == first for (_, last), (first, _) in pairwise(ranges))


@settings(max_examples=60, deadline=None)
@given(worlds, steps)
def test_open_shards_cover_the_ring_through_splits_and_merges(shards: int, story: list[Step]) -> None:
    """However a stream was resharded, every key still has one shard to go to."""
    world = World(shards)
    play(world, story)
    ranges = [world.hash_range(shard_id) for shard_id in world.open_ids()]
    assert (ranges[0][0], ranges[-1][1]) == (0, RING - 1)
    assert all(last + 1 == first for (_, last), (first, _) in pairwise(ranges))


@settings(max_examples=60, deadline=None)
@given(worlds, steps)
def test_every_record_is_read_once_and_in_order_of_its_key_when_parents_are_read_first(
    shards: int, story: list[Step]
) -> None:
    """Reading along the lineage gives back what was put: nothing lost, nothing twice, each key in its order."""
    world = World(shards)
    put = play(world, story)
    got = [(record.partition_key, int(record.data)) for _, records in by_lineage(world) for record in records]
    assert sorted(got) == sorted(put)
    for key in {key for key, _ in put}:
        assert [pair for pair in got if pair[0] == key] == [pair for pair in put if pair[0] == key]


@settings(max_examples=60, deadline=None)
@given(worlds, steps)
def test_a_record_lies_in_the_shard_whose_range_holds_its_key(shards: int, story: list[Step]) -> None:
    """Routing is by the MD5 of the partition key."""
    world = World(shards)
    play(world, story)
    for shard_id, records in by_lineage(world):
        first, last = world.hash_range(shard_id)
        assert all(first <= hash_key(record.partition_key) <= last for record in records)


@settings(max_examples=60, deadline=None)
@given(worlds, steps)
def test_sequence_numbers_have_56_digits_are_unique_and_grow_from_parent_to_child(
    shards: int, story: list[Step]
) -> None:
    """A sequence number orders a shard's records, and a lineage; it tells its shard, and never repeats."""
    world = World(shards)
    play(world, story)
    numbers = {shard_id: [int(r.sequence_number) for r in records] for shard_id, records in by_lineage(world)}
    for shard in world.shards():
        mine, bounds = numbers[shard["ShardId"]], shard["SequenceNumberRange"]
        low, high = int(bounds["StartingSequenceNumber"]), int(bounds.get("EndingSequenceNumber", 10**56))
        assert [low, *mine, high] == sorted({low, *mine, high})
        assert all(len(str(number)) == 56 and number.bit_length() == 186 for number in [low, *mine])
        assert all((p := parse(str(n))) and f"shardId-{p.shard:012d}" == shard["ShardId"] for n in mine)
        parents = {shard.get("ParentShardId"), shard.get("AdjacentParentShardId")}
        ends = [s["SequenceNumberRange"]["EndingSequenceNumber"] for s in world.shards() if s["ShardId"] in parents]
        assert all(int(end) < low for end in ends)
    everything = [number for mine in numbers.values() for number in mine]
    assert len(set(everything)) == len(everything)


def test_a_partition_key_lands_where_aws_puts_it() -> None:
    """The hash is AWS's: known values of MD5 as a 128-bit number."""
    assert hash_key("") == 0xD41D8CD98F00B204E9800998ECF8427E
    assert hash_key("a") == 0x0CC175B9C0F1B6A831C399E269772661


def test_an_explicit_hash_key_decides_the_shard_up_to_the_top_of_the_ring() -> None:
    """The first and the last key of each range belong to it (moto answers 500 to the last)."""
    world = World(3)
    for shard_id in world.open_ids():
        for key in world.hash_range(shard_id):
            assert world.put(ExplicitHashKey=str(key))["ShardId"] == shard_id


def test_a_record_put_while_the_split_is_under_way_goes_to_the_parent() -> None:
    """Until the stream is ACTIVE again the old shards take the writes."""
    world = World()
    world.call("SplitShard", StreamName="s", ShardToSplit="shardId-000000000000", NewStartingHashKey="1000")
    before = world.put()["ShardId"]
    world.settle()
    assert (before, world.put()["ShardId"]) == ("shardId-000000000000", "shardId-000000000002")
