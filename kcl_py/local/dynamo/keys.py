"""Keys of tables and indexes: which items have one, and where it places them.

A place is a tuple that sorts as DynamoDB does: partitions by a hash of the partition key, so in no order that means
anything, and within one by the sort key.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeAlias

from kcl_py.local.dynamo.errors import invalid, invalid_value
from kcl_py.local.dynamo.values import Item, Value, kind_of, rank, read_value

Place: TypeAlias = tuple[Any, ...]

POSITIONS = 2**64
"""Places of partitions on the ring; segments of a scan divide it evenly."""
_POSITION_BYTES = 8
_HASH_KEY_BYTES, _SORT_KEY_BYTES = 2048, 1024
"""Source: quotas of DynamoDB's developer guide."""


@dataclass(frozen=True, slots=True)
class KeySchema:
    """The names of the key attributes, partition key first, and their types."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]

    @classmethod
    def read(cls, elements: Sequence[Mapping[str, str]], kinds: Mapping[str, str]) -> "KeySchema":
        """Return the schema in a request, already checked."""
        names = tuple(element["AttributeName"] for element in elements)
        return cls(names, tuple(kinds[name] for name in names))

    def place(self, item: Item) -> Place:
        """Return where an item belongs that has the whole key."""
        first = item[self.names[0]]
        return (_position(first), *[rank(item[name]) for name in self.names])

    def partition(self, value: Value) -> Place:
        """Return what all places of one partition begin with."""
        return _position(value), rank(value)

    def fits(self, item: Item) -> bool:
        """Tell whether the item has the whole key, in its types."""
        return all(name in item and kind in item[name] for name, kind in zip(self.names, self.kinds, strict=True))

    def key(self, item: Item) -> Item:
        """Return only the key of an item."""
        return {name: item[name] for name in self.names}

    def read_key(self, raw: Mapping[str, Any]) -> Item:
        """Return the key in a request. Raises Refusal unless it is exactly a key."""
        if len(raw) != len(self.names) or not all(name in raw for name in self.names):
            raise invalid("The provided key element does not match the schema")
        key = {name: read_value(raw[name]) for name in self.names}
        if not self.fits(key):
            raise invalid("The provided key element does not match the schema")
        self._check_contents(key)
        return key

    def check(self, item: Item) -> None:
        """Raise Refusal unless the item can be put into the table."""
        for name, kind in zip(self.names, self.kinds, strict=True):
            if name not in item:
                raise invalid_value(f"Missing the key {name} in the item")
            if kind not in item[name]:
                raise invalid_value(f"Type mismatch for key {name} expected: {kind} actual: {kind_of(item[name])}")
        self._check_contents(item)

    def check_index(self, item: Item, index: str) -> None:
        """Raise Refusal if the item has one of this index's keys in another type, or empty."""
        for name, kind in zip(self.names, self.kinds, strict=True):
            if name not in item:
                continue
            if kind not in item[name]:
                found = kind_of(item[name])
                raise invalid_value(
                    f"Type mismatch for Index Key {name} Expected: {kind} Actual: {found} IndexName: {index}"
                )
            if item[name][kind] in ("", b""):
                raise invalid(
                    "One or more parameter values are not valid. A value specified for a secondary index key is not "
                    f"supported. The AttributeValue for a key attribute cannot contain an empty {_LONG[kind]} value. "
                    f"IndexName: {index}, IndexKey: {name}"
                )

    def _check_contents(self, key: Item) -> None:
        limits = ((_HASH_KEY_BYTES, "hashkey"), (_SORT_KEY_BYTES, "rangekey"))
        for (name, kind), (limit, what) in zip(zip(self.names, self.kinds, strict=True), limits, strict=False):
            data = key[name][kind]
            if data in ("", b""):
                raise invalid(
                    "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain "
                    f"an empty {_LONG[kind]} value. Key: {name}"
                )
            if len(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data) > limit:
                raise invalid_value(f"Size of {what} has exceeded the maximum size limit of{limit} bytes")


_LONG = {"S": "string", "B": "binary", "N": "number"}


def _position(value: Value) -> int:
    [(kind, data)] = value.items()
    text = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(kind.encode() + text, digest_size=_POSITION_BYTES).digest())
