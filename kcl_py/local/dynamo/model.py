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
from kcl_py.local.dynamo.items import Items
from kcl_py.local.dynamo.table import Table
from kcl_py.local.errors import ModelError
from kcl_py.local.shape import api


class DynamoDB:
    """All tables of one account in one region.

    Args:
        behaviour: clock, chance, delays and limits.
    """

    def __init__(self, behaviour: Behaviour) -> None:
        self._catalog = Catalog(behaviour)
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
        api("dynamodb").check(operation, params)
        return self._operations[operation](params)

    def answer(self, operation: str, body: bytes) -> Answer:
        """Answer a request as it comes over HTTP. Raises ModelError."""
        self._known(operation)
        return self._operations[operation](api("dynamodb").read(operation, body))

    def _known(self, operation: str) -> None:
        if operation not in self._operations:
            raise ModelError("UnknownOperationException", f"the local DynamoDB has no operation {operation!r}")
