"""How many records a second ``kcl local`` takes and gives, over HTTP on one connection.

The client is a bare socket that sends prepared bodies and decodes nothing, so the server is what is measured.

    python bench/local_server.py [--records 100000] [--size 200] [--url http://127.0.0.1:4566]

With ``--url`` another Kinesis, such as ministack, is measured in the same run, and the ratio printed.
"""

import argparse
import http.client
import json
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

SHARD = "shardId-000000000000"


class Connection:
    """One kept-alive connection to the local Kinesis."""

    def __init__(self, url: str) -> None:
        self._http = http.client.HTTPConnection(urlsplit(url).netloc)

    def send(self, operation: str, body: bytes, *, service: str = "Kinesis_20131202") -> bytes:
        """Send a prepared body; return the reply's. Raises RuntimeError unless the status is 200."""
        headers = {"X-Amz-Target": f"{service}.{operation}", "Content-Type": "application/x-amz-json-1.1"}
        self._http.request("POST", "/", body, headers)
        reply = self._http.getresponse()
        content = reply.read()
        if reply.status != 200:
            raise RuntimeError(f"{operation}: {reply.status} {content[:200]!r}")
        return content

    def call(self, operation: str, **params: Any) -> dict[str, Any]:
        """Send a request and read its reply."""
        answer: dict[str, Any] = json.loads(self.send(operation, json.dumps(params).encode()) or b"{}")
        return answer


@contextmanager
def local() -> Iterator[str]:
    """Run a server with a stream ``bench`` of one shard; yields its URL."""
    command = [sys.executable, "-m", "kcl_py.local", "--port", "0", "--stream", "bench:1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[1]
        finally:
            process.terminate()


def put(connection: Connection, *, records: int, size: int) -> float:
    """Return the seconds that putting ``records`` took, 500 a request."""
    entries = [{"Data": b64encode(b"x" * size).decode(), "PartitionKey": f"user-{i}"} for i in range(500)]
    body = json.dumps({"StreamName": "bench", "Records": entries}).encode()
    begin = time.perf_counter()
    for _ in range(records // 500):
        connection.send("PutRecords", body)
    return time.perf_counter() - begin


def get(connection: Connection, *, records: int, limit: int) -> float:
    """Return the seconds that reading ``records`` took, ``limit`` a request."""
    start = connection.call("GetShardIterator", StreamName="bench", ShardId=SHARD, ShardIteratorType="TRIM_HORIZON")
    iterator, begin = start["ShardIterator"], time.perf_counter()
    for _ in range(records // limit):
        body = json.dumps({"ShardIterator": iterator, "Limit": limit}).encode()
        iterator = _next_iterator(connection.send("GetRecords", body))
    return time.perf_counter() - begin


def _next_iterator(reply: bytes) -> str:
    """Cut the next iterator out of a reply without parsing its records."""
    _, _, rest = reply.rpartition(b'"NextShardIterator"')
    return rest.split(b'"', 2)[1].decode()


def measure(url: str, *, records: int, size: int) -> dict[str, float]:
    """Return records a second by what was done."""
    connection = Connection(url)
    rates = {"PutRecords, 500 a request": records / put(connection, records=records, size=size)}
    for limit in (1_000, 10_000):
        rates[f"GetRecords, {limit:,} a request"] = records / get(connection, records=records, limit=limit)
    return rates


def main() -> None:
    """Print the three figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--size", type=int, default=200)
    parser.add_argument("--url", help="another Kinesis to compare with")
    options = parser.parse_args()
    with local() as url:
        ours = measure(url, records=options.records, size=options.size)
    theirs: dict[str, float] = {}
    if options.url is not None:
        Connection(options.url).call("CreateStream", StreamName="bench", ShardCount=1)
        theirs = measure(options.url, records=options.records, size=options.size)
    for what, rate in ours.items():
        beside = f"; other {theirs[what]:,.0f}, ratio {rate / theirs[what]:.1f}" if theirs else ""
        print(f"{what}: {rate:,.0f} records/s{beside}")


if __name__ == "__main__":
    main()
