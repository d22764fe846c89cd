"""KinesisSource over the local Kinesis in memory: listing, opening and reading to the end."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import pytest

from actors import SystemClock
from actors.testing import ManualClock
from kcl_py.errors import IteratorExpiredError, MissingError, RejectedError, RequestError
from kcl_py.local.client import KinesisClient
from kcl_py.local.faults.client import FaultyClient
from kcl_py.local.faults.fault import Fault, Kind
from kcl_py.local.faults.faults import Faults
from kcl_py.local.model import EndShape, Kinesis
from kcl_py.sources.kinesis.polling import KinesisSource
from kcl_py.sources.source import LATEST, TRIM_HORIZON, Fetched, Listing, Position, PositionKind, ShardInfo

pytestmark = pytest.mark.asyncio

FIRST, SECOND, THIRD = (f"shardId-{index:012d}" for index in range(3))
MIDDLE = str(2**127)


class World:
    """One stream of the local Kinesis, with a client and a source of it."""

    def __init__(self, shard_count: int = 1, **options: Any) -> None:
        self.clock = ManualClock()
        self.model = Kinesis(self.clock, **options)
        self.model.add_stream("orders", shard_count)
        self.client = KinesisClient(self.model, self.clock)
        self.source = KinesisSource(self.client, "orders", clock=self.clock)

    async def put(self, *payloads: bytes) -> None:
        for payload in payloads:
            await self.client.put_record(StreamName="orders", PartitionKey="key", Data=payload)

    async def split(self) -> None:
        await self.client.split_shard(StreamName="orders", ShardToSplit=FIRST, NewStartingHashKey=MIDDLE)
        await self.clock.advance(1.0)

    async def read_from(self, position: Position, *, limit: int = 100) -> list[Fetched]:
        """Read the first shard until its end, or until a reply is empty."""
        iterator: str | None = await self.source.open(FIRST, position)
        replies = []
        while iterator is not None:
            replies.append(await self.source.fetch(FIRST, iterator, limit=limit))
            iterator = replies[-1].next_iterator if replies[-1].records else None
        return replies


def payloads(replies: list[Fetched]) -> list[bytes]:
    """Return the payloads of all replies, in order."""
    return [record.data for reply in replies for record in reply.records]


async def test_describe_tells_a_stream_from_an_earlier_one_of_its_name() -> None:
    """Deleting and creating a stream gives another identity under the same name."""
    world = World()
    before = await world.source.describe()
    await world.client.delete_stream(StreamName="orders")
    await world.clock.advance(5.0)
    world.model.add_stream("orders", 1)
    after = await world.source.describe()
    assert (before.name, before.status) == ("orders", "ACTIVE")
    assert before.identity == f"orders:{before.created_s}"
    assert after.created_s == before.created_s + 5
    assert after.server_time_s == world.clock.time()


async def test_source_takes_an_arn_for_the_stream() -> None:
    """A stream named by its ARN is listed, opened and read as by its name."""
    world = World()
    arn = (await world.source.describe()).arn
    world.source = KinesisSource(world.client, arn, clock=world.clock)
    await world.put(b"a")
    assert len((await world.source.list_shards()).shards) == 1
    assert payloads(await world.read_from(TRIM_HORIZON)) == [b"a"]


async def test_source_says_missing_when_there_is_no_such_stream_or_shard() -> None:
    """Both are MissingError, naming what was asked for."""
    world = World()
    with pytest.raises(MissingError, match="orders/shardId-9"):
        await world.source.open("shardId-9", TRIM_HORIZON)
    with pytest.raises(MissingError, match="'none'"):
        await KinesisSource(world.client, "none", clock=world.clock).describe()


async def test_list_shards_follows_all_pages_of_a_large_stream() -> None:
    """A stream of 2,500 shards is listed whole; AWS refuses a follow-up that names the stream again."""
    shards = (await World(2500).source.list_shards()).shards
    assert [shard.shard_id for shard in shards] == [f"shardId-{index:012d}" for index in range(2500)]
    ranges = [shard.hash_range for shard in shards if shard.hash_range]
    assert all(low[1] + 1 == high[0] for low, high in pairwise(ranges))
    assert (ranges[0][0], ranges[-1][1]) == (0, 2**128 - 1)
    assert not any(shard.closed or shard.parents for shard in shards)


class StallingClient(KinesisClient):
    """Lets five minutes and more of the service's time pass before it asks for a following page."""

    def __init__(self, world: World, stalls: int) -> None:
        super().__init__(world.model, world.clock)
        self._stalls, self._clock_to_move = stalls, world.clock
        self.pages: list[dict[str, Any]] = []

    async def list_shards(self, **params: Any) -> dict[str, Any]:
        self.pages.append(params)
        if "NextToken" in params and self._stalls:
            self._stalls -= 1
            await self._clock_to_move.advance(301.0)
        return await super().list_shards(**params)


