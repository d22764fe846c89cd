"""The bridge in Spark itself: few tests, because each costs seconds; what can be shown without a JVM is elsewhere."""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.spark_bridge.conftest import ROOT
from tests.spark_bridge.harness import LocalStream

pytestmark = pytest.mark.spark
S0 = "shardId-000000000000"


class Seen:
    """What ``foreachBatch`` was given; a batch that comes again replaces itself."""

    def __init__(self) -> None:
        self.batches: dict[int, list[Row]] = {}

    def __call__(self, rows: DataFrame, batch: int) -> None:
        self.batches[batch] = rows.collect()

    def by_shard(self) -> dict[str, list[bytes]]:
        found: dict[str, list[bytes]] = {}
        for batch in sorted(self.batches):
            for row in self.batches[batch]:
                found.setdefault(row.shardId, []).append(bytes(row.data))
        return found

    def __len__(self) -> int:
        return sum(map(len, self.batches.values()))


@contextmanager
def running(
    session: SparkSession, stream: LocalStream, each: Callable[[DataFrame, int], None], folder: Path
) -> Iterator[StreamingQuery]:
    """Run a query while the block is open."""
    rows = session.readStream.format("kcl").options(**stream.options()).load()
    query = rows.writeStream.foreachBatch(each).option("checkpointLocation", str(folder / "checkpoint")).start()
    try:
        yield query
    finally:
        query.stop()


def wait_for(query: StreamingQuery, seen: Seen, rows: int) -> None:
    """Wait until so many rows were seen; a query that fails raises, and the test's timeout is the limit."""
    while len(seen) < rows:
        assert not query.awaitTermination(1)


def test_rows_are_exact_over_a_restart_and_a_split(session: SparkSession, stream: LocalStream, tmp_path: Path) -> None:
    """Every record once and in order; a child's first record comes in a later batch than its parent's last."""
    seen = Seen()
    stream.put(100)
    with running(session, stream, seen, tmp_path) as query:
        wait_for(query, seen, 100)
    stream.put(50)
    stream.split(S0)
    stream.put(100)
    with running(session, stream, seen, tmp_path) as query:
        wait_for(query, seen, 250)
        [lock] = [path.open("rb") for path in stream.spool.glob("run-*/lock")]
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the reader's process has let go of its folder
    assert not list(stream.spool.glob("run-*")), "a stopped query leaves nothing on disk"
    assert seen.by_shard() == stream.put_in
    batches_of: dict[str, set[int]] = {}
    for batch, rows in seen.batches.items():
        for row in rows:
            batches_of.setdefault(row.shardId, set()).add(batch)
    children = [shard_id for shard_id in batches_of if shard_id > "shardId-000000000001"]
    assert len(children) == 2
    assert all(min(batches_of[child]) > max(batches_of[S0]) for child in children)


def test_batch_is_the_same_when_its_spool_is_deleted_between_planning_and_task(
    session: SparkSession, stream: LocalStream, tmp_path: Path
) -> None:
    """The tasks of a planned batch find no segment and read Kinesis: the same rows, byte by byte."""
    again, seen, numbers = Seen(), Seen(), count()

    def twice(rows: DataFrame, batch: int) -> None:
        seen(rows, batch)
        for segments in stream.spool.glob("run-*/shardId-*"):
            segments.rename(tmp_path / f"gone-{next(numbers)}")  # whole: the tree goes on writing
        again(rows, batch)

    stream.put(100)
    with running(session, stream, twice, tmp_path) as query:
        wait_for(query, again, 100)
    assert seen.batches == again.batches
    assert seen.by_shard() == stream.put_in


def test_load_fails_with_the_sentence_when_an_option_is_wrong(session: SparkSession) -> None:
    """Not later, in a log of another process."""
    reader = session.readStream.format("kcl").options(streem="s", maxRowsPerBatch="0")
    with pytest.raises(AnalysisException) as refused:
        reader.load()
    assert "option stream: expected the name or ARN of a stream, found nothing" in str(refused.value)
    assert "did you mean stream?" in str(refused.value)
    assert "option maxRowsPerBatch: expected a whole number of at least 1, found '0'" in str(refused.value)


def test_nothing_is_lost_or_doubled_when_the_driver_is_killed(
    session: SparkSession, stream: LocalStream, tmp_path: Path
) -> None:
    """Driver, JVM and reader die at once in the middle of a batch; the next run goes on from the checkpoint."""
    for _ in range(2):
        stream.put(500)
    with driver(stream, tmp_path, total=10**9) as killed:
        assert killed.stdout is not None
        for line in killed.stdout:
            if int(line) >= 300:
                break
        os.killpg(killed.pid, signal.SIGKILL)
    stream.split(S0)
    stream.put(500)
    with driver(stream, tmp_path, total=1500) as second:
        out, _ = second.communicate()
    assert second.returncode == 0, out
    rows = session.read.parquet(str(tmp_path / "rows")).select("shardId", "data").collect()
    found = sorted((row.shardId, bytes(row.data)) for row in rows)
    assert found == sorted((shard_id, data) for shard_id, put in stream.put_in.items() for data in put)


@contextmanager
def driver(stream: LocalStream, folder: Path, *, total: int) -> Iterator["subprocess.Popen[str]"]:
    """A driver in a process group of its own, which ends with the block."""
    command = [sys.executable, "-m", "tests.spark_bridge.driver", stream.url, str(folder), str(total)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
