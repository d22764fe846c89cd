"""The consumer tree inside Spark's reader process: a thread with an event loop of its own that spools what it reads.

It holds its leases in memory, made anew from Spark's offset, so Spark's checkpoint is the only truth. It installs no
signal handler and dies with the process; what it has not handed to Spark is read again by the next run.
"""

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import ClassVar

import anyio

from kcl_py.clients import Clients
from kcl_py.errors import KclError
from kcl_py.leases.memory import MemoryLeaseStore
from kcl_py.leases.store import LeaseStore
from kcl_py.processor import Checkpointer, OwnedShard, RecordProcessor
from kcl_py.records import RecordBatch
from kcl_py.sources.source import Source
from kcl_py.tree.stream import Stream
from spark_bridge.feed import Feed
from spark_bridge.kinesis import Connect, Sleep, listed, patiently
from spark_bridge.offsets import Offset
from spark_bridge.options import GRACE_S, Options
from spark_bridge.refetch import DataLossError, check_starts
from spark_bridge.seed import children_of, seed
from spark_bridge.spool import Spool

JOIN_S = GRACE_S + 3.0
"""How long ``Tree.close`` waits for the thread, which then is left to die with the process."""
LOOK_S = 1.0
"""How often the lease rows are looked at."""


class ShardStandsError(KclError):
    """The tree has given a shard up, so the query would wait for it for ever."""

    def __init__(self, shard_id: str, why: str) -> None:
        super().__init__(shard_id, why)
        self.shard_id, self.why = shard_id, why

    def __str__(self) -> str:
        return f"cannot read shard {self.shard_id!r}: {self.why}; mend the cause and start the query again"


class SpoolingProcessor(RecordProcessor):
    """Spools each batch and returns once there is room for it: so Spark's demand is the shard's.

    A failure here stops the query: the tree would only halt the shard, and Spark would never see that it stands.
    """

    feed: ClassVar[Feed]
    source: ClassVar[Source]
    shard_id: str

    async def initialize(self, shard: OwnedShard) -> None:
        self.shard_id = shard.shard_id
        self.feed.open(shard.shard_id, shard.parents)

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        try:
            await self.feed.put(self.shard_id, batch.records)
        except Exception as error:
            self.feed.fail(error)
            raise

    async def shard_ended(self, checkpointer: Checkpointer) -> None:
        try:
            listing = await patiently(self.source.list_shards)
        except KclError:  # not knowing them only keeps the shard's END in the offset
            self.feed.end(self.shard_id, None)
        else:
            self.feed.end(self.shard_id, children_of(self.shard_id, listing.shards))


class Tree:
    """Reads the stream from ``start`` on, in a thread of its own, until ``close``.

    Args:
        options: of the query.
        start: the offset up to which Spark has everything.
        connect: opens the stream.
    """

    def __init__(self, options: Options, start: Offset, connect: Connect) -> None:
        self._options, self._start, self._connect = options, start, connect
        self._config = options.config()
        self.spool = Spool(options.spool_dir)
        self.feed = Feed(self.spool, stream=self._config.stream_name, most_bytes=options.max_buffered_bytes)
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="kcl-tree", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop reading and remove the spool; idempotent."""
        self.feed.close()
        with contextlib.suppress(RuntimeError):  # the loop has ended by itself
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(JOIN_S)
        self.spool.close()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._read())
        except BaseException as error:
            self.feed.fail(error)

    async def _read(self) -> None:
        async with self._connect(self._options) as source:
            listing = await listed(source, self._start)
            begin = seed(self._start, listing.shards)
            if self._options.fail_on_data_loss:
                for shard_id in begin.lost:
                    raise DataLossError(shard_id, str(self._start[shard_id]), "END", "no such shard any more")
                await check_starts(source, self._start)
            self.feed.begin(begin.strands)
            leases = MemoryLeaseStore(begin.rows)
            processor = type("BoundProcessor", (SpoolingProcessor,), {"feed": self.feed, "source": source})
            async with Stream(self._config, processor=processor, clients=Clients(source, leases)) as stream:
                await self._until_stopped(stream, leases)

    async def _until_stopped(self, stream: Stream, leases: LeaseStore) -> None:
        """Wait for ``close``, or for something that Spark must be told."""

        async def watch(call: Callable[[], Awaitable[object]]) -> None:
            try:
                await call()
            except Exception as error:
                self.feed.fail(error)
            self._stopping.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch, stream.wait)
            tasks.start_soon(watch, partial(no_shard_stands, leases))
            await self._stopping.wait()
            tasks.cancel_scope.cancel()


async def no_shard_stands(leases: LeaseStore, *, sleep: Sleep = anyio.sleep) -> None:
    """Look at the lease rows for ever; raises ``ShardStandsError`` for a shard that is no longer read."""
    while True:
        for row in (await leases.scan()).rows:
            halted = row.native.halted
            if why := row.native.fault or (halted and halted.error):
                raise ShardStandsError(row.key, why)
        await sleep(LOOK_S)