async def test_list_shards_begins_again_when_a_page_token_expires() -> None:
    """The listing is complete and holds no shard twice."""
    world = World(1500)
    client = StallingClient(world, stalls=1)
    shards = (await KinesisSource(client, "orders", clock=SystemClock()).list_shards()).shards
    assert len({shard.shard_id for shard in shards}) == len(shards) == 1500
    assert [sorted(page) for page in client.pages] == [["StreamName"], ["NextToken"], ["StreamName"], ["NextToken"]]


async def test_list_shards_fails_when_its_tokens_expire_every_time() -> None:
    """It ends with an error that may be tried again, never with part of a listing."""
    world = World(1500)
    client = StallingClient(world, stalls=100)
    with pytest.raises(RequestError, match="ExpiredNextTokenException") as raised:
        await KinesisSource(client, "orders", clock=SystemClock()).list_shards()
    assert raised.value.retryable


async def test_list_shards_shows_the_lineage_after_a_split() -> None:
    """The parent is closed; its children name it and divide its range."""
    world = World()
    await world.split()
    parent, low, high = (await world.source.list_shards()).shards
    assert (parent.closed, low.closed, high.closed) == (True, False, False)
    assert low.parents == high.parents == (FIRST,)
    assert (low.hash_range, high.hash_range) == ((0, 2**127 - 1), (2**127, 2**128 - 1))
    assert parent.starts_at < low.starts_at


async def test_list_shards_shows_both_parents_after_a_merge() -> None:
    """The child of a merge has two."""
    world = World(2)
    await world.client.merge_shards(StreamName="orders", ShardToMerge=FIRST, AdjacentShardToMerge=SECOND)
    await world.clock.advance(1.0)
    assert (await world.source.list_shards()).shards[-1].parents == (FIRST, SECOND)


async def test_list_shards_at_a_position_leaves_out_the_shards_that_end_before_it() -> None:
    """At latest only open shards are left; at an instant before the split, or before the stream, none is left out."""
    world = World()
    before_ms = int(world.clock.time() * 1000)
    await world.clock.advance(10.0)
    await world.split()

    async def listed(at: Position) -> list[str]:
        return [shard.shard_id for shard in (await world.source.list_shards(at)).shards]

    assert await listed(LATEST) == [SECOND, THIRD]
    assert await listed(TRIM_HORIZON) == [FIRST]
    assert await listed(Position(PositionKind.AT_TIMESTAMP, before_ms)) == [FIRST, SECOND, THIRD]
    assert await listed(Position(PositionKind.AT_TIMESTAMP, 1)) == [FIRST, SECOND, THIRD]
    after_ms = int(world.clock.time() * 1000)
    assert await listed(Position(PositionKind.AT_TIMESTAMP, after_ms)) == [SECOND, THIRD]
    with pytest.raises(ValueError, match="AT_SEQUENCE_NUMBER"):
        await world.source.list_shards(Position(PositionKind.AT, 1))


async def test_open_begins_at_each_kind_of_position() -> None:
    """At and after a number, at an instant to the millisecond, at the oldest and at what comes next."""
    world = World()
    await world.put(b"a")
    await world.clock.advance(0.25)
    second_ms = round(world.clock.time() * 1000)
    await world.put(b"b", b"c")
    numbers = [r.position.value for reply in await world.read_from(TRIM_HORIZON) for r in reply.records]

    async def read(kind: PositionKind, value: int) -> list[bytes]:
        return payloads(await world.read_from(Position(kind, value)))

    assert await read(PositionKind.AT, numbers[1]) == [b"b", b"c"]
    assert await read(PositionKind.AFTER, numbers[1]) == [b"c"]
    assert await read(PositionKind.AT_TIMESTAMP, second_ms) == [b"b", b"c"]
    assert payloads(await world.read_from(LATEST)) == []


