"""A table: its items, its indexes and its settings. It decides nothing about requests. Times are Unix seconds."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kcl_py.local.dynamo.behaviour import Behaviour
from kcl_py.local.dynamo.capacity import Bucket, Capacity, write_units
from kcl_py.local.dynamo.copies import Copy
from kcl_py.local.dynamo.errors import Refusal
from kcl_py.local.dynamo.index import Index
from kcl_py.local.dynamo.keys import KeySchema, Place
from kcl_py.local.dynamo.rows import Row, Rows
from kcl_py.local.dynamo.values import Item, item_bytes

OLDEST_TTL_S = 5 * 365 * 24 * 3600.0
"""Items that expired longer ago than this are never deleted. Source: TTL in DynamoDB's developer guide."""


@dataclass
class Settings:
    """What can be set beside keys, indexes and capacity."""

    deletion_protection: bool = False
    kms_key: str | None = None
    encrypts: bool = False
    """Whether a key of KMS, ours or the account's, is used instead of DynamoDB's own."""
    point_in_time_recovery: bool = False
    recovery_days: int = 35
    table_class: str = "STANDARD"
    ttl_attribute: str | None = None
    tags: dict[str, str] = field(default_factory=dict)


class Table:
    """One table, from its creation on."""

    def __init__(
        self, name: str, arn: str, identity: str, schema: KeySchema, capacity: Capacity, behaviour: Behaviour
    ) -> None:
        self.name, self.arn, self.identity, self.schema, self.capacity = name, arn, identity, schema, capacity
        self.created_s = behaviour.now_s()
        self.ready_s = self.created_s + behaviour.delay_s
        self.updated_s = 0.0
        """When the last update takes effect."""
        self.gone_s: float | None = None
        self.settings = Settings()
        self.indexes: dict[str, Index] = {}
        self.kinds: dict[str, str] = {}
        """Types of key attributes, of the indexes' too."""
        self.rows = Rows()
        self.bytes = 0
        self.note: Callable[[Table, Row | None, Row | None], None] | None = None
        """Told of every change of an item: what was there, what is there."""
        self._behaviour = behaviour
        self._swept_s = self.created_s
        self._replica: Copy | None = None
        if behaviour.stale_s:
            self._replica = Copy(schema.place, lambda row: row, lambda: behaviour.lag_s(behaviour.stale_s))

    def status(self) -> str:
        now_s = self._behaviour.now_s()
        if self.gone_s is not None:
            return "DELETING"
        if now_s < self.ready_s:
            return "CREATING"
        is_changing = now_s < self.updated_s or any(one.status(now_s) != "ACTIVE" for one in self.indexes.values())
        return "UPDATING" if is_changing else "ACTIVE"

    @property
    def is_usable(self) -> bool:
        return self.gone_s is None and self.ready_s <= self._behaviour.now_s()

    def settle(self) -> None:
        """Let happen what was due: indexes that go, items that expire."""
        now_s = self._behaviour.now_s()
        for index in [*self.indexes.values()]:
            if index.gone_s is not None and index.gone_s <= now_s:
                del self.indexes[index.name]
        if self.settings.ttl_attribute is not None and self._swept_s + self._behaviour.ttl_sweep_s <= now_s:
            self._swept_s = now_s
            self._sweep(self.settings.ttl_attribute, now_s)

    def _sweep(self, attribute: str, now_s: float) -> None:
        for place, row in self.rows:
            number = row.item.get(attribute, {}).get("N")
            if number is not None and now_s - OLDEST_TTL_S < float(number) < now_s:
                self._store(place, row, None)

    def seen(self, *, consistent: bool) -> Rows:
        """Return the rows that a read sees."""
        if consistent or self._replica is None or self._behaviour.random.random() < 0.5:
            return self.rows
        return self._replica.at(self._behaviour.now_s())

    def write(self, place: Place, old: Item | None, new: Item | None) -> float:
        """Put, replace or take out an item; returns the units that it cost the table. Nobody is asked."""
        before = self.rows.get(place)
        after = None if new is None else before if new is old else Row(new, item_bytes(new))
        units = write_units(0 if before is None else before.size, 0 if after is None else after.size)
        if before is not after:
            self._store(place, before, after)
        self.capacity.writes.take(units)
        return units

    def _store(self, place: Place, before: Row | None, after: Row | None) -> None:
        now_s = self._behaviour.now_s()
        if self.note is not None:
            self.note(self, before, after)
        self.rows.put(place, after)
        self.bytes += (0 if after is None else after.size) - (0 if before is None else before.size)
        for index in self.indexes.values():
            for sizes in index.copy.follow(before, after, now_s):
                index.capacity.writes.take(write_units(*sizes))
        if self._replica is not None:
            self._replica.follow(before, after, now_s)

    def restore(self, items: Mapping[Place, Item]) -> None:
        """Take the items that an earlier run left, into a table that is new."""
        rows = {place: Row(item, item_bytes(item)) for place, item in items.items()}
        self.rows.restore(rows)
        self.bytes = sum(row.size for row in rows.values())
        if self._replica is not None:
            self._replica.fill(rows.values())

    def add_index(self, index: Index) -> None:
        """Add an index and fill it."""
        self.indexes[index.name] = index
        index.copy.fill(row for _, row in self.rows)

    def admit_read(self, index: Index | None = None) -> None:
        """Raise Refusal if reads are above the capacity."""
        self._admit([(index or self).capacity.reads])

    def admit_write(self) -> None:
        """Raise Refusal if writes are above the capacity of the table or of an index."""
        self._admit([self.capacity.writes, *[index.capacity.writes for index in self.indexes.values()]])

    def _admit(self, buckets: list[Bucket]) -> None:
        if self._behaviour.throttles:
            now_s = self._behaviour.now_s()
            if not all(bucket.has_any(now_s) for bucket in buckets):
                raise self._throttled()

    def _throttled(self) -> Refusal:
        if self.capacity.provisioned is None:
            return Refusal(
                "ThrottlingException",
                "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling "
                "your table or index so please try again shortly. If exceptions persist, check if you have a hot key: "
                "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html",
            )
        return Refusal(
            "ProvisionedThroughputExceededException",
            "The level of configured provisioned throughput for the table was exceeded. Consider increasing your "
            "provisioning level with the UpdateTable API.",
        )

    def index(self, name: str) -> Index:
        """Return an index that can be read. Raises Refusal."""
        found = self.indexes.get(name)
        if found is None or found.gone_s is not None:
            raise Refusal("ValidationException", f"The table does not have the specified index: {name}")
        if found.status(self._behaviour.now_s()) == "CREATING":
            raise Refusal("ValidationException", f"Cannot read from backfilling global secondary index: {name}")
        return found

    def listed_indexes(self) -> Iterator[dict[str, Any]]:
        """Yield the indexes as a table's description has them."""
        for index in self.indexes.values():
            rows, status = index.copy.at(now_s := self._behaviour.now_s()), index.status(now_s)
            yield {
                "IndexName": index.name,
                "KeySchema": key_schema(index.schema),
                "Projection": index.projection.described(),
                "IndexStatus": status,
                **({"Backfilling": True} if status == "CREATING" and self.is_usable else {}),
                "ProvisionedThroughput": index.capacity.described(),
                "IndexSizeBytes": sum([row.size for _, row in rows]),
                "ItemCount": len(rows),
                "IndexArn": f"{self.arn}/index/{index.name}",
            }


def key_schema(schema: KeySchema) -> list[dict[str, str]]:
    """Return a schema as a description has it."""
    return [
        {"AttributeName": name, "KeyType": kind} for name, kind in zip(schema.names, ("HASH", "RANGE"), strict=False)
    ]
