"""A Kinesis model with a clock that only the test moves, and short words for what tests do with it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3  # type: ignore[import-untyped]
from anyio.from_thread import start_blocking_portal

from kcl_py.local.dynamo.behaviour import Behaviour
from kcl_py.local.dynamo.model import DynamoDB
from kcl_py.local.dynamodb import LocalDynamoDB
from kcl_py.local.http import Handler
from kcl_py.local.model import Kinesis
from kcl_py.local.server import Server, serve
from kcl_py.records import Record
from tests.clocks import PromptClock

DELAY_S = 0.05


class World:
    """One stream ``s``, ACTIVE, with ``shards`` shards."""

    def __init__(
        self, shards: int = 1, *, delay_s: float = DELAY_S, clock: PromptClock | None = None, **more: Any
    ) -> None:
        self.clock = clock or PromptClock()
        self.model = Kinesis(self.clock, delay_s=delay_s, **more)
        self.model.add_stream("s", shards)

    def call(self, operation: str, **params: Any) -> dict[str, Any]:
        return self.model.call(operation, params)

    def settle(self) -> None:
        """Let what is under way come to its end."""
        self.clock.now_s += DELAY_S

    def put(self, data: bytes = b"x", key: str = "k", **more: Any) -> dict[str, Any]:
        return self.call("PutRecord", StreamName="s", Data=data, PartitionKey=key, **more)

    def put_many(self, count: int, *, data: bytes = b"x", key: str = "k") -> None:
        for start in range(0, count, 500):
            records = [{"Data": data, "PartitionKey": key}] * min(500, count - start)
            self.call("PutRecords", StreamName="s", Records=records)

    def split(self, shard_id: str, cut: int | None = None) -> None:
        """Split a shard, in the middle unless ``cut`` says where, and wait for it."""
        first, last = self.hash_range(shard_id)
        cut = (first + last) // 2 if cut is None else cut
        self.call("SplitShard", StreamName="s", ShardToSplit=shard_id, NewStartingHashKey=str(cut))
        self.settle()

    def merge(self, lower: str, upper: str) -> None:
        """Merge two shards and wait for it."""
        self.call("MergeShards", StreamName="s", ShardToMerge=lower, AdjacentShardToMerge=upper)
        self.settle()

    def shards(self, kind: str | None = None, **more: Any) -> list[dict[str, Any]]:
        """Return all shards, or those that a filter lets through."""
        wanted = {} if kind is None else {"ShardFilter": {"Type": kind, **more}}
        shards: list[dict[str, Any]] = self.call("ListShards", StreamName="s", **wanted)["Shards"]
        return shards

    def open_ids(self) -> list[str]:
        """Return the open shards' ids in the order of the ring."""
        shards = sorted(self.shards("AT_LATEST"), key=lambda shard: int(shard["HashKeyRange"]["StartingHashKey"]))
        return [shard["ShardId"] for shard in shards]

    def hash_range(self, shard_id: str) -> tuple[int, int]:
        [found] = [shard["HashKeyRange"] for shard in self.shards() if shard["ShardId"] == shard_id]
        return int(found["StartingHashKey"]), int(found["EndingHashKey"])

    def iterator(self, shard_id: str = "shardId-000000000000", kind: str = "TRIM_HORIZON", **more: Any) -> str:
        answer = self.call("GetShardIterator", StreamName="s", ShardId=shard_id, ShardIteratorType=kind, **more)
        iterator: str = answer["ShardIterator"]
        return iterator

    def get(self, iterator: str, **more: Any) -> dict[str, Any]:
        return self.call("GetRecords", ShardIterator=iterator, **more)

    def read(self, shard_id: str = "shardId-000000000000", *, limit: int = 10_000) -> list[Record]:
        """Return everything in a shard, page by page, up to its tip or its end."""
        records: list[Record] = []
        iterator: str | None = self.iterator(shard_id)
        while iterator is not None:
            answer = self.get(iterator, Limit=limit)
            records += answer["Records"]
            iterator = answer.get("NextShardIterator") if answer["Records"] else None
        return records


@contextmanager
def serving(
    world: World, dynamodb: Handler | None = None, *, s3: Handler | None = None, sqs: Handler | None = None
) -> Iterator[str]:
    """Serve ``world`` over HTTP from another thread; yields the URL."""
    tables = LocalDynamoDB(DynamoDB(Behaviour(world.clock)))
    server = Server(world.model, dynamodb or tables, clock=world.clock, s3=s3, sqs=sqs)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(serve(server)) as url:
        yield url


@contextmanager
def boto(service: str, url: str) -> Iterator[Any]:
    """Yield boto3's client of ``service``, which knows nothing of us."""
    client = boto3.client(
        service, endpoint_url=url, region_name="us-east-1", aws_access_key_id="any", aws_secret_access_key="any"
    )
    try:
        yield client
    finally:
        client.close()
