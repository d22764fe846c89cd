"""A DynamoDB in memory: the requests of one account in one region, answered as AWS documents it.

It does no I/O, starts no task, and takes time and chance only from its ``Behaviour``, so it serves a simulation as well
as a socket. It is not thread-safe. Answers have AWS's shape; times are Unix seconds, binaries bytes. They share values
with what is stored, which nobody may change. A refusal is a ``ModelError`` with AWS's code.
"""

from collections.abc import Callable
from typing import Any

from kcl_py.local.dynamo.admin import Admin, Answer, Request
from kcl_py.local.dynamo.behaviour import Behaviour
from kcl_py.local.dynamo.catalog import Catalog
from kcl_py.local.dynamo.changes import Archive, Kept
from kcl_py.local.dynamo.items import Items
from kcl_py.local.dynamo.table import Table
from kcl_py.local.errors import ModelError, not_kept
from kcl_py.local.shape import api


class DynamoDB:
    """All tables of one account in one region.

    Args:
        behaviour: clock, chance, delays and limits.
        archive: told of all that is to be kept.
    """

    def __init__(self, behaviour: Behaviour, archive: Archive | None = None) -> None:
        self._catalog, self._archive = Catalog(behaviour, is_kept=archive is not None), archive
        admin, items = Admin(self._catalog), Items(self._catalog)
        self._operations: dict[str, Callable[[Request], Answer]] = {
            "CreateTable": admin.create_table,
            "DeleteTable": admin.delete_table,
            "DescribeTable": admin.describe_table,
            "ListTables": admin.list_tables,
            "UpdateTable": admin.update_table,
            "DescribeTimeToLive": admin.describe_time_to_live,
            "UpdateTimeToLive": admin.update_time_to_live,
            "DescribeContinuousBackups": admin.describe_continuous_backups,
            "UpdateContinuousBackups": admin.update_continuous_backups,
            "TagResource": admin.tag_resource,
            "UntagResource": admin.untag_resource,
            "ListTagsOfResource": admin.list_tags_of_resource,
            "GetItem": items.get_item,
            "PutItem": items.put_item,
            "UpdateItem": items.update_item,
            "DeleteItem": items.delete_item,
            "Query": items.query,
            "Scan": items.scan,
            "BatchGetItem": items.batch_get_item,
            "BatchWriteItem": items.batch_write_item,
            "TransactGetItems": items.transact_get_items,
            "TransactWriteItems": items.transact_write_items,
        }

    @property
    def operations(self) -> frozenset[str]:
        """What it answers."""
        return frozenset(self._operations)

    def load(self) -> None:
        """Load AWS's model of the requests, which takes a tenth of a second, before the first of them comes."""
        api("dynamodb")

    def table(self, name: str) -> Table:
        """Return a table, for tests that look behind the requests. Raises ModelError."""
        return self._catalog.table(name)

    def call(self, operation: str, params: dict[str, Any]) -> Answer:
        """Answer a request in memory; binaries are bytes. Raises ModelError."""
        self._known(operation)
        return self._answer(operation, api("dynamodb").check(operation, params))

    def answer(self, operation: str, body: bytes) -> Answer:
        """Answer a request as it comes over HTTP. Raises ModelError."""
        self._known(operation)
        return self._answer(operation, api("dynamodb").read(operation, body))

    def adopt(self, kept: Kept) -> None:
        """Take tables as an earlier run left them."""
        self._catalog.adopt(kept)

    def _answer(self, operation: str, request: Request) -> Answer:
        self._keep()
        try:
            return self._operations[operation](request)
        finally:
            self._keep()

    def _keep(self) -> None:
        """Let the archive know of what changed. Raises ModelError while that cannot be kept: nobody is to see it."""
        if self._archive is not None and self._catalog.changes:
            try:
                self._archive.append(self._catalog.changes, self._catalog.whole)
            except OSError as error:
                raise not_kept(error, "InternalServerError") from error
            self._catalog.changes.clear()

    def _known(self, operation: str) -> None:
        if operation not in self._operations:
            raise ModelError("UnknownOperationException", f"the local DynamoDB has no operation {operation!r}")
