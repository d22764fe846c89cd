"""What is measured, one case a process: prints one JSON line with CPU seconds, wall seconds and records.

The clock starts when the client is connected, so imports and connecting do not count. CPU is this process's, user and
system.
"""

import json
import logging
import sys
import time
from collections.abc import Awaitable, Callable

import anyio
import structlog

from kcl_py import Checkpointer, RecordBatch, RecordProcessor, Stream
from kcl_py.clients import Clients, connect
from kcl_py.config import Aws, Config, Leases
from kcl_py.sources.source import TRIM_HORIZON, Source

READERS = 4
"""Shards that the floor reads at the same time."""


def a_config(url: str) -> Config:
    """Return the defaults, with leases in memory."""
    return Config(
        app="bench",
        stream="bench",
        processor="bench.cases:Count",
        leases=Leases(store="memory"),
        aws=Aws(region="us-east-1", endpoint=url),
    )


async def floor(clients: Clients, config: Config, expected: int) -> None:
    """Fetch and decode everything and drop it: no quota, no delivery, no leases."""
    shards = list((await clients.source.list_shards()).shards)
    counts: list[int] = []

    async def reader() -> None:
        while shards:
            counts.append(await _read_shard(clients.source, shards.pop().shard_id, config.fetch.max_records))

    async with anyio.create_task_group() as tasks:
        for _ in range(READERS):
            tasks.start_soon(reader)
    assert sum(counts) == expected, f"read {sum(counts)} of {expected} records"


async def _read_shard(source: Source, shard_id: str, limit: int) -> int:
    read, iterator = 0, await source.open(shard_id, TRIM_HORIZON)
    while True:
        fetched = await source.fetch(shard_id, iterator, limit=limit)
        if not fetched.records or fetched.next_iterator is None:
            return read
        read, iterator = read + len(fetched.records), fetched.next_iterator


class Count(RecordProcessor):
    """Does nothing with its records but count them, over all shards, until ``missing`` is 0."""

    missing = 0
    done = anyio.Event()

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        Count.missing -= len(batch)
        if Count.missing <= 0:
            Count.done.set()


async def tree(clients: Clients, config: Config, expected: int) -> None:
    """Run the whole worker: leases (in memory), quotas, prefetch, batches, checkpoints, and a stop at the end."""
    Count.missing = expected
    async with Stream(config, processor=Count, clients=clients) as stream, anyio.create_task_group() as tasks:

        async def stop_when_done() -> None:
            await Count.done.wait()
            stream.stop(config.grace_s)

        tasks.start_soon(stop_when_done)
        await stream.wait()
    assert Count.missing == 0, f"{Count.missing} records missing"


CASES: dict[str, Callable[[Clients, Config, int], Awaitable[None]]] = {"floor": floor, "tree": tree}


async def measure(case: str, url: str, expected: int) -> None:
    """Run one case and print its figures."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    config = a_config(url)
    async with connect(config) as clients:
        cpu_s, wall_s = time.process_time(), time.perf_counter()
        await CASES[case](clients, config, expected)
        figures = {"cpu_s": time.process_time() - cpu_s, "wall_s": time.perf_counter() - wall_s, "records": expected}
    print(json.dumps(figures))


if __name__ == "__main__":
    anyio.run(measure, sys.argv[1], sys.argv[2], int(sys.argv[3]))
