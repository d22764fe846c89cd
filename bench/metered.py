"""A lease store in memory that notes what DynamoDB would bill, for whole fleets on virtual time.

Source: read and write units and item sizes of DynamoDB's developer guide. A write whose condition fails is billed, too.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from kcl_py.leases.attributes import encode_item
from kcl_py.leases.items import item_from_row
from kcl_py.leases.memory import MemoryLeaseStore
from kcl_py.leases.row import Item, LeaseRow, WorkerRow
from kcl_py.leases.store import Scan, Write
from kcl_py.local.dynamo.capacity import read_units, write_units
from kcl_py.local.dynamo.values import item_bytes, read_item

PAGE_BYTES = 1_048_576
"""Of one request of a scan. Source: the Scan API reference."""


@dataclass
class Bill:
    """Requests by kind, and units."""

    requests: Counter[str] = field(default_factory=Counter)
    reads: float = 0.0
    writes: float = 0.0


def size(item: Item) -> int:
    """Return the bytes that count for capacity."""
    return item_bytes(read_item(encode_item(item)))


class MeteredStore(MemoryLeaseStore):
    """A ``MemoryLeaseStore`` with a bill; replace ``bill`` to begin anew."""

    def __init__(self) -> None:
        super().__init__()
        self.bill = Bill()

    async def scan(self, *, consistent: bool = False) -> Scan:
        self._read("scan", self.items.values(), consistent=consistent)
        return await super().scan(consistent=consistent)

    async def read(self, key: str) -> LeaseRow | None:
        self._read("read", [self.items.get(key, {})], consistent=True)
        return await super().read(key)

    async def create(self, row: LeaseRow, *, parent: Write | None = None) -> bool:
        self._write("create", size(item_from_row(row)), times=1 if parent is None else 4)
        return await super().create(row, parent=parent)

    async def write(self, write: Write) -> LeaseRow:
        before = size(self.items.get(write.key, {}))
        try:
            return await super().write(write)
        finally:
            self._write(write.operation, max(before, size(self.items.get(write.key, {}))))

    async def workers(self) -> tuple[WorkerRow, ...]:
        self._read("workers", self.worker_items.values(), consistent=True)
        return await super().workers()

    async def put_worker(self, row: WorkerRow) -> None:
        await super().put_worker(row)
        self._write("put worker", size(self.worker_items[row.worker]))

    def _read(self, operation: str, items: Iterable[Item], *, consistent: bool) -> None:
        total = sum(map(size, items))
        self.bill.requests[operation] += 1 + max(0, total - 1) // PAGE_BYTES
        self.bill.reads += read_units(total, consistent=consistent)

    def _write(self, operation: str, size_bytes: int, *, times: int = 1) -> None:
        self.bill.requests[operation] += 1
        self.bill.writes += times * write_units(size_bytes)
