"""Segments on disk: whole or absent, in Spark's schema, and gone when their run is."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kcl_py.records import Record
from spark_bridge.rows import COLUMNS, SCHEMA, to_arrow
from spark_bridge.spool import Spool, open_segment, segment_path
from tests.spark_bridge.builders import a_segment

ROWS = to_arrow([Record(str(n), b"data %d" % n, "key", 1_700_000_000.123) for n in (1, 2, 3)], stream="s", shard_id="a")
SEGMENT = a_segment("a", 1, 3)


def test_schema_is_what_spark_makes_of_the_columns() -> None:
    """Spark refuses batches that differ in name, order, type or zone."""
    types = {"BINARY": BinaryType, "STRING": StringType, "INT": IntegerType, "TIMESTAMP": TimestampType}
    columns = (column.split() for column in COLUMNS.split(", "))
    spark = StructType([StructField(name, types[kind]()) for name, kind in columns])
    assert to_arrow_schema(spark, timezone="UTC").equals(SCHEMA)


def test_arrival_time_keeps_its_milliseconds() -> None:
    """A float of seconds is rounded to microseconds, not cut."""
    assert ROWS["approximateArrivalTimestamp"][0].value == 1_700_000_000_123_000


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    """The spool of one run."""
    with closing(Spool(str(tmp_path))) as spool:
        yield spool


def test_segment_comes_back_as_it_was_written(spool: Spool) -> None:
    """Where it lies is public: <shard>/<first>-<last>.arrow."""
    spool.write(SEGMENT, ROWS)
    assert segment_path(spool.folder, SEGMENT) == spool.folder / "a" / "1-3.arrow"
    assert open_segment(spool.folder, SEGMENT) == [ROWS]


def test_segment_is_written_when_the_folder_of_the_run_was_cleaned_up(spool: Spool) -> None:
    """A clean-up of temporary files costs a read of Kinesis, not the query."""
    shutil.rmtree(spool.folder)
    spool.write(SEGMENT, ROWS)
    assert open_segment(spool.folder, SEGMENT) == [ROWS]


def test_segment_is_written_when_the_folder_is_cleaned_up_in_that_moment(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its making and the opening of the file, too."""
    make, sweeps = Path.mkdir, iter([True])

    def mkdir(path: Path, *args: Any, **options: Any) -> None:
        make(path, *args, **options)
        if next(sweeps, False):
            shutil.rmtree(path)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    spool.write(SEGMENT, ROWS)
    assert open_segment(spool.folder, SEGMENT) == [ROWS]


def test_segment_is_absent_when_it_was_deleted_cut_or_never_written(spool: Spool) -> None:
    """Whoever does not find it whole reads Kinesis."""
    assert open_segment(spool.folder, SEGMENT) is None
    spool.write(SEGMENT, ROWS)
    path = segment_path(spool.folder, SEGMENT)
    path.write_bytes(path.read_bytes()[:-20])
    assert open_segment(spool.folder, SEGMENT) is None
    spool.write(SEGMENT, ROWS)
    spool.delete([SEGMENT])
    assert open_segment(spool.folder, SEGMENT) is None


def test_segment_can_be_read_on_when_it_is_deleted_meanwhile(spool: Spool) -> None:
    """A task that began is not disturbed by the release of its batch."""
    spool.write(SEGMENT, ROWS)
    batches = open_segment(spool.folder, SEGMENT)
    spool.close()
    assert pa.Table.from_batches(batches or []).to_pylist() == ROWS.to_pylist()


def test_folder_of_a_killed_run_is_swept_by_the_next_and_that_of_a_living_one_is_not(tmp_path: Path) -> None:
    """Crashes do not fill the disk."""
    killed = (
        "import os, sys; from spark_bridge.spool import Spool;print(Spool(sys.argv[1]).folder, flush=True); os._exit(9)"
    )
    done = subprocess.run([sys.executable, "-c", killed, tmp_path], capture_output=True, text=True, timeout=30)
    dead = Path(done.stdout.strip())
    assert dead.exists()
    with closing(Spool(str(tmp_path))) as living:
        assert not dead.exists()
        with closing(Spool(str(tmp_path))):
            assert living.folder.exists()
    assert not list(tmp_path.glob("run-*"))


RECORDS = st.lists(
    st.builds(
        Record,
        sequence_number=st.integers(0, 10**56).map(str),
        data=st.binary(max_size=20),
        partition_key=st.text(min_size=1, max_size=8),
        arrived_s=st.integers(0, 2 * 10**12).map(lambda ms: ms / 1000),
        encryption_type=st.sampled_from([None, "NONE", "KMS"]),
        sub_sequence_number=st.integers(0, 2**31 - 1),
    ),
    max_size=20,
)


@given(RECORDS)
def test_rows_are_the_records(records: list[Record]) -> None:
    """Any text, any bytes, absent values and none at all, against pyarrow's own conversion."""
    rows = to_arrow(records, stream="s", shard_id="a")
    rows.validate(full=True)
    expected = [
        {
            "data": record.data,
            "stream": "s",
            "shardId": "a",
            "partitionKey": record.partition_key,
            "sequenceNumber": record.sequence_number,
            "subSequenceNumber": record.sub_sequence_number,
            "explicitHashKey": None,
            "approximateArrivalTimestamp": round(record.arrived_s * 1_000_000),
            "encryptionType": record.encryption_type,
        }
        for record in records
    ]
    assert rows.equals(pa.RecordBatch.from_pylist(expected, SCHEMA))
