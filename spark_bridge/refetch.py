"""Read a range of one shard from Kinesis again: the same records that the spool had, however often it is asked.

A range is fixed by sequence numbers, so time and other readers change nothing; what can happen is that its records
have aged out, which is told from the record it begins after, the one it ends with, and the number of rows if known.
Reading begins with the record before the range, to see that it is there, and for what else was aggregated into it.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import anyio

from kcl_py.errors import IteratorExpiredError, KclError
from kcl_py.records import Record
from kcl_py.sources.source import TRIM_HORIZON, Fetched, Position, PositionKind, Source
from spark_bridge.kinesis import Sleep, patiently
from spark_bridge.offsets import BEGINNING, END, Mark, Offset, Reach
from spark_bridge.plan import ShardRange

LIMIT = 10_000
"""Records asked for in one read. Source: the GetRecords API reference."""
EMPTY_READS = 5
"""Empty replies from the tip of a shard after which a record that should be there is taken for gone."""
PAUSE_S = 0.25
"""Pause after an empty reply: a shard takes five reads a second, and the tree needs some of them."""
PROBES = 16
"""Shards that are looked at at once."""
_NO_START = "not even the one that it begins after"


class DataLossError(KclError):
    """Records that a batch is made of are no longer in the stream."""

    def __init__(self, shard_id: str, start: str, end: str, found: str) -> None:
        super().__init__(shard_id, start, end, found)
        self.shard_id, self.start, self.end, self.found = shard_id, start, end, found

    def __str__(self) -> str:
        return (
            f"cannot read shard {self.shard_id!r} after {self.start} up to {self.end}: expected every record to be "
            f"there, found {self.found}; set failOnDataLoss to false to go on with those that are left"
        )


async def records_between(
    source: Source, item: ShardRange, *, fail_on_data_loss: bool, sleep: Sleep = anyio.sleep
) -> AsyncIterator[list[Record]]:
    """Yield the records of ``item`` in order, in lists of 1 to ``LIMIT``.

    Raises:
        DataLossError: some are gone, as far as that can be told, and ``fail_on_data_loss`` is set.
        RequestError: Kinesis did not answer in spite of repetition.
    """
    at, rows, saw_start = item.start, 0, item.start.reach is not Reach.AFTER
    async for records in _replies(source, item, sleep):
        saw_start = saw_start or records[0].position.value == item.start.value
        inside = [record for record in records if at < Mark.after(record.position) <= item.end]
        if inside:
            at, rows = Mark.after(inside[-1].position), rows + len(inside)
            yield inside
    loss = _loss(item, rows=rows, saw_start=saw_start, saw_end=at == item.end)
    if loss is not None and fail_on_data_loss:
        raise DataLossError(item.shard_id, str(item.start), str(item.end), loss)


async def check_starts(source: Source, offset: Offset, *, sleep: Sleep = anyio.sleep) -> None:
    """Make sure that what follows the marks of ``offset`` has not aged out.

    Where the record of a mark is gone and others are there, some between them may be gone as well. A shard that holds
    nothing at all was idle for as long as records live; there is no sign of a loss then.

    Raises:
        DataLossError: naming the first such shard.
        RequestError: Kinesis does not take a mark for one of this stream, or did not answer in spite of repetition.
    """
    limiter = anyio.CapacityLimiter(PROBES)
    faults: dict[str, KclError] = {}

    async def probe(shard_id: str, mark: Mark) -> None:
        async with limiter:
            try:
                first = await _first_record(source, shard_id, mark, sleep)
            except KclError as error:
                faults[shard_id] = error
            else:
                if first is not None and first.position.value != mark.value:
                    faults[shard_id] = DataLossError(shard_id, str(mark), "its tip", _NO_START)

    async with anyio.create_task_group() as tasks:
        for shard_id, mark in offset.marks.items():
            if mark.reach is Reach.AFTER:
                tasks.start_soon(probe, shard_id, mark)
    if faults:
        raise faults[min(faults)]


async def _first_record(source: Source, shard_id: str, mark: Mark, sleep: Sleep) -> Record | None:
    replies = _replies(source, ShardRange(shard_id, mark, END), sleep, limit=1, empty_reads=1)
    async with aclosing(replies):
        async for records in replies:
            return records[0]
    return None


async def _replies(
    source: Source, item: ShardRange, sleep: Sleep, *, limit: int = LIMIT, empty_reads: int = EMPTY_READS
) -> AsyncGenerator[list[Record], None]:
    """Yield what the shard holds, from the record that ``item`` begins after until one that is not before its end."""
    at, empty = item.start, 0
    iterator: str | None = await _open(source, item.shard_id, at, sleep)
    while iterator is not None and at < item.end and empty < empty_reads:
        try:
            fetched = await _fetch(source, item.shard_id, iterator, limit, sleep)
        except IteratorExpiredError:
            iterator = await _open(source, item.shard_id, at, sleep)
            continue
        iterator = fetched.next_iterator
        if fetched.records:
            at, empty = Mark.after(fetched.records[-1].position), 0
            yield fetched.records
        elif iterator is not None:
            empty += fetched.lag_ms == 0
            await sleep(PAUSE_S)


async def _open(source: Source, shard_id: str, at: Mark, sleep: Sleep) -> str:
    return await patiently(lambda: source.open(shard_id, _position(at)), sleep=sleep)


async def _fetch(source: Source, shard_id: str, iterator: str, limit: int, sleep: Sleep) -> Fetched:
    return await patiently(lambda: source.fetch(shard_id, iterator, limit=limit), sleep=sleep)


def _position(mark: Mark) -> Position:
    if mark == BEGINNING:
        return TRIM_HORIZON
    kind = PositionKind.AT if mark.reach is Reach.AFTER else PositionKind.AT_TIMESTAMP
    return Position(kind, mark.value)


def _loss(item: ShardRange, *, rows: int, saw_start: bool, saw_end: bool) -> str | None:
    """What of a range was not there, as far as it can be told; None if nothing."""
    if item.segments is not None:
        expected = sum(segment.rows for segment in item.segments)
        return None if rows == expected else f"{rows} of {expected}"
    if not saw_start:
        return _NO_START
    return None if saw_end or item.end.has_ended else "not the one that it ends with"
