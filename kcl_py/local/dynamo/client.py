"""The DynamoDB model with the face of aiobotocore's client: for tests and the simulation, without a socket.

Errors are botocore's ``ClientError`` with the same response as over HTTP. Each call is one point of cancellation,
before it takes effect. Every answer is the caller's own.
"""

from datetime import UTC, datetime
from email.utils import formatdate
from itertools import count
from types import TracebackType
from typing import Any, Self

import msgspec
from anyio.lowlevel import checkpoint
from botocore.exceptions import ClientError

from actors.clock import Clock
from kcl_py.local.dynamo.errors import Refusal
from kcl_py.local.dynamo.model import DynamoDB
from kcl_py.local.errors import ModelError

Answer = dict[str, Any]


class DynamoDBClient:
    """Stands where ``session.client("dynamodb")`` would.

    Args:
        model: the service; clients of one model share its tables.
        clock: the service's clock, for the Date header of each answer.
    """

    def __init__(self, model: DynamoDB, clock: Clock) -> None:
        self._model, self._clock = model, clock
        self._request_ids = count(1)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Do nothing: there is no connection."""

    async def create_table(self, **params: Any) -> Answer:
        return await self._call("CreateTable", params)

    async def describe_table(self, **params: Any) -> Answer:
        return await self._call("DescribeTable", params)

    async def update_table(self, **params: Any) -> Answer:
        return await self._call("UpdateTable", params)

    async def delete_table(self, **params: Any) -> Answer:
        return await self._call("DeleteTable", params)

    async def list_tables(self, **params: Any) -> Answer:
        return await self._call("ListTables", params)

    async def update_time_to_live(self, **params: Any) -> Answer:
        return await self._call("UpdateTimeToLive", params)

    async def describe_time_to_live(self, **params: Any) -> Answer:
        return await self._call("DescribeTimeToLive", params)

    async def update_continuous_backups(self, **params: Any) -> Answer:
        return await self._call("UpdateContinuousBackups", params)

    async def describe_continuous_backups(self, **params: Any) -> Answer:
        return await self._call("DescribeContinuousBackups", params)

    async def tag_resource(self, **params: Any) -> Answer:
        return await self._call("TagResource", params)

    async def untag_resource(self, **params: Any) -> Answer:
        return await self._call("UntagResource", params)

    async def list_tags_of_resource(self, **params: Any) -> Answer:
        return await self._call("ListTagsOfResource", params)

    async def get_item(self, **params: Any) -> Answer:
        return await self._call("GetItem", params)

    async def put_item(self, **params: Any) -> Answer:
        return await self._call("PutItem", params)

    async def update_item(self, **params: Any) -> Answer:
        return await self._call("UpdateItem", params)

    async def delete_item(self, **params: Any) -> Answer:
        return await self._call("DeleteItem", params)

    async def query(self, **params: Any) -> Answer:
        return await self._call("Query", params)

    async def scan(self, **params: Any) -> Answer:
        return await self._call("Scan", params)

    async def batch_get_item(self, **params: Any) -> Answer:
        return await self._call("BatchGetItem", params)

    async def batch_write_item(self, **params: Any) -> Answer:
        return await self._call("BatchWriteItem", params)

    async def transact_get_items(self, **params: Any) -> Answer:
        return await self._call("TransactGetItems", params)

    async def transact_write_items(self, **params: Any) -> Answer:
        return await self._call("TransactWriteItems", params)

    async def _call(self, operation: str, params: Answer) -> Answer:
        await checkpoint()
        return self.answer(operation, params)

    def answer(self, operation: str, params: Answer) -> Answer:
        """Answer at once, without a point of cancellation; ``operation`` is AWS's name. Raises ClientError."""
        try:
            answer = self._model.call(operation, params)
        except ModelError as refusal:
            response = self._metadata(refusal.status)
            response["Error"] = {"Code": refusal.code, "Message": refusal.message}
            response |= _own(refusal.more) if isinstance(refusal, Refusal) else {}
            raise ClientError(response, operation) from refusal  # type: ignore[arg-type]  # a plain dict, as botocore's
        return _own(answer) | self._metadata(200)

    def _metadata(self, status: int) -> Answer:
        request_id = f"{next(self._request_ids):032x}"
        headers = {"date": formatdate(self._clock.time(), usegmt=True), "x-amzn-requestid": request_id}
        return {
            "ResponseMetadata": {
                "RequestId": request_id,
                "HTTPStatusCode": status,
                "HTTPHeaders": headers,
                "RetryAttempts": 0,
            }
        }


def _own(answer: Answer) -> Answer:
    """Copy an answer, with times as boto gives them."""
    own: Answer = msgspec.msgpack.decode(msgspec.msgpack.encode(answer))
    for described in ("Table", "TableDescription"):
        if described in own:
            own[described]["CreationDateTime"] = datetime.fromtimestamp(own[described]["CreationDateTime"], UTC)
    return own
