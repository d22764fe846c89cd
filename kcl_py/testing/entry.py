"""What a test puts to a stream. Data are bytes; a text stands for its UTF-8."""

from collections.abc import Callable, Iterable, Mapping
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

    Raises:
        TypeError: one of them has another type.
    """
    for name, value, expected in (("key", key, str), ("hash_key", hash_key, int | None)):
        if not isinstance(value, expected):
            kind = "text" if expected is str else "a whole number"
            raise TypeError(f"cannot make a record: expected {kind} as {name}, found {type(value).__name__}")
    return Entry(as_bytes(data, "make a record"), key, hash_key)


def as_entry(given: str | bytes | Entry, new_key: Callable[[], str]) -> Entry:
    """Complete what a test gives. Raises TypeError if it is no payload."""
    entry = given if isinstance(given, Entry) else Entry(as_bytes(given), "")
    return entry if entry.key else Entry(entry.data, new_key(), entry.hash_key)


def as_bytes(data: object, tried: str = "put a record") -> bytes:
    """Return a payload; a text's is its UTF-8. Raises TypeError if it is neither that nor bytes."""
    if isinstance(data, str):
        return data.encode()
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    remedy = "give its data" if hasattr(data, "data") else "encode it"
    raise TypeError(f"cannot {tried}: expected a payload, text or bytes, found {type(data).__name__}; {remedy}")


def check_several(given: object, tried: str) -> None:
    """Raise TypeError for what is one payload, or none, where several are expected: a text has parts, too."""
    if isinstance(given, (str, bytes, bytearray, memoryview, Mapping)) or not isinstance(given, Iterable):
        raise TypeError(f"cannot {tried}: expected a list of payloads, found {type(given).__name__}")


def as_payloads(given: Iterable[str | bytes], tried: str) -> list[bytes]:
    """Return payloads. Raises TypeError if they are none."""
    check_several(given, tried)
    return [as_bytes(each, tried) for each in given]
