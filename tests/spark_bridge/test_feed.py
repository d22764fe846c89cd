"""Between the tree's loop and Spark's thread: room, repetition, failure."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from actors.testing import settle
from kcl_py.leases.memory import MemoryLeaseStore
from kcl_py.leases.row import Halt, LeaseRow, Native
from kcl_py.records import Record
from spark_bridge.feed import Feed
from spark_bridge.plan import Strand
from spark_bridge.spool import Spool
from spark_bridge.tree import ShardStandsError, no_shard_stands
from tests.spark_bridge.builders import an_offset

START = an_offset(a="@0")


def some_records(first: int, last: int) -> list[Record]:
    return [Record(str(number), b"x" * 1000, "key") for number in range(first, last + 1)]


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    """The spool of one run."""
    with closing(Spool(str(tmp_path))) as spool:
        yield spool


def a_feed(spool: Spool, *, most_bytes: int = 10_000) -> Feed:
    """A feed that one shard ``a`` goes into."""
    feed = Feed(spool, stream="s", most_bytes=most_bytes)
    feed.begin({"a": Strand()})
    return feed


def end_of(feed: Feed) -> str:
    return str(feed.wait_for_end(START, max_rows=100, timeout_s=0)["a"])


@pytest.mark.asyncio
async def test_records_are_spooled_once_when_the_tree_delivers_them_again(spool: Spool) -> None:
    """A shard that the tree began anew comes from its checkpoint; Spark must not see a row twice."""
    feed = a_feed(spool)
    await feed.put("a", some_records(1, 4))
    await feed.put("a", some_records(3, 6))
    await feed.put("a", some_records(5, 6))
    [item] = feed.ranges(START, an_offset(a="6"))
    assert [(segment.first.value, segment.last.value) for segment in item.segments or ()] == [(1, 4), (5, 6)]


@pytest.mark.asyncio
async def test_put_waits_until_spark_has_finished_what_is_spooled(spool: Spool) -> None:
    """Spark's demand is the shard's: no room, no return, no further read."""
    feed = a_feed(spool)
    await feed.put("a", some_records(1, 8))
    waiting = asyncio.create_task(feed.put("a", some_records(9, 12)))
    await settle()
    assert not waiting.done()
    assert end_of(feed) == "8"
    feed.release(an_offset(a="8"))
    await waiting
    assert str(feed.tip(an_offset(a="8"))["a"]) == "12"


@pytest.mark.asyncio
async def test_put_takes_a_batch_that_is_larger_than_the_room_when_nothing_else_is_spooled(spool: Spool) -> None:
    """A limit below one batch must not stop the query."""
    feed = a_feed(spool, most_bytes=1)
    await feed.put("a", some_records(1, 4))
    assert end_of(feed) == "4"


@pytest.mark.asyncio
async def test_put_returns_without_spooling_when_the_query_stops(spool: Spool) -> None:
    """Nobody waits for room in a query that is over."""
    feed = a_feed(spool)
    await feed.put("a", some_records(1, 8))
    waiting = asyncio.create_task(feed.put("a", some_records(9, 12)))
    await settle()
    feed.close()
    await waiting
    assert end_of(feed) == "8"


@pytest.mark.asyncio
async def test_spark_gets_news_while_it_waits(spool: Spool) -> None:
    """``latestOffset`` returns with the first segment, not after its time."""
    feed = a_feed(spool)
    waiting = asyncio.create_task(asyncio.to_thread(feed.wait_for_end, START, max_rows=100, timeout_s=30))
    await feed.put("a", some_records(1, 4))
    assert str((await waiting)["a"]) == "4"


@pytest.mark.asyncio
async def test_spark_gets_the_error_that_ended_the_tree(spool: Spool) -> None:
    """The first cause, not what followed from it."""
    feed = a_feed(spool)
    feed.fail(OSError("no space left"))
    feed.fail(RuntimeError("and so on"))
    with pytest.raises(OSError, match="no space left"):
        feed.wait_for_end(START, max_rows=100, timeout_s=30)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "native", [Native(fault="KeyError: 'x'"), Native(halted=Halt(error="KeyError: 'x'", position="5"))]
)
async def test_query_is_told_when_the_tree_has_given_a_shard_up(native: Native) -> None:
    """Otherwise Spark would wait for that shard for ever and look healthy."""
    store = MemoryLeaseStore([LeaseRow("a"), LeaseRow("b", native=native)])
    with pytest.raises(ShardStandsError, match="cannot read shard 'b': KeyError: 'x'"):
        await no_shard_stands(store)
