"""What happens to tables and items, as it is written down, one after the other. Pure; times are Unix seconds.

Made again in their order, changes give the same tables with the same items.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeAlias

import msgspec

from kcl_py.local.dynamo.keys import Place
from kcl_py.local.dynamo.saved import SavedTable
from kcl_py.local.dynamo.values import Item

VERSION = 1


class Begin(msgspec.Struct, frozen=True, array_like=True, tag="begin"):
    """The first of all."""

    version: int = VERSION


class TableKept(msgspec.Struct, frozen=True, array_like=True, tag="table"):
    """A table is new, without items; or something of it is other than it was, and its items stay."""

    table: SavedTable


class TableGone(msgspec.Struct, frozen=True, array_like=True, tag="no table"):
    """A table is gone, with its items."""

    name: str


class ItemPut(msgspec.Struct, frozen=True, array_like=True, tag="put", gc=False):
    """An item is there as it is here."""

    table: str
    item: Item


class ItemGone(msgspec.Struct, frozen=True, array_like=True, tag="gone", gc=False):
    """The item of a key is gone."""

    table: str
    key: Item


class TokenUsed(msgspec.Struct, frozen=True, array_like=True, tag="token", gc=False):
    """A transaction was done under a client's token."""

    token: str
    used_s: float
    digest: bytes
    """Of what was asked for."""


Change: TypeAlias = Begin | TableKept | TableGone | ItemPut | ItemGone | TokenUsed


class Archive(Protocol):
    """Told of every change before it is answered or seen."""

    def append(self, changes: Sequence[Change], whole: Callable[[], Iterable[Change]]) -> None:
        """Keep what one request changed, all of it or nothing; ``whole`` returns what gives everything as it is now.

        Raises:
            OSError: nothing of it is kept; it will be asked for again.
        """
        ...


class Kept:
    """What changes come to."""

    def __init__(self) -> None:
        self.tables: dict[str, tuple[SavedTable, dict[Place, Item]]] = {}
        self.tokens: list[TokenUsed] = []

    def follow(self, change: Change) -> None:
        """Take one more change. Raises ValueError if it is of another version."""
        match change:
            case Begin(version) if version != VERSION:
                raise ValueError(f"cannot read the tables: expected version {VERSION}, found {version}")
            case TableKept(table):
                before, items = self.tables.get(table.name, (table, {}))
                self.tables[table.name] = table, items if before.identity == table.identity else {}
            case TableGone(name):
                self.tables.pop(name, None)
            case ItemPut(name, item) if name in self.tables:
                table, items = self.tables[name]
                items[table.schema.place(item)] = item
            case ItemGone(name, key) if name in self.tables:
                table, items = self.tables[name]
                items.pop(table.schema.place(key), None)
            case TokenUsed():
                self.tokens.append(change)
