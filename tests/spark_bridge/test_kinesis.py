"""The few calls that the bridge makes itself, where AWS is behind."""

from typing import Any

import pytest

from kcl_py.sources.source import Listing, ShardInfo
from spark_bridge.kinesis import listed

pytestmark = pytest.mark.asyncio

OLD, NEW = ShardInfo("shardId-000000000000", (), (0, 9)), ShardInfo("shardId-000000000001", (), (0, 9))


class Behind:
    """A source whose listing shows the younger shard only after a while, or never."""

    def __init__(self, asked_for: int) -> None:
        self._left = asked_for

    async def list_shards(self) -> Listing:
        self._left -= 1
        return Listing((OLD,) if self._left > 0 else (OLD, NEW), 0.0)


async def nothing(pause_s: float) -> None:
    """Take no time."""


@pytest.mark.parametrize(("asked_for", "shards"), [(1, (OLD, NEW)), (3, (OLD, NEW)), (1000, (OLD,))])
async def test_listing_that_is_older_than_the_offset_is_asked_for_again(
    asked_for: int, shards: tuple[Any, ...]
) -> None:
    """A shard that Spark has read from is not lost because a listing is late; one that never comes is."""
    source: Any = Behind(asked_for)
    assert (await listed(source, [NEW.shard_id], sleep=nothing)).shards == shards
