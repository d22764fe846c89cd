"""A stream as it is written down: everything but the records. Pure; times are Unix seconds."""

import msgspec

from kcl_py.local.consumer import Consumer
from kcl_py.local.shard import Shard
from kcl_py.local.stream import Change, Mode, Stream

VERSION = 2


class SavedShard(msgspec.Struct, frozen=True):
    """A shard without its records."""

    index: int
    hash_range: tuple[str, str]
    """In digits: they are beyond what every reader of JSON takes for a number."""
    parent_ids: tuple[str, ...]
    children: tuple[int, ...]
    opened_s: float
    epoch_s: int
    closed_s: float | None
    end: int
    """Position of the next record."""


class SavedConsumer(msgspec.Struct, frozen=True):
    """A consumer without its subscriptions."""

    name: str
    created_s: int
    active_s: float
    gone_s: float | None
    tags: dict[str, str]


class SavedChange(msgspec.Struct, frozen=True):
    """What is under way."""

    due_s: float
    ranges: tuple[tuple[str, str], ...]
    cuts: tuple[str, ...]
    joins: tuple[str, ...]


class SavedStream(msgspec.Struct, frozen=True):
    """A stream with its shards and consumers."""

    version: int
    name: str
    created_s: int
    mode: Mode
    retention_s: int
    record_bytes: int
    key_id: str | None
    tags: dict[str, str]
    opened_s: float
    gone_s: float | None
    next_index: int
    change: SavedChange | None
    shards: list[SavedShard]
    consumers: list[SavedConsumer]


def thaw(saved: SavedStream, region: str) -> Stream:
    """Return a stream as it was written down, its shards without records."""
    change = None if saved.change is None else _thaw_change(saved.change)
    stream = Stream(saved.name, region=region, created_s=saved.created_s, mode=saved.mode, change=change)
    stream.retention_s, stream.record_bytes, stream.key_id = saved.retention_s, saved.record_bytes, saved.key_id
    stream.tags, stream.opened_s, stream.gone_s = saved.tags, saved.opened_s, saved.gone_s
    stream.consumers = {consumer.name: _thaw_consumer(consumer, stream.arn) for consumer in saved.consumers}
    shards = {shard.index: _thaw_shard(shard) for shard in saved.shards}
    for shard in saved.shards:
        shards[shard.index].children = [shards[index] for index in shard.children if index in shards]
    stream.restore(list(shards.values()), saved.next_index)
    return stream


def freeze(stream: Stream, now_s: float) -> SavedStream:
    """Return ``stream`` as it is to be written down."""
    return SavedStream(
        VERSION,
        stream.name,
        stream.created_s,
        stream.mode,
        stream.retention_s,
        stream.record_bytes,
        stream.key_id,
        stream.tags,
        stream.opened_s,
        stream.gone_s,
        stream.next_index,
        None if stream.change is None else _freeze_change(stream.change),
        [_freeze_shard(shard) for shard in stream.shards(now_s)],
        [
            SavedConsumer(consumer.name, consumer.created_s, consumer.active_s, consumer.gone_s, consumer.tags)
            for consumer in stream.consumers.values()
        ],
    )


def _freeze_change(change: Change) -> SavedChange:
    ranges = tuple((str(first), str(last)) for first, last in change.ranges)
    return SavedChange(change.due_s, ranges, tuple(map(str, change.cuts)), tuple(map(str, change.joins)))


def _thaw_change(saved: SavedChange) -> Change:
    ranges = tuple((int(first), int(last)) for first, last in saved.ranges)
    return Change(saved.due_s, ranges, tuple(map(int, saved.cuts)), tuple(map(int, saved.joins)))


def _freeze_shard(shard: Shard) -> SavedShard:
    first, last = shard.hash_range
    return SavedShard(
        shard.index,
        (str(first), str(last)),
        shard.parent_ids,
        tuple(child.index for child in shard.children),
        shard.opened_s,
        shard.epoch_s,
        shard.closed_s,
        shard.end,
    )


def _thaw_shard(saved: SavedShard) -> Shard:
    first, last = saved.hash_range
    shard = Shard(saved.index, (int(first), int(last)), opened_s=saved.opened_s, epoch_s=saved.epoch_s)
    shard.parent_ids, shard.closed_s = saved.parent_ids, saved.closed_s
    return shard


def _thaw_consumer(saved: SavedConsumer, stream_arn: str) -> Consumer:
    consumer = Consumer(saved.name, stream_arn=stream_arn, created_s=saved.created_s, active_s=saved.active_s)
    consumer.gone_s, consumer.tags = saved.gone_s, saved.tags
    return consumer
