"""One write to one item, whatever request it came in: prepared and checked, then tried on what is there."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kcl_py.local.dynamo.errors import condition_failed, invalid, invalid_value
from kcl_py.local.dynamo.expressions import Expressions, read_expressions
from kcl_py.local.dynamo.keys import Place
from kcl_py.local.dynamo.paths import Path
from kcl_py.local.dynamo.table import Table
from kcl_py.local.dynamo.values import ITEM_BYTES, Item, item_bytes, read_item


@dataclass(frozen=True, slots=True)
class Write:
    """A put, update, delete or check of one item of one table."""

    table: Table
    place: Place
    expressions: Expressions
    change: Callable[[Item | None], Item | None]
    """From the item that is there to the one that shall be. Raises Refusal."""
    tells_item: bool
    """Whether a failed condition returns the item."""

    def outcome(self) -> tuple[Item | None, Item | None]:
        """Return the item as it is and as it shall be; nothing is changed. Raises Refusal."""
        row = self.table.rows.get(self.place)
        old = None if row is None else row.item
        if not self.expressions.allows(old):
            raise condition_failed(old if self.tells_item else None)
        return old, self.change(old)

    @property
    def paths(self) -> list[Path]:
        """What an update changes."""
        return self.expressions.update.paths if self.expressions.update else []


def put(table: Table, request: Mapping[str, Any]) -> Write:
    """Prepare a PutItem or a Put. Raises Refusal."""
    expressions = read_expressions(request, "ConditionExpression")
    item = read_item(request["Item"])
    table.schema.check(item)
    _check_indexes(table, item)
    if item_bytes(item) > ITEM_BYTES:
        raise invalid("Item size has exceeded the maximum allowed size")
    return Write(table, table.schema.place(item), expressions, lambda old: item, _tells_item(request))


def delete(table: Table, request: Mapping[str, Any]) -> Write:
    """Prepare a DeleteItem or a Delete. Raises Refusal."""
    expressions = read_expressions(request, "ConditionExpression")
    place = table.schema.place(table.schema.read_key(request["Key"]))
    return Write(table, place, expressions, lambda old: None, _tells_item(request))


def check(table: Table, request: Mapping[str, Any]) -> Write:
    """Prepare a ConditionCheck. Raises Refusal."""
    expressions = read_expressions(request, "ConditionExpression")
    place = table.schema.place(table.schema.read_key(request["Key"]))
    return Write(table, place, expressions, lambda old: old, _tells_item(request))


def update(table: Table, request: Mapping[str, Any]) -> Write:
    """Prepare an UpdateItem or an Update. Raises Refusal."""
    expressions = read_expressions(request, "UpdateExpression", "ConditionExpression")
    key = table.schema.read_key(request["Key"])
    changes = expressions.update
    for path in changes.paths if changes else ():
        if path[0] in key:
            raise invalid_value(f"Cannot update attribute {path[0]}. This attribute is part of the key")

    def change(old: Item | None) -> Item | None:
        if changes is None:
            return old or key
        if old is None and not changes.makes_items():
            return None
        new = changes.apply(old or key, expressions.values)
        _check_indexes(table, new)
        if item_bytes(new) > ITEM_BYTES:
            raise invalid("Item size to update has exceeded the maximum allowed size")
        return new

    return Write(table, table.schema.place(key), expressions, change, _tells_item(request))


def _check_indexes(table: Table, item: Item) -> None:
    for index in table.indexes.values():
        index.schema.check_index(item, index.name)


def _tells_item(request: Mapping[str, Any]) -> bool:
    return request.get("ReturnValuesOnConditionCheckFailure") == "ALL_OLD"
