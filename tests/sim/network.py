"""The way from one worker to one service: a request takes effect on the far side, whatever becomes of its sender.

A crash neither undoes what has arrived nor surely stops what is on its way; a reply then finds nobody. A cut lets
nothing through in either direction. Answers come at once on the far side, from a model. Durations are seconds.
"""

import asyncio
import random
from collections.abc import Callable
from contextvars import Context
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

Params = dict[str, Any]
Answer = Callable[[str, Params], Any]

LATENCY_S = (0.001, 0.004)
"""One way."""
OPERATIONS = {
    "describe_stream_summary": "DescribeStreamSummary",
    "list_shards": "ListShards",
    "get_shard_iterator": "GetShardIterator",
    "get_records": "GetRecords",
    "describe_table": "DescribeTable",
    "create_table": "CreateTable",
    "scan": "Scan",
    "get_item": "GetItem",
    "put_item": "PutItem",
    "update_item": "UpdateItem",
    "delete_item": "DeleteItem",
    "transact_write_items": "TransactWriteItems",
}
"""Methods of aiobotocore's clients that a worker calls."""
_ELSEWHERE = Context()
"""What happens on the far side is no worker's."""


class Link:
    """A client of aiobotocore's kind at the worker's end.

    Args:
        answer: the service; raises ClientError.
        loop: virtual time.
        draw: decides latencies.
        late: returns by how much a request or a reply comes late.
    """

    def __init__(
        self, answer: Answer, loop: asyncio.AbstractEventLoop, draw: random.Random, late: Callable[[], float]
    ) -> None:
        self._answer, self._loop, self._draw, self._late = answer, loop, draw, late
        self._sent: dict[int, asyncio.TimerHandle] = {}
        self._number = 0
        self.is_cut = False

    def __getattr__(self, method: str) -> Any:
        operation = OPERATIONS.get(method)
        if operation is None:
            raise AttributeError(method)
        return partial(self._call, operation)

    async def close(self) -> None:
        """There is no connection."""

    def lose_some(self) -> None:
        """The sender is gone: of what is on its way to the service, about half never arrives."""
        for number in sorted(self._sent):
            if self._draw.random() < 0.5:
                self._sent.pop(number).cancel()

    async def _call(self, operation: str, **params: Any) -> Any:
        reply: asyncio.Future[Any] = self._loop.create_future()
        if not self.is_cut:
            self._number += 1
            self._sent[self._number] = self._loop.call_later(
                self._takes_s(), self._arrive, self._number, operation, params, reply, context=_ELSEWHERE
            )
        return await reply

    def _arrive(self, number: int, operation: str, params: Params, reply: "asyncio.Future[Any]") -> None:
        del self._sent[number]
        if self.is_cut:
            return
        try:
            settle = partial(reply.set_result, self._answer(operation, params))
        except ClientError as error:
            settle = partial(reply.set_exception, error)
        self._loop.call_later(self._takes_s(), self._deliver, reply, settle, context=_ELSEWHERE)

    def _takes_s(self) -> float:
        return self._draw.uniform(*LATENCY_S) + self._late()

    def _deliver(self, reply: "asyncio.Future[Any]", settle: Callable[[], None]) -> None:
        if not self.is_cut and not reply.done():
            settle()
