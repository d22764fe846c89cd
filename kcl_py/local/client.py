"""The local Kinesis with the face of aioboto3's client: for tests and the simulation, without a socket.

Only what kcl_py itself calls is here. Errors are botocore's ``ClientError`` with the same response as over HTTP.
``get_records`` returns ``Record`` structs, as our decoder of the wire does. Each call is one point of cancellation,
before it takes effect.
"""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from email.utils import formatdate
from itertools import count
from types import TracebackType
from typing import Any, Self

from anyio.lowlevel import checkpoint
from botocore.exceptions import ClientError, EventStreamError

from actors.clock import Clock
from kcl_py.local.errors import ModelError
from kcl_py.local.model import Kinesis
from kcl_py.local.subscription import POLL_S, Subscription


class KinesisClient:
    """Stands where ``session.client("kinesis")`` would.

    Args:
        model: the service; clients of one model share its streams.
        clock: the service's clock, for the Date header of each answer.
    """

    def __init__(self, model: Kinesis, clock: Clock) -> None:
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

    async def create_stream(self, **params: Any) -> dict[str, Any]:
        return await self._call("CreateStream", params)

    async def delete_stream(self, **params: Any) -> dict[str, Any]:
        return await self._call("DeleteStream", params)

    async def describe_stream_summary(self, **params: Any) -> dict[str, Any]:
        return await self._call("DescribeStreamSummary", params)

    async def list_shards(self, **params: Any) -> dict[str, Any]:
        return await self._call("ListShards", params)

    async def put_record(self, **params: Any) -> dict[str, Any]:
        return await self._call("PutRecord", params)

    async def put_records(self, **params: Any) -> dict[str, Any]:
        return await self._call("PutRecords", params)

    async def get_shard_iterator(self, **params: Any) -> dict[str, Any]:
        return await self._call("GetShardIterator", params)

    async def get_records(self, **params: Any) -> dict[str, Any]:
        return await self._call("GetRecords", params)

    async def split_shard(self, **params: Any) -> dict[str, Any]:
        return await self._call("SplitShard", params)

    async def merge_shards(self, **params: Any) -> dict[str, Any]:
        return await self._call("MergeShards", params)

    async def update_shard_count(self, **params: Any) -> dict[str, Any]:
        return await self._call("UpdateShardCount", params)

    async def register_stream_consumer(self, **params: Any) -> dict[str, Any]:
        return await self._call("RegisterStreamConsumer", params)

    async def describe_stream_consumer(self, **params: Any) -> dict[str, Any]:
        return await self._call("DescribeStreamConsumer", params)

    async def deregister_stream_consumer(self, **params: Any) -> dict[str, Any]:
        return await self._call("DeregisterStreamConsumer", params)

    async def subscribe_to_shard(self, **params: Any) -> dict[str, Any]:
        answer = await self._call("SubscribeToShard", params)
        return answer | {"EventStream": self._events(answer["EventStream"])}

    async def _events(self, subscription: Subscription) -> AsyncGenerator[dict[str, Any], None]:
        """Yield what aiobotocore's event stream does; closing it leaves the subscription."""
        while not subscription.is_over:
            await checkpoint()
            try:
                event = subscription.event(self._clock.time())
            except ModelError as refusal:
                error = {"Error": {"Code": refusal.code, "Message": refusal.message}}
                raise EventStreamError(error, "SubscribeToShard") from refusal  # type: ignore[arg-type]  # as botocore's
            if event is None:
                await self._clock.sleep(POLL_S)
            else:
                yield {"SubscribeToShardEvent": event}

    async def _call(self, operation: str, params: dict[str, Any]) -> dict[str, Any]:
        await checkpoint()
        return self.answer(operation, params)

    def answer(self, operation: str, params: dict[str, Any]) -> dict[str, Any]:
        """Answer at once, without a point of cancellation; ``operation`` is AWS's name. Raises ClientError."""
        try:
            answer = self._model.call(operation, {name: _on_the_wire(value) for name, value in params.items()})
        except ModelError as refusal:
            response = self._metadata(refusal.status)
            response["Error"] = {"Code": refusal.code, "Message": refusal.message}
            raise ClientError(response, operation) from refusal  # type: ignore[arg-type]  # a plain dict, as botocore's
        if operation == "DescribeStreamSummary":
            summary = answer["StreamDescriptionSummary"]
            summary["StreamCreationTimestamp"] = datetime.fromtimestamp(summary["StreamCreationTimestamp"], UTC)
        return answer | self._metadata(200)

    def _metadata(self, status: int) -> dict[str, Any]:
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


def _on_the_wire(value: Any) -> Any:
    """Turn what boto takes for convenience into what travels: a datetime into Unix seconds."""
    if isinstance(value, datetime):
        return value.timestamp()
    if isinstance(value, dict):
        return {name: _on_the_wire(inner) for name, inner in value.items()}
    return value
