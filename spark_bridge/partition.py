"""What one Spark task reads, and how: from the spool where a segment is there, else from Kinesis.

A partition travels pickled to another process, perhaps on another machine. It holds ranges and a folder's name: no
client, no secret. Reading writes nothing anywhere, so a task that runs twice changes nothing.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from spark_bridge.kinesis import Connect
from spark_bridge.options import Options
from spark_bridge.plan import Segment, ShardRange
from spark_bridge.refetch import records_between
from spark_bridge.rows import to_arrow
from spark_bridge.spool import open_segment


@dataclass(frozen=True)
class KclPartition(InputPartition):
    """The ranges of one task; each shard is in one partition of a batch only, so its order is kept."""

    ranges: tuple[ShardRange, ...]
    folder: str | None
    """Where the spooled segments lie, if this machine is the driver's; None: nothing is spooled."""


def read_partition(partition: KclPartition, options: Options, connect: Connect) -> Iterator[pa.RecordBatch]:
    """Yield the rows of ``partition``; connects to Kinesis only if a segment is not here.

    What is read again is held in memory: no more than was spooled when the batch was planned.
    """
    found = [piece for item in partition.ranges for piece in pieces(item, partition.folder)]
    gone = [piece for piece in found if isinstance(piece, ShardRange)]
    again = iter(asyncio.run(_read_again(gone, options, connect)) if gone else ())
    for piece in found:
        yield from next(again) if isinstance(piece, ShardRange) else piece


def pieces(item: ShardRange, folder: str | None) -> Iterator[list[pa.RecordBatch] | ShardRange]:
    """Cut a range into spooled segments, and ranges to read again where segments that follow each other are gone."""
    if item.segments is None or folder is None:
        yield item
        return
    at, gone = item.start, list[Segment]()
    for segment in item.segments:
        batches = open_segment(folder, segment)
        if batches is None:
            gone.append(segment)
            continue
        if gone:
            yield ShardRange(item.shard_id, at, gone[-1].end, tuple(gone))
        yield batches
        at, gone = segment.end, []
    if gone:
        yield ShardRange(item.shard_id, at, gone[-1].end, tuple(gone))


async def _read_again(ranges: Sequence[ShardRange], options: Options, connect: Connect) -> list[list[pa.RecordBatch]]:
    stream = options.config().stream_name
    async with connect(options) as source:
        return [
            [
                to_arrow(records, stream=stream, shard_id=item.shard_id)
                async for records in records_between(source, item, fail_on_data_loss=options.fail_on_data_loss)
            ]
            for item in ranges
        ]
