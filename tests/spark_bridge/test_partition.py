"""A partition travels to other processes and may be read there twice."""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

from spark_bridge.options import Options
from spark_bridge.reader import KclReader
from tests.spark_bridge.harness import Json, LocalStream, ReaderHarness

READ = """
import pickle, sys
reader, partition = pickle.load(open(sys.argv[1], "rb"))
print(sorted(row["data"] for batch in reader.read(partition) for row in batch.to_pylist()))
"""


def test_partition_is_read_in_a_fresh_process_without_the_spool(stream: LocalStream, tmp_path: Path) -> None:
    """An executor on another machine has neither the folder nor the reader's state."""
    stream.put(9)
    with ReaderHarness(stream.options(maxPartitions="1")) as spark:
        spark.run_until(9)
        log = spark.log
        [partition] = spark.reader.partitions(spark.reader.initialOffset(), _loads(log.ends[-1]))
        sent = tmp_path / "sent"
        sent.write_bytes(pickle.dumps((KclReader(Options.parse(stream.options())), partition)))
    assert os.environ["AWS_SECRET_ACCESS_KEY"].encode() not in sent.read_bytes()
    done = subprocess.run([sys.executable, "-c", READ, sent], capture_output=True, text=True, timeout=50)
    assert done.stdout.splitlines()[-1:] == [repr(sorted(b"%d" % number for number in range(1, 10)))], done.stderr


def test_partition_gives_the_same_when_it_is_read_twice_at_once(stream: LocalStream) -> None:
    """Speculative tasks and retries change nothing outside."""
    stream.put(20)
    with ReaderHarness(stream.options(maxPartitions="1")) as spark:
        spark.run_until(20)
        [partition] = spark.reader.partitions(spark.reader.initialOffset(), _loads(spark.log.ends[-1]))
        one, two = spark.reader.read(partition), spark.reader.read(pickle.loads(pickle.dumps(partition)))
        pairs = list(zip(one, two, strict=True))
        assert pairs
        assert all(first.equals(second) for first, second in pairs)


def test_partitions_are_no_more_than_asked_for(stream: LocalStream) -> None:
    """Fewer, fuller tasks make a shorter batch."""
    stream.put(20)
    with ReaderHarness(stream.options()) as spark:
        spark.run_until(20)
        first, last = spark.reader.initialOffset(), _loads(spark.log.ends[-1])
        assert len(_reader(stream, "1").partitions(first, last)) == 1
        assert len(_reader(stream, "8").partitions(first, last)) == 2


def _reader(stream: LocalStream, partitions: str) -> KclReader:
    return ReaderHarness(stream.options(maxPartitions=partitions)).reader


def _loads(offset: str) -> Json:
    found: Json = json.loads(offset)
    return found
