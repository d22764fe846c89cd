"""How many records a second ``kcl local`` takes and gives, over HTTP on one connection.

The client is a bare socket that sends prepared bodies and decodes nothing, so the server is what is measured.

    python bench/local_server.py [--records 100000] [--size 200] [--rounds 5] [--data] [--url http://127.0.0.1:4566]

With ``--url`` another Kinesis, such as ministack, is measured in the same run, the two in turns, and the ratio printed.
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
from statistics import median
from tempfile import TemporaryDirectory
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
def local(*, keeps: bool = False) -> Iterator[str]:
    """Run a server, with its data in a folder or not; yields its URL."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "kcl_py.local", "--port", "0", *(["--data", folder] if keeps else [])]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            try:
                yield process.stdout.readline().split()[1]
            finally:
                process.terminate()
                process.wait()


def put(connection: Connection, stream: str, *, records: int, size: int) -> float:
    """Return the seconds that putting ``records`` took, 500 a request."""
    entries = [{"Data": b64encode(b"x" * size).decode(), "PartitionKey": f"user-{i}"} for i in range(500)]
    body = json.dumps({"StreamName": stream, "Records": entries}).encode()
    begin = time.perf_counter()
    for _ in range(records // 500):
        connection.send("PutRecords", body)
    return time.perf_counter() - begin


def get(connection: Connection, stream: str, *, records: int, limit: int) -> float:
    """Return the seconds that reading ``records`` took, ``limit`` a request."""
    start = connection.call("GetShardIterator", StreamName=stream, ShardId=SHARD, ShardIteratorType="TRIM_HORIZON")
    iterator, begin = start["ShardIterator"], time.perf_counter()
    for _ in range(records // limit):
        body = json.dumps({"ShardIterator": iterator, "Limit": limit}).encode()
        iterator = _next_iterator(connection.send("GetRecords", body))
    return time.perf_counter() - begin


def _next_iterator(reply: bytes) -> str:
    """Cut the next iterator out of a reply without parsing its records."""
    _, _, rest = reply.rpartition(b'"NextShardIterator"')
    return rest.split(b'"', 2)[1].decode()


def measure(url: str, stream: str, *, records: int, size: int) -> dict[str, float]:
    """Return records a second by what was done, with a stream that is made for it and deleted."""
    connection = Connection(url)
    connection.call("CreateStream", StreamName=stream, ShardCount=1)
    while (
        connection.call("DescribeStreamSummary", StreamName=stream)["StreamDescriptionSummary"]["StreamStatus"]
        != "ACTIVE"
    ):
        pass
    rates = {"PutRecords, 500 a request": records / put(connection, stream, records=records, size=size)}
    for limit in (1_000, 10_000):
        took_s = get(connection, stream, records=records, limit=limit)
        rates[f"GetRecords, {limit:,} a request"] = records / took_s
    connection.call("DeleteStream", StreamName=stream)
    return rates


def main() -> None:
    """Print the medians, and their ratios where two are measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--size", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", action="store_true", help="keep the streams in a folder")
    parser.add_argument("--url", help="another Kinesis to compare with")
    options = parser.parse_args()
    found: dict[str, list[dict[str, float]]] = {}
    with local(keeps=options.data) as url:
        for number in range(options.rounds):
            for name, server in (("kcl local", url), ("other", options.url)):
                if server is not None:
                    rates = measure(server, f"bench-{number}", records=options.records, size=options.size)
                    found.setdefault(name, []).append(rates)
    for what in found["kcl local"][0]:
        rates = {name: median([one[what] for one in rounds]) for name, rounds in found.items()}
        ratio = f", ratio {rates['kcl local'] / rates['other']:.1f}" if options.url else ""
        print(f"{what}: {', '.join(f'{name} {rate:,.0f}' for name, rate in rates.items())} records/s{ratio}")


if __name__ == "__main__":
    main()
