"""Listing shards: pages by token alone, and filters."""

import pytest

from kcl_py.local.errors import ModelError
from kcl_py.local.tokens import LIFE_S
from tests.kcl_py.local.world import World


def ids(shards: list[dict[str, str]]) -> list[int]:
    """Return the numbers in the shards' ids."""
    return [int(shard["ShardId"][-12:]) for shard in shards]


def test_pages_are_followed_by_the_token_alone_until_there_is_none() -> None:
    """Every shard is listed once, in order."""
    world, listed = World(7), []
    page = world.call("ListShards", StreamName="s", MaxResults=3)
    listed += ids(page["Shards"])
    while token := page.get("NextToken"):
        page = world.call("ListShards", NextToken=token, MaxResults=3)
        listed += ids(page["Shards"])
    assert listed == list(range(7))


def test_a_page_holds_at_most_a_thousand_shards_whatever_is_asked() -> None:
    """A stream of 2,500 shards takes three pages."""
    world, sizes = World(2500), []
    page = world.call("ListShards", StreamName="s", MaxResults=10_000)
    sizes.append(len(page["Shards"]))
    while token := page.get("NextToken"):
        page = world.call("ListShards", NextToken=token)
        sizes.append(len(page["Shards"]))
    assert sizes == [1000, 1000, 500]


@pytest.mark.parametrize(
    "more",
    [
        {"StreamName": "s"},
        {"StreamCreationTimestamp": 1.0},
        {"ExclusiveStartShardId": "shardId-000000000000"},
        {"ShardFilter": {"Type": "AT_LATEST"}},
    ],
)
def test_a_token_beside_another_choice_of_shards_is_refused(more: dict[str, object]) -> None:
    """As AWS does, where moto takes only this."""
    world = World(2)
    token = world.call("ListShards", StreamName="s", MaxResults=1)["NextToken"]
    with pytest.raises(ModelError, match="InvalidArgumentException"):
        world.call("ListShards", NextToken=token, **more)


def test_a_token_expires_after_five_minutes() -> None:
    """It works for 300 s and then is refused by name."""
    world = World(2)
    token = world.call("ListShards", StreamName="s", MaxResults=1)["NextToken"]
    world.clock.now_s += LIFE_S
    assert ids(world.call("ListShards", NextToken=token)["Shards"]) == [1]
    world.clock.now_s += 0.001
    with pytest.raises(ModelError, match="ExpiredNextTokenException"):
        world.call("ListShards", NextToken=token)


def test_a_made_up_token_is_an_invalid_argument() -> None:
    """An iterator is no page token either."""
    world = World()
    for token in ("x", world.iterator()):
        with pytest.raises(ModelError, match="InvalidArgumentException"):
            world.call("ListShards", NextToken=token)


def test_a_token_keeps_the_filter_of_its_listing() -> None:
    """The second page of the open shards lists open shards."""
    world = World(2)
    world.split("shardId-000000000000")
    page = world.call("ListShards", StreamName="s", MaxResults=1, ShardFilter={"Type": "AT_LATEST"})
    assert ids(page["Shards"]) == [1]
    assert ids(world.call("ListShards", NextToken=page["NextToken"])["Shards"]) == [2, 3]


def test_listing_goes_on_after_a_shard_id() -> None:
    """ExclusiveStartShardId and the filter AFTER_SHARD_ID mean the same."""
    world = World(3)
    after = world.call("ListShards", StreamName="s", ExclusiveStartShardId="shardId-000000000000")
    assert ids(after["Shards"]) == ids(world.shards("AFTER_SHARD_ID", ShardId="shardId-000000000000")) == [1, 2]


def test_filters_tell_the_generations_apart() -> None:
    """After a split: the trim horizon has the parent, the tip the children, and the whole stream both."""
    world = World(2)
    world.clock.now_s += 10
    before = world.clock.now_s
    world.split("shardId-000000000000")
    world.clock.now_s += 10
    assert ids(world.shards("AT_TRIM_HORIZON")) == [0, 1]
    assert ids(world.shards("AT_LATEST")) == [1, 2, 3]
    assert ids(world.shards("FROM_TRIM_HORIZON")) == ids(world.shards()) == [0, 1, 2, 3]
    assert ids(world.shards("AT_TIMESTAMP", Timestamp=before)) == [0, 1]
    assert ids(world.shards("AT_TIMESTAMP", Timestamp=world.clock.now_s)) == [1, 2, 3]
    assert ids(world.shards("FROM_TIMESTAMP", Timestamp=before)) == [0, 1, 2, 3]
    assert ids(world.shards("FROM_TIMESTAMP", Timestamp=world.clock.now_s)) == [1, 2, 3]


def test_the_trim_horizon_moves_on_with_the_retention() -> None:
    """A day after the split its children are what was open a day ago."""
    world = World()
    world.split("shardId-000000000000")
    world.clock.now_s += 24 * 3600 + 1
    assert ids(world.shards("AT_TRIM_HORIZON")) == [1, 2]


def test_the_trim_horizon_has_one_generation_even_if_the_next_came_in_the_same_instant() -> None:
    """A first sync that starts there must not begin with a child."""
    world = World(delay_s=0.0)
    world.split("shardId-000000000000")
    assert ids(world.shards("AT_TRIM_HORIZON")) == [0]


@pytest.mark.parametrize(
    "wanted",
    [{"Type": "AFTER_SHARD_ID"}, {"Type": "AT_TIMESTAMP"}, {"Type": "AT_LATEST", "Timestamp": 1.0}],
)
def test_a_filter_takes_its_own_argument_and_no_other(wanted: dict[str, object]) -> None:
    """A filter that says less or more than its type is refused."""
    with pytest.raises(ModelError, match="InvalidArgumentException"):
        World().call("ListShards", StreamName="s", ShardFilter=wanted)


def test_an_unknown_filter_is_a_validation_error() -> None:
    """Nothing is ignored."""
    with pytest.raises(ModelError, match="ValidationException"):
        World().call("ListShards", StreamName="s", ShardFilter={"Type": "SOME"})
