"""A global secondary index: its keys, what it holds of each item, and its life. Times are Unix seconds."""

from dataclasses import dataclass
from typing import Any

from kcl_py.local.dynamo.behaviour import Behaviour
from kcl_py.local.dynamo.capacity import Capacity
from kcl_py.local.dynamo.copies import Copy
from kcl_py.local.dynamo.keys import KeySchema, Place
from kcl_py.local.dynamo.rows import Row
from kcl_py.local.dynamo.values import Item, item_bytes


@dataclass(frozen=True, slots=True)
class Projection:
    """What an index holds beside the keys: ``KEYS_ONLY``, ``INCLUDE`` (some attributes) or ``ALL``."""

    kind: str
    attributes: tuple[str, ...] = ()

    def described(self) -> dict[str, Any]:
        return {"ProjectionType": self.kind} | ({"NonKeyAttributes": [*self.attributes]} if self.attributes else {})


class Index:
    """One index of one table; its rows follow the table's."""

    def __init__(
        self,
        name: str,
        schema: KeySchema,
        projection: Projection,
        *,
        primary: KeySchema,
        capacity: Capacity,
        behaviour: Behaviour,
        ready_s: float,
    ) -> None:
        self.name, self.schema, self.projection = name, schema, projection
        self.capacity, self.ready_s = capacity, ready_s
        self.gone_s: float | None = None
        self._primary = primary
        self._held = frozenset({*schema.names, *primary.names, *projection.attributes})
        self.copy = Copy(self._place, self._keep, lambda: behaviour.lag_s(behaviour.index_lag_s))

    @property
    def key_names(self) -> tuple[str, ...]:
        """The attributes of a key that a page ends with."""
        return tuple(dict.fromkeys((*self.schema.names, *self._primary.names)))

    def _place(self, item: Item) -> Place | None:
        return self.place(item) if self.schema.fits(item) else None

    def place(self, key: Item) -> Place:
        """Return where an item with this key, the table's included, belongs."""
        return self.schema.place(key) + self._primary.place(key)

    def _keep(self, row: Row) -> Row:
        if self.projection.kind == "ALL":
            return row
        item = {name: value for name, value in row.item.items() if name in self._held}
        return Row(item, item_bytes(item))

    def status(self, now_s: float) -> str:
        if self.gone_s is not None:
            return "DELETING"
        return "ACTIVE" if self.ready_s <= now_s else "CREATING"
