"""The reader, called as Spark calls it: every record once and in order, over restarts, splits and a lost spool."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from kcl_py.errors import ConfigError
from spark_bridge.offsets import Offset
from spark_bridge.refetch import DataLossError
from tests.spark_bridge.harness import LocalStream, ReaderHarness, SparkLog, by_shard

S0, S1, S2, S3 = (f"shardId-{index:012}" for index in range(4))


def test_rows_are_what_was_put_once_and_in_order(stream: LocalStream) -> None:
    """The main job, over several batches with a limit."""
    stream.put(60)
    with ReaderHarness(stream.options(maxRowsPerBatch="25")) as spark:
        table = spark.run_until(60)
    assert by_shard(table) == stream.put_in
    assert max(batch.num_rows for batch in spark.tables) <= 25


def test_rows_carry_all_columns(stream: LocalStream) -> None:
    """Each published column holds what Kinesis said."""
    stream.put(1)
    with ReaderHarness(stream.options()) as spark:
        [row] = spark.run_until(1).to_pylist()
    [shard_id] = stream.put_in
    [record] = stream.world.read(shard_id)
    assert row == {
        "data": b"1",
        "stream": "s",
        "shardId": shard_id,
        "partitionKey": "1",
        "sequenceNumber": record.sequence_number,
        "subSequenceNumber": 0,
        "explicitHashKey": None,
        "approximateArrivalTimestamp": record.arrival_time,
        "encryptionType": record.encryption_type,
    }


def test_batch_is_the_same_when_its_spool_is_deleted_between_planning_and_task(stream: LocalStream) -> None:
    """The spool is a cache: Kinesis gives the same bytes."""
    stream.put(40)
    with ReaderHarness(stream.options(maxRowsPerBatch="10")) as spark:
        while not spark.plan() or not spark.partitions():
            spark.log.done = len(spark.log.ends)
        partitions = spark.partitions()
        spooled = [spark.read(partition) for partition in partitions]
        spool = Path(partitions[0].folder or "")
        spool.rename(spool.with_name("gone"))  # all of it at once: the tree goes on writing
        again = [spark.read(partition) for partition in partitions]
    assert sum(table.num_rows for table in spooled) > 0
    assert [table.to_pylist() for table in again] == [table.to_pylist() for table in spooled]


def test_batch_is_the_same_when_another_process_plans_it_again(stream: LocalStream) -> None:
    """After a crash Spark asks for the logged batch first: no tree, no spool, the same rows."""
    stream.put(30)
    with ReaderHarness(stream.options()) as spark:
        spark.run_until(30)
        log, first = spark.log, [sorted_rows(table) for table in spark.tables]
    stream.put(10)
    for batch in range(len(log.ends)):
        replayed = SparkLog()
        replayed.ends, replayed.done = log.ends[: batch + 1], batch
        with ReaderHarness(stream.options(), replayed) as spark:
            assert sorted_rows(spark.resume()) == first[batch]


def test_query_goes_on_exactly_where_it_was_when_it_is_ended_at_any_batch(stream: LocalStream) -> None:
    """Restarts lose and double nothing, whether the batch under way had run or not."""
    log, rows = SparkLog(), []
    for round_number in range(6):
        stream.put(10)
        with ReaderHarness(stream.options(maxRowsPerBatch="7"), log) as spark:
            spark.resume()
            spark.run_until(5)
            if round_number % 2:
                spark.plan()
            rows += spark.tables
    with ReaderHarness(stream.options(), log) as spark:
        spark.resume()
        spark.run_until(60 - sum(table.num_rows for table in rows))
        rows += spark.tables
    assert by_shard(pa.concat_tables(rows)) == stream.put_in


def test_children_come_in_a_later_batch_than_their_parents_last_record(stream: LocalStream) -> None:
    """A key's order holds over a split, and the parent leaves the offset after its children are in it."""
    stream.put(20)
    stream.split(S0)
    stream.put(40)
    with ReaderHarness(stream.options()) as spark:
        table = spark.run_until(60)
        offsets = [Offset.parse(json.loads(end)) for end in spark.log.ends]
    assert by_shard(table) == stream.put_in
    parent_ends = next(index for index, offset in enumerate(offsets) if offset[S0].has_ended)
    for index, batch in enumerate(spark.tables):
        shards = set(batch["shardId"].to_pylist())
        assert not shards & {S2, S3} or index > parent_ends
    stream.put(1)
    with ReaderHarness(stream.options(), spark.log) as spark:
        spark.run_until(1)
    assert S0 not in spark.log.ends[-1]


