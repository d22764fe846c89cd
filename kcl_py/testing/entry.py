"""What a test puts to a stream. Data are bytes; a text stands for its UTF-8."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Entry:
    """A record before it has a place in a shard; ``record`` makes it."""

    data: bytes
    key: str
    """Its partition key; where it is empty, the stream gives it one of its own: ``key-0``, ``key-1``, …"""
    hash_key: int | None = None
    """Puts it in the shard that this number belongs to, 0 to 2**128 - 1; None goes by the partition key."""

    def wire(self) -> dict[str, Any]:
        """Return it as an entry of PutRecords."""
        hashed = {} if self.hash_key is None else {"ExplicitHashKey": str(self.hash_key)}
        return {"Data": self.data, "PartitionKey": self.key, **hashed}


def record(data: str | bytes, *, key: str = "", hash_key: int | None = None) -> Entry:
    """Describe a record to put.

    Args:
        data: the payload.
        key: the partition key: records with the same one are in one shard, in the order in which they were put.
            Without it, each has a key of its own: ``key-0``, ``key-1``, …
        hash_key: puts it in the shard that this number belongs to, 0 to 2**128 - 1, whatever its key.
    """
    return Entry(as_bytes(data), key, hash_key)


def as_entry(given: str | bytes | Entry, new_key: Callable[[], str]) -> Entry:
    """Complete what a test gives."""
    entry = given if isinstance(given, Entry) else Entry(as_bytes(given), "")
    return entry if entry.key else Entry(entry.data, new_key(), entry.hash_key)


def as_bytes(data: str | bytes) -> bytes:
    """Return a payload; a text's is its UTF-8."""
    return data.encode() if isinstance(data, str) else bytes(data)
