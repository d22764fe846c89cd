"""The lease store in DynamoDB: one table of leases in the Java client's schema, and a small one of live workers.

It sends each request once and decides nothing; every request has a total deadline of a sixth of the failover time,
so that two fit well before the holder's own, and at the start a longer one. An existing table is used as it is.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from actors.clock import Clock
from kcl_py.aws import request
from kcl_py.config import Leases
from kcl_py.errors import ConditionFailedError, LeaseTableError, RejectedError, RequestError
from kcl_py.events import Events
from kcl_py.leases import expressions, transactions
from kcl_py.leases.attributes import encode, encode_item
from kcl_py.leases.capacity import Capacity, found
from kcl_py.leases.client import DynamoClient, Reply
from kcl_py.leases.items import UNSET_IN_WORKER, item_from_row, item_from_worker, worker_from_item
from kcl_py.leases.row import LeaseRow, MalformedRowError, WorkerRow
from kcl_py.leases.segments import scan, segments
from kcl_py.leases.store import MALFORMED, Effects, Scan, Write
from kcl_py.leases.tables import Table, find, find_or_create, keep_backups, until_active
from kcl_py.leases.wire_rows import WireItem, plain, row_from_wire, scan_from_wire

T = TypeVar("T")

log = Events()


class DynamoLeaseStore:
    """A ``LeaseStore`` on a client that somebody else opened and closes."""

    def __init__(self, client: DynamoClient, leases: Leases, *, clock: Clock) -> None:
        self._client, self._leases, self._clock = client, leases, clock
        self._table = Table("lease table", leases.table, "leaseKey", is_kept=True)
        self._workers = Table("worker table", leases.workers_table, "wid")
        self._has_workers = self._is_new = False
        """Whether this store has created the lease table and has not yet done all that there is to do for a new one."""
        self._capacity: dict[Table, Capacity | None] = {}
        self._deadline_s = leases.failover_s / 6
        self._rows = 0
        """Of the lease table, when it was last read."""

    @property
    def has_workers(self) -> bool:
        return self._has_workers

    @property
    def capacity(self) -> tuple[Capacity | None, Capacity | None]:
        return self._capacity.get(self._table), self._capacity.get(self._workers)

    async def ensure(self) -> float | None:
        began_at = self._clock.monotonic()
        self._is_new |= await find_or_create(self._client, self._table, self._leases, self._clock)
        self._has_workers = await self._find_workers()
        self._capacity[self._table] = found(await until_active(self._client, self._table, self._clock))
        if self._is_new and self._leases.pitr:
            await keep_backups(self._client, self._table, self._clock)
        is_new, self._is_new = self._is_new, False
        return self._clock.monotonic() - began_at if is_new else None

    async def find(self) -> None:
        """Make sure that there is a lease table that can be read; create nothing.

        Raises:
            MissingError: there is none.
            LeaseTableError: it has another key, is not ACTIVE in time, or may not be looked at.
        """
        await find(self._client, self._table, self._clock)
        await until_active(self._client, self._table, self._clock)

    async def _find_workers(self) -> bool:
        try:
            await find_or_create(self._client, self._workers, self._leases, self._clock)
            self._capacity[self._workers] = found(await until_active(self._client, self._workers, self._clock))
        except LeaseTableError as error:
            log.warning("kcl_py.table.workers_unavailable", table=self._workers.name, error=str(error))
            return False
        return True

    async def scan(self, *, consistent: bool = False) -> Scan:
        pages = await self._pages(self._table, scan_from_wire, consistent=consistent, segments=segments(self._rows))
        rows = tuple(row for page in pages for row in page.rows)
        self._rows = len(rows)
        return Scan(rows, tuple(sentence for page in pages for sentence in page.malformed))

    async def read(self, key: str) -> LeaseRow | None:
        with self._request("GetItem", key):
            reply = await self._client.get_item(**self._at(key), ConsistentRead=True)
        item = reply.get("Item")
        return None if item is None else self._row("GetItem", key, item)

    async def create(self, row: LeaseRow, *, parent: Write | None = None) -> bool:
        put = {
            "TableName": self._table.name,
            "Item": encode_item(item_from_row(row)),
            "ConditionExpression": "attribute_not_exists(leaseKey)",
        }
        try:
            with self._request("create", row.key):
                if parent is None:
                    await self._client.put_item(**put)
                else:
                    check = {"ConditionCheck": {**self._at(parent.key), **expressions.condition(parent)}}
                    await self._client.transact_write_items(TransactItems=[check, {"Put": put}])
        except ConditionFailedError as error:
            if parent is not None and _parent_failed(error):
                raise
            return False
        return True

    async def write(self, write: Write) -> LeaseRow:
        with self._request(write.operation, write.key):
            reply = await self._client.update_item(
                **self._at(write.key), **expressions.update(write), ReturnValues="ALL_NEW"
            )
            item = reply["Attributes"]  # where it is missing, somebody else has answered
        return self._row(write.operation, write.key, item)

    async def transact(self, effects: Effects, *, request_token: str, write: Write | None = None) -> None:
        lease = [] if write is None else [{"Update": {**self._at(write.key), **expressions.update(write)}}]
        try:
            with self._request("TransactWriteItems", "effects" if write is None else write.key):
                await self._client.transact_write_items(
                    TransactItems=[*lease, *effects], ClientRequestToken=request_token
                )
        except RequestError as error:
            raise transactions.judge(error, effects, with_lease=write is not None) from error

    async def delete(self, write: Write) -> None:
        with self._request(write.operation, write.key):
            await self._client.delete_item(**self._at(write.key), **expressions.condition(write))

    async def workers(self) -> tuple[WorkerRow, ...]:
        pages = await self._pages(self._workers, _workers, consistent=True)
        return tuple(row for page in pages for row in page)

    async def put_worker(self, row: WorkerRow) -> None:
        item = item_from_worker(row)
        fields: dict[tuple[str, ...], Any] = {(name,): value for name, value in item.items() if name != "wid"}
        unset = tuple((name,) for name in UNSET_IN_WORKER if name not in item)
        with self._request("put", row.worker, self._workers):
            await self._client.update_item(
                TableName=self._workers.name, Key={"wid": encode(row.worker)}, **expressions.upsert(fields, unset)
            )

    async def delete_worker(self, worker: str) -> None:
        with self._request("delete", worker, self._workers):
            await self._client.delete_item(TableName=self._workers.name, Key={"wid": encode(worker)})

    async def aclose(self) -> None:
        """Do nothing: the client belongs to who opened it."""

    async def _pages(self, table: Table, read: Callable[[Any], T], *, consistent: bool, segments: int = 1) -> list[T]:
        async def page(**request_: Any) -> Reply:
            with request("Scan", table.name, deadline_s=self._deadline_s, clock=self._clock):
                reply = await self._client.scan(TableName=table.name, ConsistentRead=consistent, **request_)
                kept: Reply = {"Items": reply["Items"], "LastEvaluatedKey": reply.get("LastEvaluatedKey")}
                return kept  # a reply without items is not of an empty table: somebody else has answered

        return await scan(page, read, segments)

    def _at(self, key: str) -> dict[str, Any]:
        return {"TableName": self._table.name, "Key": {"leaseKey": encode(key)}}

    def _request(self, operation: str, key: str, table: Table | None = None) -> AbstractContextManager[None]:
        return request(
            operation, f"{(table or self._table).name}/{key}", deadline_s=self._deadline_s, clock=self._clock
        )

    def _row(self, operation: str, key: str, item: WireItem) -> LeaseRow:
        try:
            return row_from_wire(item)
        except MalformedRowError as error:
            raise RejectedError(operation, f"{self._table.name}/{key}", MALFORMED, str(error)) from error


def _workers(items: Iterable[WireItem]) -> list[WorkerRow]:
    return [row for row in map(worker_from_item, map(plain, items)) if row is not None]


def _parent_failed(error: ConditionFailedError) -> bool:
    """Tell whether the parent's condition failed, which comes first in our transactions."""
    reasons = transactions.reasons_of(error) or [{"Code": transactions.FAILED}]
    return bool(reasons[0].get("Code") == transactions.FAILED)
