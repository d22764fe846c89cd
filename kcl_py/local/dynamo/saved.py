"""A table as it is written down: everything but its items and what is on its way out. Pure; times are Unix seconds."""

from collections.abc import Mapping

import msgspec

from kcl_py.local.dynamo.behaviour import Behaviour
from kcl_py.local.dynamo.capacity import Capacity
from kcl_py.local.dynamo.index import Index, Projection
from kcl_py.local.dynamo.keys import KeySchema, Place
from kcl_py.local.dynamo.table import Settings, Table
from kcl_py.local.dynamo.values import Item


class SavedIndex(msgspec.Struct, frozen=True):
    """An index without its rows, which follow from the table's."""

    name: str
    schema: KeySchema
    projection: Projection
    provisioned: tuple[int, int] | None
    ready_s: float


class SavedTable(msgspec.Struct, frozen=True):
    """A table."""

    name: str
    arn: str
    identity: str
    schema: KeySchema
    kinds: dict[str, str]
    provisioned: tuple[int, int] | None
    created_s: float
    ready_s: float
    updated_s: float
    settings: Settings
    indexes: tuple[SavedIndex, ...]


def freeze(table: Table) -> SavedTable:
    """Return ``table`` as it is to be written down."""
    return SavedTable(
        table.name,
        table.arn,
        table.identity,
        table.schema,
        table.kinds,
        table.capacity.provisioned,
        table.created_s,
        table.ready_s,
        table.updated_s,
        table.settings,
        tuple(_freeze_index(index) for index in table.indexes.values() if index.gone_s is None),
    )


def thaw(saved: SavedTable, items: Mapping[Place, Item], behaviour: Behaviour) -> Table:
    """Return a table as it was written down, with ``items``; what was under way is done."""
    now_s = behaviour.now_s()
    capacity = Capacity(saved.provisioned, now_s)
    table = Table(saved.name, saved.arn, saved.identity, saved.schema, capacity, behaviour)
    table.created_s, table.kinds, table.settings = saved.created_s, saved.kinds, saved.settings
    table.ready_s, table.updated_s = min(saved.ready_s, now_s), min(saved.updated_s, now_s)
    table.restore(items)
    for index in saved.indexes:
        table.add_index(_thaw_index(index, saved.schema, behaviour))
    return table


def _freeze_index(index: Index) -> SavedIndex:
    return SavedIndex(index.name, index.schema, index.projection, index.capacity.provisioned, index.ready_s)


def _thaw_index(saved: SavedIndex, primary: KeySchema, behaviour: Behaviour) -> Index:
    now_s = behaviour.now_s()
    return Index(
        saved.name,
        saved.schema,
        saved.projection,
        primary=primary,
        capacity=Capacity(saved.provisioned, now_s),
        behaviour=behaviour,
        ready_s=min(saved.ready_s, now_s),
    )
