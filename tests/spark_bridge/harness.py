"""Drives a reader as Spark 4.3 does, without a JVM, and serves it a Kinesis.

The order of calls, the copies made by pickling and the JSON between them are those of Spark: ``initialOffset`` twice,
``commit`` one batch late, ``partitions`` first after a restart, ``read`` on a copy that saw nothing else.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.types import StructType

from spark_bridge.partition import KclPartition
from spark_bridge.reader import KclReader
from spark_bridge.rows import SCHEMA
from spark_bridge.source import KclDataSource
from tests.kcl_py.local.world import World, boto, serving

Json = dict[str, Any]


class LocalStream:
    """A stream ``s`` behind HTTP; what is put here is remembered by shard."""

    def __init__(self, world: World, url: str, client: Any, spool: Path) -> None:
        self.world, self.url, self.client, self.spool = world, url, client, spool
        self.put_in: dict[str, list[bytes]] = {}
        self._count = 0

    @classmethod
    @contextmanager
    def serve(cls, *, shards: int, spool: Path) -> Iterator[Self]:
        world = World(shards)
        with serving(world) as url, boto("kinesis", url) as client:
            yield cls(world, url, client, spool)

    def options(self, **more: str) -> dict[str, str]:
        return {"stream": "s", "endpoint": self.url, "region": "us-east-1", "spoolDir": str(self.spool)} | more

    def put(self, count: int, *, size_bytes: int = 0) -> None:
        """Put ``count`` (up to 500) different records with different keys."""
        keys = [str(self._count + number) for number in range(1, count + 1)]
        self._count += count
        payloads = [key.encode().ljust(size_bytes, b".") for key in keys]
        records = [{"Data": data, "PartitionKey": key} for key, data in zip(keys, payloads, strict=True)]
        reply = self.client.put_records(StreamName="s", Records=records)
        for data, result in zip(payloads, reply["Records"], strict=True):
            self.put_in.setdefault(result["ShardId"], []).append(data)

    def split(self, shard_id: str) -> None:
        """Split a shard in the middle; it is done at once."""
        first, last = self.world.hash_range(shard_id)
        self.client.split_shard(StreamName="s", ShardToSplit=shard_id, NewStartingHashKey=str((first + last) // 2))
        self.world.settle()

    def spooled_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.spool.rglob("*.arrow"))


class SparkLog:
    """What Spark keeps in its checkpoint: the end of each batch, and how many batches are done."""

    def __init__(self) -> None:
        self.ends: list[str] = []
        self.done = 0


class ReaderHarness:
    """One query: a reader process that can be ended and begun again over the same log."""

    def __init__(self, options: dict[str, str], log: SparkLog | None = None) -> None:
        self.source: KclDataSource = self.copy(KclDataSource(options))
        self.log = log or SparkLog()
        self.reader: KclReader = self.source.streamReader(StructType())
        self._planned: KclReader = self.copy(self.source.streamReader(StructType()))
        self.tables: list[pa.Table] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.reader.stop()

    @staticmethod
    def copy(value: Any) -> Any:
        """Send a value to another process."""
        dumps: Any = cloudpickle.dumps
        return cloudpickle.loads(dumps(value))

    def start_of(self, batch: int) -> Json:
        offset: Json = json.loads(self.log.ends[batch - 1] if batch else json.dumps(self.reader.initialOffset()))
        return offset

    def resume(self) -> pa.Table | None:
        """Run the batch that was logged and not done, if there is one."""
        return self.run() if self.log.done < len(self.log.ends) else None

    def plan(self) -> bool:
        """Ask for the next batch and log its end; False if there is nothing new."""
        batch = len(self.log.ends)
        start = self.start_of(batch)
        end = json.dumps(self.reader.latestOffset(start, self.reader.getDefaultReadLimit()))
        json.dumps(self.reader.reportLatestOffset())
        if batch and end == self.log.ends[-1]:
            return False
        self.log.ends.append(end)
        return True

    def partitions(self) -> list[KclPartition]:
        """Plan the tasks of the batch that is logged and not done."""
        if self.log.done:
            self.reader.commit(json.loads(self.log.ends[self.log.done - 1]))
        planned = self.reader.partitions(self.start_of(self.log.done), json.loads(self.log.ends[self.log.done]))
        return [self.copy(partition) for partition in planned]

    def read(self, partition: KclPartition) -> pa.Table:
        return pa.Table.from_batches(list(self.copy(self._planned).read(partition)), SCHEMA)

    def run(self) -> pa.Table:
        """Run the tasks of the batch and mark it as done; returns its rows."""
        table = pa.concat_tables([SCHEMA.empty_table(), *map(self.read, self.partitions())])
        self.log.done += 1
        self.tables.append(table)
        return table

    def trigger(self) -> pa.Table | None:
        """Run one batch if there is something new."""
        return self.run() if self.plan() else None

    def run_until(self, rows: int) -> pa.Table:
        """Run batches until there were ``rows`` rows since the harness began; the test's timeout is the limit."""
        while sum(table.num_rows for table in self.tables) < rows:
            self.trigger()
        return pa.concat_tables([SCHEMA.empty_table(), *self.tables])


def by_shard(table: pa.Table) -> dict[str, list[bytes]]:
    """The payloads of each shard, in order of the rows."""
    found: dict[str, list[bytes]] = {}
    for shard_id, data in zip(table["shardId"].to_pylist(), table["data"].to_pylist(), strict=True):
        found.setdefault(shard_id, []).append(data)
    return found
