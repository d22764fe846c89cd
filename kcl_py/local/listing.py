"""Which shards a ListShards filter lets through. Pure; times are Unix seconds."""

from collections.abc import Callable, Sequence

from kcl_py.local.errors import invalid
from kcl_py.local.requests import ShardFilter
from kcl_py.local.shard import Shard


def filter_shards(shards: Sequence[Shard], wanted: ShardFilter | None, *, horizon_s: float) -> list[Shard]:
    """Return those of ``shards`` that ``wanted`` names, in order.

    Args:
        shards: all shards of a stream in the order of their creation.
        wanted: the filter; None means all.
        horizon_s: the oldest instant that the stream keeps.

    Raises:
        ModelError: InvalidArgumentException for a filter without the argument that its type needs, or with another.

    Source: Kinesis API reference, ShardFilter.
    """
    if wanted is None:
        return list(shards)
    _check(wanted)
    if wanted.type == "AT_TRIM_HORIZON":
        return _without_children([shard for shard in shards if _open_at(shard, horizon_s)])
    return [shard for shard in shards if _RULES[wanted.type](shard, wanted)]


def _check(wanted: ShardFilter) -> None:
    needs_id = wanted.type == "AFTER_SHARD_ID"
    needs_time = wanted.type in ("AT_TIMESTAMP", "FROM_TIMESTAMP")
    if needs_id != (wanted.shard_id is not None):
        raise invalid("ShardFilter: ShardId belongs to AFTER_SHARD_ID, and only to it.")
    if needs_time != (wanted.timestamp is not None):
        raise invalid("ShardFilter: Timestamp belongs to AT_TIMESTAMP and FROM_TIMESTAMP, and only to them.")


def _open_at(shard: Shard, time_s: float) -> bool:
    return shard.opened_s <= time_s and _open_after(shard, time_s)


def _open_after(shard: Shard, time_s: float) -> bool:
    return shard.closed_s is None or shard.closed_s >= time_s


def _without_children(shards: list[Shard]) -> list[Shard]:
    """At the instant of a reshard both generations count as open: the older one covers the ring."""
    known = {shard.shard_id for shard in shards}
    return [shard for shard in shards if not known.intersection(shard.parent_ids)]


_RULES: dict[str, Callable[[Shard, ShardFilter], bool]] = {
    "AFTER_SHARD_ID": lambda shard, wanted: shard.shard_id > (wanted.shard_id or ""),
    "FROM_TRIM_HORIZON": lambda shard, wanted: True,
    "AT_LATEST": lambda shard, wanted: shard.closed_s is None,
    "AT_TIMESTAMP": lambda shard, wanted: _open_at(shard, wanted.timestamp or 0.0),
    "FROM_TIMESTAMP": lambda shard, wanted: _open_after(shard, wanted.timestamp or 0.0),
}
