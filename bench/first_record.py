"""How long a worker takes from the start of its process to its first record, on a fresh lease table.

The stream has 4 shards with records in them; ``kcl local`` is warm. Each run is an application of its own, so its
tables are made on the way. Times are wall seconds.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import boto3  # type: ignore[import-untyped]
from rich.console import Console
from rich.table import Table

KCL = str(Path(sys.executable).with_name("kcl"))
SHARDS = 4
RECORDS = 500
TARGET_S = 2.0
"""Source: what this project promises. The Java client takes 107 to 133 s, the Rust port 71 to 86 s."""
ENV = os.environ | {
    "AWS_ACCESS_KEY_ID": "bench",
    "AWS_SECRET_ACCESS_KEY": "bench",
    "AWS_DEFAULT_REGION": "us-east-1",
    "KCL_LOG__FORMAT": "json",
}
PROCESSOR = """
from kcl_py import RecordProcessor

class Nothing(RecordProcessor):
    async def process_records(self, batch, checkpointer): ...
"""


@contextmanager
def a_stream() -> Iterator[str]:
    """Run ``kcl local`` with a stream that has records; yields its address once DynamoDB is there too."""
    command = [KCL, "local", "--port", "0", "--stream", f"bench:{SHARDS}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().split()[1]
            keys = {"aws_access_key_id": "bench", "aws_secret_access_key": "bench", "region_name": "us-east-1"}
            records = [{"PartitionKey": str(number), "Data": b"x"} for number in range(RECORDS)]
            boto3.client("kinesis", endpoint_url=url, **keys).put_records(StreamName="bench", Records=records)
            boto3.client("dynamodb", endpoint_url=url, **keys).list_tables()
            yield url
        finally:
            server.kill()


def run(folder: Path, url: str, number: int) -> list[float]:
    """Start a worker; return when each shard had its first record, in seconds from the start of the process."""
    env = ENV | {"KCL_APP": f"bench-{number}", "KCL_AWS__ENDPOINT": url}
    began_at = time.time()
    with subprocess.Popen(
        [KCL, "run", "worker.yaml"], cwd=folder, env=env, stderr=subprocess.PIPE, text=True
    ) as worker:
        try:
            assert worker.stderr is not None
            return [at - began_at for at in _first_records(worker.stderr)]
        finally:
            worker.kill()


def _first_records(lines: Any) -> Iterator[float]:
    missing = SHARDS
    for line in lines:
        event = json.loads(line)
        if event["event"] == "kcl_py.shard.first_record":
            yield datetime.fromisoformat(event["timestamp"]).timestamp()
            missing -= 1
        if not missing:
            return


def measure(runs: int) -> list[list[float]]:
    """Return the times of each run, after one that only fills the caches of files."""
    with tempfile.TemporaryDirectory() as name, a_stream() as url:
        folder = Path(name)
        (folder / "worker.yaml").write_text("app: set\nstream: bench\nprocessor: nothing:Nothing\n", encoding="utf-8")
        (folder / "nothing.py").write_text(PROCESSOR, encoding="utf-8")
        return [run(folder, url, number) for number in range(runs + 1)][1:]


def show(results: list[list[float]]) -> None:
    """Print the medians and the worst."""
    table = Table(title=f"seconds from process start, {SHARDS} shards, fresh table, {len(results)} runs")
    for column in ("record", "median", "worst", "target"):
        table.add_column(column, justify="left" if column == "record" else "right")
    for name, times_s in (
        ("first", [times[0] for times in results]),
        ("first of the slowest shard", [times[-1] for times in results]),
    ):
        table.add_row(name, f"{statistics.median(times_s):.2f}", f"{max(times_s):.2f}", f"{TARGET_S:g}")
    Console().print(table)


if __name__ == "__main__":
    show(measure(5))
