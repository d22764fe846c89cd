"""The tables of one account in one region, by name. Each is shown as it is at the clock's time."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from kcl_py.local.dynamo.behaviour import Behaviour
from kcl_py.local.dynamo.capacity import Capacity
from kcl_py.local.dynamo.changes import Change, ItemGone, ItemPut, Kept, TableGone, TableKept
from kcl_py.local.dynamo.client_tokens import ClientTokens
from kcl_py.local.dynamo.errors import in_use, no_table
from kcl_py.local.dynamo.keys import KeySchema
from kcl_py.local.dynamo.rows import Row
from kcl_py.local.dynamo.saved import freeze, thaw
from kcl_py.local.dynamo.table import Table
from kcl_py.local.stream import ACCOUNT


class Catalog:
    """Finds tables, and makes and drops them.

    Args:
        behaviour: that of its tables.
        is_kept: whether changes are to be noted, for whoever keeps them.
    """

    def __init__(self, behaviour: Behaviour, *, is_kept: bool = False) -> None:
        self.behaviour, self._is_kept = behaviour, is_kept
        self.changes: list[Change] = []
        """What is not yet kept."""
        self.tokens = ClientTokens(behaviour)
        self._tables: dict[str, Table] = {}

    def find(self, name: str) -> Table | None:
        name = name.rpartition("/")[2]  # an ARN will do
        table = self._tables.get(name)
        if table is None:
            return None
        if table.gone_s is not None and table.gone_s <= self.behaviour.now_s():
            del self._tables[name]
            return None
        table.settle()
        return table

    def table(self, name: str) -> Table:
        """Return the table, in whatever state. Raises ResourceNotFoundException, and names it."""
        if found := self.find(name):
            return found
        raise no_table(name)

    def usable(self, name: str) -> Table:
        """Return the table, ready for items. Raises ResourceNotFoundException."""
        found = self.find(name)
        if found is None or not found.is_usable:
            raise no_table()
        return found

    def active(self, name: str) -> Table:
        """Return the table, if it can be changed. Raises ResourceNotFoundException, ResourceInUseException."""
        table = self.table(name)
        if (status := table.status()) != "ACTIVE":
            doing = {"CREATING": "created", "UPDATING": "updated", "DELETING": "deleted"}[status]
            raise in_use(f"Attempt to change a resource which is still in use: Table is being {doing}: {table.name}")
        return table

    def names(self) -> list[str]:
        return [name for name in sorted(self._tables) if self.find(name)]

    def create(self, name: str, schema: KeySchema, capacity: Capacity) -> Table:
        """Add a table. Raises ResourceInUseException."""
        if self.find(name):
            raise in_use(f"Table already exists: {name}")
        identity = UUID(int=self.behaviour.random.getrandbits(128), version=4)
        arn = f"arn:aws:dynamodb:{self.behaviour.region}:{ACCOUNT}:table/{name}"
        table = Table(name, arn, str(identity), schema, capacity, self.behaviour)
        self._add(table)
        return table

    def drop(self, table: Table) -> None:
        table.gone_s = self.behaviour.now_s() + self.behaviour.delay_s
        if self._is_kept:
            self.changes.append(TableGone(table.name))

    def note(self, table: Table) -> None:
        """Note that something of a table, other than its items, has changed."""
        if self._is_kept:
            self.changes.append(TableKept(freeze(table)))

    def use_token(self, token: str, content: Any) -> None:
        """Remember that what was asked for under a token is done."""
        used = self.tokens.use(token, content)
        if self._is_kept:
            self.changes.append(used)

    def adopt(self, kept: Kept) -> None:
        """Take what an earlier run left."""
        for saved, items in kept.tables.values():
            self._add(thaw(saved, items, self.behaviour))
        for used in kept.tokens:
            self.tokens.restore(used)

    def whole(self) -> Iterator[Change]:
        """Yield what gives everything as it is now."""
        for table in self._tables.values():
            if table.gone_s is None:
                yield TableKept(freeze(table))
                yield from (ItemPut(table.name, row.item) for _, row in table.rows)
        yield from self.tokens

    def _add(self, table: Table) -> None:
        self._tables[table.name] = table
        if self._is_kept:
            table.note = self._note_item

    def _note_item(self, table: Table, before: Row | None, after: Row | None) -> None:
        if after is not None:
            self.changes.append(ItemPut(table.name, after.item))
        elif before is not None:
            self.changes.append(ItemGone(table.name, table.schema.key(before.item)))
