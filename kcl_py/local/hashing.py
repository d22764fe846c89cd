"""Where a key lands: the ring of 2**128 hash keys and its division into ranges. Pure."""

import hashlib

from kcl_py.local.errors import invalid

RING = 1 << 128
"""Number of hash keys. Source: Kinesis API reference, the MD5 of the partition key as a 128-bit integer."""


def hash_key(partition_key: str) -> int:
    """Return the place of ``partition_key`` on the ring."""
    return int.from_bytes(hashlib.md5(partition_key.encode(), usedforsecurity=False).digest())


def explicit_hash_key(text: str) -> int:
    """Return the place that a producer asked for. Raises InvalidArgumentException beyond the ring."""
    if (key := int(text)) >= RING:
        raise invalid(f"Invalid ExplicitHashKey. ExplicitHashKey must be in the range: [0, 2^128-1]. Found {text}")
    return key


def even_ranges(count: int) -> tuple[tuple[int, int], ...]:
    """Divide the ring into ``count`` ranges (first and last key, both included); the last takes the remainder."""
    width = RING // count
    starts = [i * width for i in range(count)]
    return tuple(zip(starts, [*(start - 1 for start in starts[1:]), RING - 1], strict=True))
