"""A lease store in memory: for ``leases.store: memory``, for tests and for the Spark bridge.

It carries writes out over plain items with the meaning that DynamoDB gives them (one contract suite holds both), so it
keeps attributes it does not know. Nothing is stored beyond the process. Each method is one atomic step.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from anyio.lowlevel import checkpoint

from kcl_py.errors import ConditionFailedError, EffectsRefusedError, RejectedError
from kcl_py.leases.capacity import Capacity
from kcl_py.leases.items import (
    UNSET_IN_WORKER,
    item_from_row,
    item_from_worker,
    row_from_item,
    scan_from_items,
    worker_from_item,
)
from kcl_py.leases.row import Item, LeaseRow, MalformedRowError, WorkerRow
from kcl_py.leases.store import MALFORMED, AnyOf, Effects, Path, Scan, Test, Write


class MemoryLeaseStore:
    """A ``LeaseStore`` that lives and dies with its process."""

    def __init__(self, rows: Iterable[LeaseRow] = (), *, items: Iterable[Item] = ()) -> None:
        """Start with ``rows``, and with ``items`` as another client may have left them."""
        seeds = [*(item_from_row(row) for row in rows), *items]
        self.items: dict[str, Item] = {item["leaseKey"]: item for item in seeds}
        """The lease table: replaced item by item, never changed in place."""
        self.worker_items: dict[str, Item] = {}

    @property
    def has_workers(self) -> bool:
        return True

    @property
    def capacity(self) -> tuple[Capacity | None, Capacity | None]:
        return None, None

    async def ensure(self) -> float | None:
        await checkpoint()
        return None

    async def scan(self, *, consistent: bool = False) -> Scan:
        await checkpoint()
        return scan_from_items(item for _, item in sorted(self.items.items()))

    async def read(self, key: str) -> LeaseRow | None:
        await checkpoint()
        item = self.items.get(key)
        return None if item is None else _row("read", key, item)

    async def create(self, row: LeaseRow, *, parent: Write | None = None) -> bool:
        await checkpoint()
        if parent is not None:
            self._tested(parent)
        if row.key in self.items:
            return False
        self.items[row.key] = item_from_row(row)
        return True

    async def write(self, write: Write) -> LeaseRow:
        await checkpoint()
        self.items[write.key] = item = _written(write, self._tested(write))
        return _row(write.operation, write.key, item)

    async def transact(self, effects: Effects, *, request_token: str, write: Write | None = None) -> None:
        """Refuse: there are no tables beside the leases here."""
        await checkpoint()
        raise EffectsRefusedError(
            f"cannot apply {len(effects)} effects: expected leases.store dynamodb, found memory, which has no tables; "
            "nothing was written"
        )

    async def delete(self, write: Write) -> None:
        await checkpoint()
        self._tested(write)
        del self.items[write.key]

    async def workers(self) -> tuple[WorkerRow, ...]:
        await checkpoint()
        rows = (worker_from_item(item) for _, item in sorted(self.worker_items.items()))
        return tuple(row for row in rows if row is not None)

    async def put_worker(self, row: WorkerRow) -> None:
        await checkpoint()
        before = self.worker_items.get(row.worker, {})
        kept = {name: value for name, value in before.items() if name not in UNSET_IN_WORKER}
        self.worker_items[row.worker] = kept | item_from_worker(row)

    async def delete_worker(self, worker: str) -> None:
        await checkpoint()
        self.worker_items.pop(worker, None)

    async def aclose(self) -> None:
        await checkpoint()

    def _tested(self, write: Write) -> Item:
        item = self.items.get(write.key)
        if item is None or not all(_holds(test, item) for test in write.tests):
            raise ConditionFailedError(write.operation, write.key, "ConditionalCheckFailedException")
        return item


def _row(operation: str, key: str, item: Item) -> LeaseRow:
    try:
        return row_from_item(item)
    except MalformedRowError as error:
        raise RejectedError(operation, key, MALFORMED, str(error)) from error


def _holds(test: Test, item: Item) -> bool:
    if isinstance(test, AnyOf):
        return any(_holds(one, item) for one in test.tests)
    return bool(_value(item, test.path) == test.value)


def _value(item: Item, path: Path) -> Any:
    value: Any = item
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _written(write: Write, item: Item) -> Item:
    new = {name: dict(value) if isinstance(value, Mapping) else value for name, value in item.items()}
    for path, value in write.set.items():
        _parent(new, path, write)[path[-1]] = value
    for path in write.remove:
        _parent(new, path, write).pop(path[-1], None)
    for path, amount in write.add.items():
        parent = _parent(new, path, write)
        parent[path[-1]] = parent.get(path[-1], 0) + amount
    return new


def _parent(item: dict[str, Any], path: Path, write: Write) -> dict[str, Any]:
    parent: Any = item
    for name in path[:-1]:
        parent = parent.get(name)
    if not isinstance(parent, dict):
        raise RejectedError(write.operation, write.key, "ValidationException", f"there is no map at {path[:-1]}")
    return parent
