"""Processors written for amazon_kclpy, unmodified, under ``kcl run``: they see what Amazon's own daemon showed them.

The expected output is that of kclpy-ext 3.1.3.post4, whose daemon ran the same files once on the same records.
"""

import json
import shutil
import signal
from contextlib import closing
from pathlib import Path

import pytest

from tests.kcl_py.compat.output import comparable
from tests.kcl_py.local.world import boto
from tests.processes.process import KCL, Process, clean_env

SAMPLES = Path(__file__).parents[1] / "kcl_py" / "compat" / "samples"
LOST = "Checkpointing is not allowed when the lease is lost"
"""What amazon_kclpy says in the place of an exception's name when a lease is lost; ours is that name, as elsewhere."""


@pytest.mark.parametrize(("version", "executor"), [("v3", None), ("v2", None), ("v3", "process")])
def test_sample_sees_under_kcl_run_what_it_saw_under_its_daemon(
    url: str, tmp_path: Path, version: str, executor: str | None
) -> None:
    """Records and their attributes, accepted checkpoints, errors for mistakes, and the end of a shard and a worker."""
    app = f"sample-{version}-{executor}"
    shutil.copy(SAMPLES / f"sample_{version}.py", tmp_path / "sample.py")
    text = (
        f"app: {app}\nstream: {app}\nprocessor: sample:RecordProcessor\naws: {{region: us-east-1, endpoint: '{url}'}}\n"
    )
    batches = "{batch: {max_records: 3}" + (f", executor: {executor}" if executor else "") + "}"
    (tmp_path / "worker.yaml").write_text(f"{text}delivery: {batches}\n", encoding="utf-8")
    output = tmp_path / "output"
    env = clean_env(AWS_ACCESS_KEY_ID="any", AWS_SECRET_ACCESS_KEY="any", SAMPLE_OUTPUT=str(output))
    with boto("kinesis", url) as kinesis:
        kinesis.create_stream(StreamName=app, ShardCount=1)
        kinesis.get_waiter("stream_exists").wait(StreamName=app, WaiterConfig={"Delay": 1})
        for number in range(7):
            put(kinesis, app, number, f"key-{number % 2}")
        kinesis.split_shard(StreamName=app, ShardToSplit="shardId-000000000000", NewStartingHashKey=str(2**127))
        with closing(Process(KCL, "run", "worker.yaml", cwd=tmp_path, env=env)) as worker:
            worker.until_logged("shard.started", 3)
            put(kinesis, app, 7, "key-7", ExplicitHashKey="0")
            put(kinesis, app, 8, "key-8", ExplicitHashKey=str(2**128 - 1))
            worker.until_logged("shard.first_record", 3)
            worker.send(signal.SIGTERM)
            assert worker.wait() == 0
    expected = json.loads((SAMPLES / f"expected_{version}.json").read_text("utf-8").replace(LOST, "ShutdownException"))
    assert comparable(output.read_text("utf-8")) == expected


def put(kinesis: object, stream: str, number: int, key: str, **more: str) -> None:
    kinesis.put_record(  # type: ignore[attr-defined]
        StreamName=stream, PartitionKey=key, Data=b"\x00\xff record %d" % number, **more
    )