async def test_open_is_rejected_when_the_number_is_none_of_the_shard() -> None:
    """AWS refuses a number that the shard cannot have given; repeating does not help."""
    with pytest.raises(RejectedError) as raised:
        await World().source.open(FIRST, Position(PositionKind.AFTER, 10**60))
    assert not raised.value.retryable


@pytest.mark.parametrize(("shape", "replies"), [(EndShape.WITH_LAST, 2), (EndShape.AFTER_LAST, 3)])
async def test_fetch_ends_a_closed_shard_with_its_children_in_either_shape(shape: EndShape, replies: int) -> None:
    """The end comes with the last records or in a reply of its own; no record is missing and both children are told."""
    world = World(end_shape=shape)
    await world.put(b"a", b"b", b"c")
    await world.split()
    seen = await world.read_from(TRIM_HORIZON, limit=2)
    assert len(seen) == replies
    assert payloads(seen) == [b"a", b"b", b"c"]
    assert seen[-1].next_iterator is None
    assert [(child.shard_id, child.parents) for child in seen[-1].children] == [(SECOND, (FIRST,)), (THIRD, (FIRST,))]


async def test_fetch_counts_payload_bytes_and_tells_the_lag() -> None:
    """The size is that of the payloads; the lag is 0 only at the tip."""
    world = World()
    await world.put(b"four", b"sixsix")
    await world.clock.advance(2.0)
    first, second, tip = await world.read_from(TRIM_HORIZON, limit=1)
    assert [first.size_bytes, second.size_bytes, tip.size_bytes] == [4, 6, 0]
    assert (first.lag_ms, second.lag_ms) == (2000, 0)


async def test_fetch_says_expired_when_an_iterator_is_older_than_five_minutes() -> None:
    """The reader can tell it from every other failure."""
    world = World()
    iterator = await world.source.open(FIRST, TRIM_HORIZON)
    await world.clock.advance(301.0)
    with pytest.raises(IteratorExpiredError):
        await world.source.fetch(FIRST, iterator, limit=1)


@pytest.mark.parametrize(
    ("ask", "within_s"),
    [
        (lambda source: source.describe(), 5.0),
        (lambda source: source.list_shards(), 5.0),
        (lambda source: source.open(FIRST, TRIM_HORIZON), 5.0),
        (lambda source: source.fetch(FIRST, "iterator", limit=1), 20.0),
    ],
    ids=["describe", "list_shards", "open", "fetch"],
)
async def test_request_that_hangs_is_given_up_the_sooner_the_less_it_asks_for(
    ask: Callable[[KinesisSource], Awaitable[object]], within_s: float
) -> None:
    """A worker whose first listing is lost on the way does not wait for it as for ten megabytes."""
    world = World()
    client = FaultyClient(
        world.client, "kinesis", Faults([Fault(kind=Kind.HANG)], random=random.Random(0)), clock=world.clock
    )
    asked = asyncio.ensure_future(ask(KinesisSource(client, "orders", clock=world.clock)))
    await world.clock.advance(within_s - 0.1)
    assert not asked.done()
    await world.clock.advance(0.2)
    with pytest.raises(RequestError, match="no reply before the deadline"):
        await asked


@pytest.mark.parametrize(
    ("known", "is_behind"),
    [((), False), ((FIRST,), False), ((SECOND,), False), ((THIRD,), True), (("shardId-000000000000",), False)],
)
async def test_listing_is_behind_what_is_younger_than_all_its_shards(known: tuple[str, ...], is_behind: bool) -> None:
    """What has aged out is older, and what has no shards says nothing."""
    shards = tuple(ShardInfo(key, (), (0, 1)) for key in (SECOND,))
    assert Listing(shards, 0.0).is_behind(known) is is_behind
    assert not Listing((), 0.0).is_behind(known)
