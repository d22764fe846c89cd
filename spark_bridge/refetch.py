"""Read a range of one shard from Kinesis again: the same records that the spool had, however often it is asked.

A range is fixed by sequence numbers, so time and other readers change nothing; what can happen is that its records
have aged out, which is told from the record it begins after, the one it ends with, and the number of rows if known.
"""

from collections.abc import AsyncIterator

import anyio

from kcl_py.errors import IteratorExpiredError, KclError
from kcl_py.records import Record
from kcl_py.sources.source import TRIM_HORIZON, Fetched, Position, PositionKind, Source
from spark_bridge.kinesis import Sleep, patiently
from spark_bridge.offsets import BEGINNING, Mark, Reach
from spark_bridge.plan import ShardRange

LIMIT = 10_000
"""Records asked for in one read. Source: the GetRecords API reference."""
EMPTY_READS = 5
"""Empty replies from the tip of a shard after which a record that should be there is taken for gone."""
PAUSE_S = 0.25
"""Pause after an empty reply: a shard takes five reads a second, and the tree needs some of them."""


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


async def _replies(source: Source, item: ShardRange, sleep: Sleep) -> AsyncIterator[list[Record]]:
    """Yield what the shard holds, from the record that ``item`` begins after until one that is not before its end."""
    at, empty = item.start, 0
    iterator: str | None = await _open(source, item.shard_id, at, sleep)
    while iterator is not None and at < item.end and empty < EMPTY_READS:
        try:
            fetched = await _fetch(source, item.shard_id, iterator, sleep)
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


async def _fetch(source: Source, shard_id: str, iterator: str, sleep: Sleep) -> Fetched:
    return await patiently(lambda: source.fetch(shard_id, iterator, limit=LIMIT), sleep=sleep)


def _position(mark: Mark) -> Position:
    """Where to open a shard; the record of an AFTER mark comes too: to see that it is there, and for its parts."""
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
        return "not even the one that it begins after"
    return None if saw_end or item.end.has_ended else "not the one that it ends with"
