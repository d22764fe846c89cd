"""What Spark calls to read the stream, in the order and the processes in which Spark calls it.

One instance lives in the query's reader process, beside the driver: it plans, and runs the tree from the first
``latestOffset`` on. Copies of another instance run ``read`` in executors and see nothing of the first. Offsets come
and go as JSON. ``commit`` comes a batch late or never, so a batch is finished once ``latestOffset`` begins behind it.
"""

import asyncio
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, get_args

import pyarrow as pa
import structlog
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows

from kcl_py.errors import ConfigError
from kcl_py.log import Level
from kcl_py.log import configure as configure_log
from kcl_py.sources.source import PositionKind
from spark_bridge.kinesis import Connect, connect, resolve_start
from spark_bridge.offsets import Offset, check_forward
from spark_bridge.options import Options
from spark_bridge.partition import KclPartition, read_partition
from spark_bridge.plan import pack, plan_ranges

if TYPE_CHECKING:
    from spark_bridge.tree import Tree

NEWS_S = 0.3
"""How long ``latestOffset`` waits for something new: Spark asks again at once, 80 times a second if it were not."""
LOG_LEVEL = "KCL_LOG__LEVEL"
"""Environment variable of the driver: from which level on the tree's events are logged; warning by default."""


class KclReader(DataSourceStreamReader):
    """Reads one stream for one query.

    Args:
        options: as checked at ``load()``.
        connect: opens the stream; a function that pickles.
    """

    def __init__(self, options: Options, connect: Connect = connect) -> None:
        self._options, self._connect = options, connect
        self._first: Offset | None = None
        self._pin: Offset | None = None
        self._at = Offset()
        self._tree: Tree | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Resolve the start, once: Spark asks twice, and ``latest`` would not be the same place twice."""
        if self._first is None:
            _own_process()
            self._first = asyncio.run(self._resolve())
            if self._options.start.kind is PositionKind.LATEST:
                self._pin = self._first
        return self._first.to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._options.max_rows_per_batch)

    def latestOffset(self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None) -> dict[str, Any]:
        """Return the end of the next batch; everything up to ``start`` is finished.

        Waits a moment if there is nothing new, and never calls AWS. Raises what ended the tree, which ends the query.
        The first batch of a query that begins at ``latest`` is empty: only ends of batches are in Spark's log, so that
        is how the instant gets there before any record depends on it.

        Raises:
            ConfigError: the trigger asks for everything at once.
        """
        if not isinstance(limit, ReadMaxRows):
            raise ConfigError(
                "trigger: expected processingTime or none, found once or availableNow; "
                "the format 'kcl' cannot tell yet where such a query ends"
            )
        self._at = Offset.parse(self.initialOffset() if start is None else start)
        feed = self._running(self._at).feed
        feed.release(self._at)
        if self._at == self._pin:
            self._pin = None
            return self._at.to_json()
        end = feed.wait_for_end(self._at, max_rows=limit.max_rows, timeout_s=NEWS_S)
        check_forward(self._at, end)
        return end.to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Return how far the spool reaches: what ``query.lastProgress`` shows as the latest offset."""
        return None if self._tree is None else self._tree.feed.tip(self._at).to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return one partition for each task of the batch.

        After a restart this comes first, for the batch that was under way: then nothing is spooled, and the tasks read
        Kinesis.
        """
        first, last = Offset.parse(start), Offset.parse(end)
        if self._tree is None:
            ranges, folder = plan_ranges(first, last, {}), None
        else:
            ranges, folder = self._tree.feed.ranges(first, last), str(self._tree.spool.folder)
        return [KclPartition(group, folder) for group in pack(ranges, most=self._options.max_partitions)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one partition. Called in executors, on a copy of a reader that never did anything else."""
        if not isinstance(partition, KclPartition):
            raise TypeError(f"cannot read {type(partition).__name__}: expected a KclPartition")
        return read_partition(partition, self._options, self._connect)

    def stop(self) -> None:
        """Stop the tree and remove the spool; idempotent."""
        if self._tree is not None:
            self._tree.close()
            self._tree = None

    def _running(self, start: Offset) -> "Tree":
        from spark_bridge.tree import Tree  # executors need none of what it loads

        if self._tree is None:
            _own_process()
            self._tree = Tree(self._options, start, self._connect)
        return self._tree

    async def _resolve(self) -> Offset:
        async with self._connect(self._options) as source:
            return await resolve_start(source, self._options.start)


def _own_process() -> None:
    """Set up what belongs to a whole process: Spark gave this one to the reader, and nobody else does it."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _exit)
    if not structlog.is_configured():
        asked = os.environ.get(LOG_LEVEL)
        level: Level = next((level for level in get_args(Level) if level == asked), "warning")
        configure_log(level, "auto")


def _exit(number: int, frame: FrameType | None) -> None:
    """End the process in order: Spark stops a reader by SIGTERM (two of them), which alone would skip ``stop``."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(128 + number)
