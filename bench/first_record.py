"""How long a worker takes from the start of its process to its first record, on a fresh lease table.

Every shard of the stream has records; ``kcl local`` is warm. Each run is an application of its own, so its tables are
made on the way. Times are wall seconds.
"""

import json
import os
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

from bench.figures import Figure, show

KCL = str(Path(sys.executable).with_name("kcl"))
SHARDS = (1, 16, 256)
TARGET_S = 2.0
"""Source: what this project promises of a stream of few shards."""
JAVA = "107 to 133"
"""Source: version 3.1.3 on a fresh table of a local AWS. The Rust port took 71 to 86 s."""
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
def a_stream(shards: int) -> Iterator[str]:
    """Run ``kcl local`` with a stream that has records; yields its address once DynamoDB is there too."""
    command = [KCL, "local", "--port", "0", "--stream", f"bench:{shards}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().split()[1]
            keys = {"aws_access_key_id": "bench", "aws_secret_access_key": "bench", "region_name": "us-east-1"}
            hashes = [str((number << 128) // shards) for number in range(shards)]
            records = [{"PartitionKey": "any", "ExplicitHashKey": place, "Data": b"x"} for place in hashes]
            boto3.client("kinesis", endpoint_url=url, **keys).put_records(StreamName="bench", Records=records)
            boto3.client("dynamodb", endpoint_url=url, **keys).list_tables()
            yield url
        finally:
            server.kill()


def run(folder: Path, url: str, number: int, shards: int) -> list[float]:
    """Start a worker; return when each shard had its first record, in seconds from the start of the process."""
    env = ENV | {"KCL_APP": f"bench-{number}", "KCL_AWS__ENDPOINT": url}
    began_at = time.time()
    with subprocess.Popen(
        [KCL, "run", "worker.yaml"], cwd=folder, env=env, stderr=subprocess.PIPE, text=True
    ) as worker:
        try:
            assert worker.stderr is not None
            return [at - began_at for at in _first_records(worker.stderr, shards)]
        finally:
            worker.kill()


def _first_records(lines: Any, missing: int) -> Iterator[float]:
    for line in lines:
        event = json.loads(line)
        if event["event"] == "kcl_py.shard.first_record":
            yield datetime.fromisoformat(event["timestamp"]).timestamp()
            missing -= 1
        if not missing:
            return


def measure(runs: int, shards: int) -> list[list[float]]:
    """Return the times of each run, after one that only fills the caches of files."""
    with tempfile.TemporaryDirectory() as name, a_stream(shards) as url:
        folder = Path(name)
        (folder / "worker.yaml").write_text("app: set\nstream: bench\nprocessor: nothing:Nothing\n", encoding="utf-8")
        (folder / "nothing.py").write_text(PROCESSOR, encoding="utf-8")
        return [run(folder, url, number, shards) for number in range(runs + 1)][1:]


def figures(runs: int) -> Iterator[Figure]:
    """Measure it for few shards and for many."""
    for shards in SHARDS:
        results = measure(runs, shards)
        yield Figure(
            f"first record, {shards} shard{'s' if shards > 1 else ''}", [times[0] for times in results], TARGET_S, JAVA
        )
        yield Figure("of the slowest shard", [times[-1] for times in results])


if __name__ == "__main__":
    show("from process start, fresh tables", figures(5))
