"""The lease store in DynamoDB: one table of leases in the Java client's schema, and a small one of live workers.

It sends each request once and decides nothing; every request has a total deadline of a sixth of the failover time,
so that two fit well before the holder's own, and at the start a longer one. An existing table is used as it is.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import structlog

from actors.clock import Clock
from kcl_py.aws import request
from kcl_py.config import Leases
from kcl_py.errors import ConditionFailedError, LeaseTableError, RejectedError
from kcl_py.leases import expressions
from kcl_py.leases.attributes import decode_item, encode, encode_item
from kcl_py.leases.client import DynamoClient
from kcl_py.leases.items import (
    UNSET_IN_WORKER,
    item_from_row,
    item_from_worker,
    row_from_item,
    scan_from_items,
    worker_from_item,
)
from kcl_py.leases.row import Item, LeaseRow, MalformedRowError, WorkerRow
from kcl_py.leases.store import Scan, Write
from kcl_py.leases.tables import Table, find, find_or_create, keep_backups, until_active

_FAILED = "ConditionalCheckFailed"
"""The reason that a cancelled transaction gives for an item. Source: TransactWriteItems in the API reference."""

log = structlog.get_logger()


class DynamoLeaseStore:
    """A ``LeaseStore`` on a client that somebody else opened and closes."""

    def __init__(self, client: DynamoClient, leases: Leases, *, clock: Clock) -> None:
        self._client, self._leases, self._clock = client, leases, clock
        self._table = Table("lease table", leases.table, "leaseKey", is_kept=True)
        self._workers = Table("worker table", leases.workers_table, "wid")
        self._has_workers = self._is_new = False
        """Whether this store has created the lease table and has not yet done all that there is to do for a new one."""
        self._deadline_s = leases.failover_s / 6

    @property
    def has_workers(self) -> bool:
        return self._has_workers

    async def ensure(self) -> float | None:
        began_at = self._clock.monotonic()
        self._is_new |= await find_or_create(self._client, self._table, self._leases, self._clock)
        self._has_workers = await self._find_workers()
        await until_active(self._client, self._table, self._clock)
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
            await until_active(self._client, self._workers, self._clock)
        except LeaseTableError as error:
            log.warning("kcl_py.table.workers_unavailable", table=self._workers.name, error=str(error))
            return False
        return True

    async def scan(self, *, consistent: bool = False) -> Scan:
        return scan_from_items(await self._scan(self._table, consistent=consistent))

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
        return self._row(write.operation, write.key, reply["Attributes"])

    async def delete(self, write: Write) -> None:
        with self._request(write.operation, write.key):
            await self._client.delete_item(**self._at(write.key), **expressions.condition(write))

    async def workers(self) -> tuple[WorkerRow, ...]:
        rows = map(worker_from_item, await self._scan(self._workers, consistent=True))
        return tuple(row for row in rows if row is not None)

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

    async def _scan(self, table: Table, *, consistent: bool) -> list[Item]:
        """All items, page by page; a page may be empty and not the last."""
        items: list[Item] = []
        start: dict[str, Any] = {}
        while True:
            with request("Scan", table.name, deadline_s=self._deadline_s, clock=self._clock):
                page = await self._client.scan(TableName=table.name, ConsistentRead=consistent, **start)
            items += map(decode_item, page.get("Items", ()))
            if not page.get("LastEvaluatedKey"):
                return items
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    def _at(self, key: str) -> dict[str, Any]:
        return {"TableName": self._table.name, "Key": {"leaseKey": encode(key)}}

    def _request(self, operation: str, key: str, table: Table | None = None) -> AbstractContextManager[None]:
        return request(
            operation, f"{(table or self._table).name}/{key}", deadline_s=self._deadline_s, clock=self._clock
        )

    def _row(self, operation: str, key: str, item: Mapping[str, Any]) -> LeaseRow:
        try:
            return row_from_item(decode_item(item))
        except MalformedRowError as error:
            raise RejectedError(operation, f"{self._table.name}/{key}", "MalformedRow", str(error)) from error


def _parent_failed(error: ConditionFailedError) -> bool:
    """Tell whether the parent's condition failed, which comes first in our transactions."""
    reasons = getattr(error.__cause__, "response", {}).get("CancellationReasons") or [{"Code": _FAILED}]
    return bool(reasons[0].get("Code") == _FAILED)