def test_query_that_begins_at_latest_reads_only_what_comes_after(stream: LocalStream) -> None:
    """Records that were there are not delivered."""
    stream.put(10)
    stream.world.clock.now_s += 10
    with ReaderHarness(stream.options(start="latest")) as spark:
        before, stream.put_in = stream.put_in, {}
        assert spark.reader.initialOffset() == spark.reader.initialOffset()
        stream.put(10)
        table = spark.run_until(10)
    assert by_shard(table) == stream.put_in
    assert before


def test_latest_stays_where_it_was_resolved_when_the_first_batch_crashes(stream: LocalStream) -> None:
    """What comes after the query began is delivered, even if its driver dies before the first batch is done."""
    with ReaderHarness(stream.options(start="latest")) as spark:
        assert spark.plan()
    stream.put(10)
    stream.world.clock.now_s += 600
    with ReaderHarness(stream.options(start="latest"), spark.log) as spark:
        spark.resume()
        assert by_shard(spark.run_until(10)) == stream.put_in


def test_query_that_begins_at_a_time_reads_what_arrived_since(stream: LocalStream) -> None:
    """A shard without records keeps the instant in the offset until it has some."""
    stream.put(5)
    stream.put_in.clear()
    stream.world.clock.now_s += 60
    with ReaderHarness(stream.options(start="2023-11-14T22:13:50Z")) as spark:
        spark.trigger()
        assert set(json.loads(spark.log.ends[0])["s"].values()) == {"@1700000030000"}
    stream.put(5)
    with ReaderHarness(stream.options(start="2023-11-14T22:13:50Z"), spark.log) as spark:
        assert by_shard(spark.run_until(5)) == stream.put_in


def test_start_is_refused_when_it_lies_in_the_future(stream: LocalStream) -> None:
    """Nobody knows where that will be."""
    with (
        ReaderHarness(stream.options(start="2123-01-01T00:00:00Z")) as spark,
        pytest.raises(Exception, match="option start: expected a time that has passed"),
    ):
        spark.reader.initialOffset()


def test_query_is_refused_when_its_trigger_asks_for_everything(stream: LocalStream) -> None:
    """Spark would plan such a query from the first offset again, whatever its checkpoint says."""
    with (
        ReaderHarness(stream.options()) as spark,
        pytest.raises(ConfigError, match="trigger: expected processingTime or none, found once or availableNow"),
    ):
        spark.reader.latestOffset(spark.reader.initialOffset(), ReadAllAvailable())


def test_reading_stops_at_the_buffer_limit_and_goes_on_without_any_commit(stream: LocalStream) -> None:
    """Room comes back when the next batch begins: Spark commits late or never."""
    limit = 20_000
    stream.put(60, size_bytes=2000)
    with ReaderHarness(stream.options(maxBufferedBytes=str(limit), maxRowsPerBatch="4")) as spark:
        sizes = []
        while sum(table.num_rows for table in spark.tables) < 60:
            spark.trigger()
            sizes.append(stream.spooled_bytes())
    assert by_shard(pa.concat_tables(spark.tables)) == stream.put_in
    assert max(sizes) < 2 * limit


def test_spool_is_gone_when_the_query_has_stopped(stream: LocalStream) -> None:
    """Nothing is left on the driver's disk."""
    stream.put(5)
    with ReaderHarness(stream.options()) as spark:
        spark.run_until(5)
        assert stream.spooled_bytes() > 0
    assert not list(stream.spool.glob("run-*"))


def test_query_ends_when_a_shard_it_was_reading_is_no_longer_there(stream: LocalStream) -> None:
    """Records that aged out while the query was down are not passed over silently."""
    log = SparkLog()
    log.ends, log.done = [json.dumps({"v": 1, "s": {S0: "@0", "shardId-000000000099": "12345"}})], 1
    with ReaderHarness(stream.options(), log) as spark, pytest.raises(DataLossError, match="shardId-000000000099"):
        spark.run_until(1)


def test_query_goes_on_without_a_lost_shard_when_data_loss_is_allowed(stream: LocalStream) -> None:
    """The lost shard ends, the others are read."""
    log = SparkLog()
    log.ends, log.done = [json.dumps({"v": 1, "s": {S0: "@0", S1: "@0", "shardId-000000000099": "12345"}})], 1
    stream.put(10)
    with ReaderHarness(stream.options(failOnDataLoss="false"), log) as spark:
        assert by_shard(spark.run_until(10)) == stream.put_in
    assert json.loads(log.ends[-1])["s"]["shardId-000000000099"] == "END"


def sorted_rows(table: pa.Table | None) -> list[dict[str, object]]:
    """Rows in order of shards; how shards are packed into tasks is no part of the promise."""
    assert table is not None
    return sorted(table.to_pylist(), key=lambda row: str(row["shardId"]))
