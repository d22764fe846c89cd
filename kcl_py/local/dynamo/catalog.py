"""The tables of one account in one region, by name. Each is shown as it is at the clock's time."""

from uuid import UUID

from kcl_py.local.dynamo.behaviour import Behaviour
from kcl_py.local.dynamo.capacity import Capacity
from kcl_py.local.dynamo.errors import in_use, no_table
from kcl_py.local.dynamo.keys import KeySchema
from kcl_py.local.dynamo.table import Table
from kcl_py.local.stream import ACCOUNT


class Catalog:
    """Finds tables, and makes and drops them."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour = behaviour
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
        self._tables[name] = Table(name, arn, str(identity), schema, capacity, self.behaviour)
        return self._tables[name]

    def drop(self, table: Table) -> None:
        table.gone_s = self.behaviour.now_s() + self.behaviour.delay_s
