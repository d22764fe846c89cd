"""Reading a range from Kinesis again: the same records, or a loud error when they have aged out."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kcl_py.errors import IteratorExpiredError, RejectedError, ThrottledError
from kcl_py.local.client import KinesisClient
from kcl_py.records import Record
from kcl_py.sources.kinesis.polling import KinesisSource
from kcl_py.sources.source import Fetched, Position
from spark_bridge.offsets import BEGINNING, END, Mark, Offset, Reach
from spark_bridge.plan import Segment, ShardRange
from spark_bridge.refetch import DataLossError, check_starts, records_between
from tests.kcl_py.local.world import World

SHARD = "shardId-000000000000"


class Unruly(KinesisSource):
    """A source whose oldest records are gone, or that fails first."""

    def __init__(self, world: World) -> None:
        super().__init__(KinesisClient(world.model, world.clock), "s", clock=world.clock)
        self.oldest = 0
        self.errors: list[Exception] = []
        self.page = 10_000
        self.opened: list[Position] = []

    async def open(self, shard_id: str, position: Position) -> str:
        self.opened.append(position)
        return await super().open(shard_id, position)

    async def fetch(self, shard_id: str, iterator: str, *, limit: int) -> Fetched:
        if self.errors:
            raise self.errors.pop(0)
        fetched = await super().fetch(shard_id, iterator, limit=min(limit, self.page))
        return replace(fetched, records=[r for r in fetched.records if int(r.sequence_number) >= self.oldest])


class Shelf:
    """A shard of ``count`` records, and ranges over them by index."""

    def __init__(self, count: int) -> None:
        self.world = World()
        for index in range(count):
            self.world.put(b"%d" % index)
        self.records: list[Record] = self.world.read()
        self.source = Unruly(self.world)

    def after(self, index: int) -> Mark:
        return Mark.after(self.records[index].position)

    def range(self, start: Mark, end: Mark, *, rows: int | None = None) -> ShardRange:
        first, last = self.records[0].position, self.records[-1].position
        known = None if rows is None else (Segment(SHARD, first, last, rows, 1, 0.0),)
        return ShardRange(SHARD, start, end, known)

    async def read(self, item: ShardRange, *, fail_on_data_loss: bool = True) -> list[bytes]:
        async def sleep(delay_s: float) -> None:
            self.world.clock.now_s += delay_s

        pages = records_between(self.source, item, fail_on_data_loss=fail_on_data_loss, sleep=sleep)
        return [record.data async for page in pages for record in page]


def numbers(first: int, last: int) -> list[bytes]:
    return [b"%d" % index for index in range(first, last + 1)]


@pytest.mark.asyncio
@pytest.mark.parametrize("page", [1, 3, 10_000])
async def test_range_is_read_from_behind_its_start_to_its_end(page: int) -> None:
    """The start is out, the end is in, whatever the pages."""
    shelf = Shelf(9)
    shelf.source.page = page
    assert await shelf.read(shelf.range(shelf.after(2), shelf.after(6))) == numbers(3, 6)


@pytest.mark.asyncio
async def test_range_is_read_from_its_instant_when_the_shard_had_no_record_before() -> None:
    """A resolved start is as exact as a number."""
    shelf = Shelf(3)
    shelf.world.clock.now_s += 100
    shelf.world.put(b"3")
    shelf.records = shelf.world.read()
    since = Mark(Reach.SINCE, int(shelf.world.clock.now_s * 1000) - 1)
    assert await shelf.read(shelf.range(since, shelf.after(3))) == numbers(3, 3)
    assert await shelf.read(shelf.range(BEGINNING, shelf.after(1))) == numbers(0, 1)


@pytest.mark.asyncio
async def test_range_is_read_to_the_end_of_a_closed_shard() -> None:
    """END means every record that there is."""
    shelf = Shelf(3)
    shelf.world.split(SHARD)
    assert await shelf.read(shelf.range(shelf.after(0), END)) == numbers(1, 2)
    assert await shelf.read(shelf.range(shelf.after(2), END)) == []


@pytest.mark.asyncio
@pytest.mark.parametrize("error", [ThrottledError, IteratorExpiredError])
async def test_range_is_complete_when_kinesis_fails_in_between(error: type[ThrottledError]) -> None:
    """Throttling and an expired iterator are no reason to fail a task, nor to read anything twice."""
    shelf = Shelf(9)
    shelf.source.page = 2
    item, seen = shelf.range(shelf.after(0), shelf.after(8)), list[bytes]()
    async for page in records_between(shelf.source, item, fail_on_data_loss=True, sleep=_no_sleep):
        seen += [record.data for record in page]
        shelf.source.errors = [error("GetRecords", "s", "any")]
    assert seen == numbers(1, 8)


async def _no_sleep(delay_s: float) -> None:
    """Time does not matter here."""


@pytest.mark.asyncio
async def test_range_fails_at_once_when_kinesis_refuses() -> None:
    """What repeating cannot mend is not repeated."""
    shelf = Shelf(1)
    shelf.source.errors = [RejectedError("GetRecords", "s", "AccessDeniedException")] * 2
    with pytest.raises(RejectedError):
        await shelf.read(shelf.range(BEGINNING, shelf.after(0)))
    assert len(shelf.source.errors) == 1


LOSSES: list[Callable[[Shelf], ShardRange]] = [
    lambda shelf: shelf.range(shelf.after(1), shelf.after(4)),
    lambda shelf: shelf.range(shelf.after(1), shelf.after(4), rows=3),
    lambda shelf: shelf.range(BEGINNING, shelf.after(2)),
    lambda shelf: shelf.range(BEGINNING, shelf.after(4), rows=5),
    lambda shelf: shelf.range(shelf.after(1), END),
]


@pytest.mark.asyncio
@pytest.mark.parametrize("range_of", LOSSES)
async def test_range_fails_when_records_of_it_have_aged_out(range_of: Callable[[Shelf], ShardRange]) -> None:
    """The error names the range; nothing is passed over silently."""
    shelf = Shelf(6)
    item = range_of(shelf)
    if item.end.has_ended:
        shelf.world.split(SHARD)
    shelf.source.oldest = int(shelf.records[3].sequence_number)
    with pytest.raises(DataLossError, match=f"{SHARD}' after {item.start} up to {item.end}"):
        await shelf.read(item)


@pytest.mark.asyncio
async def test_range_gives_what_is_left_when_data_loss_is_allowed() -> None:
    """The query goes on."""
    shelf = Shelf(6)
    shelf.source.oldest = int(shelf.records[3].sequence_number)
    assert await shelf.read(shelf.range(shelf.after(1), shelf.after(4)), fail_on_data_loss=False) == numbers(3, 4)


@pytest.mark.asyncio
async def test_range_ends_when_all_its_records_and_all_after_them_are_gone() -> None:
    """A task does not wait for ever for a record that will not come."""
    shelf = Shelf(6)
    shelf.source.oldest = int(shelf.records[5].sequence_number) + 1
    assert await shelf.read(shelf.range(shelf.after(1), shelf.after(4)), fail_on_data_loss=False) == []


@pytest.mark.asyncio
async def test_range_is_no_loss_when_only_the_record_before_it_is_gone() -> None:
    """With the number of rows known, an aged-out start is no alarm."""
    shelf = Shelf(6)
    shelf.source.oldest = int(shelf.records[2].sequence_number)
    assert await shelf.read(shelf.range(shelf.after(1), shelf.after(4), rows=3)) == numbers(2, 4)


@pytest.mark.asyncio
async def test_start_is_refused_when_its_record_is_gone_and_later_ones_are_there() -> None:
    """A query that was down for longer than records live must not go on as if nothing was."""
    shelf = Shelf(6)
    shelf.source.oldest = int(shelf.records[3].sequence_number)
    with pytest.raises(DataLossError, match=f"{SHARD}' after {shelf.after(1)} up to its tip"):
        await check_starts(shelf.source, Offset({SHARD: shelf.after(1)}), sleep=_no_sleep)


@pytest.mark.asyncio
async def test_start_is_accepted_when_nothing_is_missing_or_the_shard_was_idle() -> None:
    """A restart after a quiet day is no loss, and reads one record of each shard."""
    shelf = Shelf(6)
    await check_starts(shelf.source, Offset({SHARD: shelf.after(1)}), sleep=_no_sleep)
    await check_starts(shelf.source, Offset({SHARD: BEGINNING, "gone": END}), sleep=_no_sleep)
    shelf.source.oldest = int(shelf.records[5].sequence_number) + 1
    await check_starts(shelf.source, Offset({SHARD: shelf.after(5)}), sleep=_no_sleep)


@pytest.mark.asyncio
async def test_start_is_refused_when_it_is_of_an_earlier_stream_of_that_name() -> None:
    """Kinesis does not know the number: the checkpoint is another stream's."""
    with pytest.raises(RejectedError, match=SHARD):
        await check_starts(Shelf(1).source, Offset({SHARD: Mark.parse("12345")}), sleep=_no_sleep)


def test_data_loss_error_says_the_same_after_it_went_to_another_process() -> None:
    """It is raised in an executor and read by the driver."""
    import pickle

    error: Any = DataLossError("s", "1", "2", "nothing")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
