"""A DynamoDB of tables without items: who may do what, and how long a new table takes to be ACTIVE."""

from collections import Counter
from typing import Any

import anyio
from botocore.exceptions import ClientError


def refused(code: str, operation: str) -> ClientError:
    """Return the error that botocore raises for an error reply."""
    return ClientError({"Error": {"Code": code, "Message": f"{operation} says {code}"}}, operation)


class FakeTables:
    """A ``DynamoClient`` that knows tables and pages.

    Args:
        denied: operations that this role may not call.
        looks: how often a new table is described as CREATING.
        throttled: operations that are refused for their rate.
    """

    def __init__(self, *, denied: tuple[str, ...] = (), looks: int = 0, throttled: tuple[str, ...] = ()) -> None:
        self.throttled = throttled
        self.tables: dict[str, dict[str, Any]] = {}
        self.calls: Counter[str] = Counter()
        self.created: dict[str, dict[str, Any]] = {}
        """What was asked for."""
        self.backed_up: list[str] = []
        self.pages: list[dict[str, Any]] = []
        self.scans: list[dict[str, Any]] = []
        self._denied, self._looks = denied, looks
        self._left: dict[str, int] = {}

    def add(self, name: str, key: str, status: str = "ACTIVE") -> None:
        self.tables[name] = {
            "TableName": name,
            "TableStatus": status,
            "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"}],
        }

    async def describe_table(self, **request: Any) -> dict[str, Any]:
        name = request["TableName"]
        await self._enter("DescribeTable", name)
        if name not in self.tables:
            raise refused("ResourceNotFoundException", "DescribeTable")
        if self.tables[name]["TableStatus"] == "CREATING":
            self._left[name] = self._left.get(name, self._looks) - 1
            if self._left[name] < 0:
                self.tables[name]["TableStatus"] = "ACTIVE"
        return {"Table": dict(self.tables[name])}

    async def create_table(self, **request: Any) -> dict[str, Any]:
        name = request["TableName"]
        await self._enter("CreateTable", name)
        if name in self.tables:
            raise refused("ResourceInUseException", "CreateTable")
        self.add(name, request["KeySchema"][0]["AttributeName"], "CREATING")
        self.created[name] = request
        return {}

    async def update_continuous_backups(self, **request: Any) -> dict[str, Any]:
        await self._enter("UpdateContinuousBackups", request["TableName"])
        if self.calls["UpdateContinuousBackups"] <= self._looks:
            raise refused("ContinuousBackupsUnavailableException", "UpdateContinuousBackups")
        self.backed_up.append(request["TableName"])
        return {}

    async def scan(self, **request: Any) -> dict[str, Any]:
        await self._enter("Scan", request["TableName"])
        self.scans.append(request)
        page: int = request.get("ExclusiveStartKey", {"page": 0})["page"]
        return self.pages[page]

    async def get_item(self, **request: Any) -> dict[str, Any]:
        await anyio.sleep_forever()
        return {}

    async def put_item(self, **request: Any) -> dict[str, Any]:
        raise refused("ProvisionedThroughputExceededException", "PutItem")

    async def update_item(self, **request: Any) -> dict[str, Any]:
        raise refused("InternalServerError", "UpdateItem")

    async def delete_item(self, **request: Any) -> dict[str, Any]:
        raise refused("AccessDeniedException", "DeleteItem")

    async def transact_write_items(self, **request: Any) -> dict[str, Any]:
        raise refused("TransactionInProgressException", "TransactWriteItems")

    async def _enter(self, operation: str, name: str) -> None:
        await anyio.lowlevel.checkpoint()
        self.calls[operation] += 1
        if operation in self.throttled:
            raise refused("LimitExceededException", operation)
        if operation in self._denied or f"{operation} {name}" in self._denied:
            raise refused("AccessDeniedException", operation)
