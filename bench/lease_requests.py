"""What the frequent requests about leases cost the worker, in CPU, beside the same through botocore.

Both ways take turns on one client against one stub server on the same machine; the table shows medians of the rounds,
and the ratio of each round's two. Reading the rows of a reply is part of it. ``connection`` is what aiohttp alone takes
for a request and a reply of a heartbeat's size. Nothing is asserted.

    python -m bench.lease_requests [--calls 300] [--rows 1000] [--rounds 7]
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from botocore.awsrequest import AWSPreparedRequest
from rich.console import Console
from rich.table import Table

from bench.local_dynamodb import heartbeat
from bench.run import SECRETS
from bench.stub_dynamodb import a_row
from kcl_py.config import Service
from kcl_py.leases.attributes import decode_item, encode
from kcl_py.leases.items import row_from_item, scan_from_items
from kcl_py.leases.wire import WireClient
from kcl_py.leases.wire_rows import row_from_wire, scan_from_wire
from kcl_py.sessions import Sessions

Call = Callable[[], Awaitable[object]]
KEY = a_row(0).key
_PAGE = "page of a scan, each row"


@contextmanager
def a_stub(rows: int) -> Iterator[str]:
    """Run the stub server; yields its address."""
    command = [sys.executable, "-m", "bench.stub_dynamodb", f"--rows={rows}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().removeprefix("ready ").strip()
        finally:
            server.kill()


def through_botocore(client: Any) -> dict[str, Call]:
    """Return each request, its reply parsed by botocore and read in Python."""

    async def update() -> object:
        return row_from_item(decode_item((await client.update_item(**heartbeat(KEY, 1)))["Attributes"]))

    async def read() -> object:
        reply = await client.get_item(TableName="bench", Key={"leaseKey": encode(KEY)}, ConsistentRead=True)
        return row_from_item(decode_item(reply["Item"]))

    async def scan() -> object:
        page = await client.scan(TableName="bench", ConsistentRead=False)
        return scan_from_items(map(decode_item, page["Items"]))

    return {"heartbeat (UpdateItem)": update, "read (GetItem)": read, _PAGE: scan}


def as_a_worker(client: Any) -> dict[str, Call]:
    """Return each request as a worker's lease store makes it."""
    wired = WireClient(client)

    async def update() -> object:
        return row_from_wire((await wired.update_item(**heartbeat(KEY, 1)))["Attributes"])

    async def read() -> object:
        reply = await wired.get_item(TableName="bench", Key={"leaseKey": encode(KEY)}, ConsistentRead=True)
        return row_from_wire(reply["Item"])

    async def scan() -> object:
        return scan_from_wire((await wired.scan(TableName="bench", ConsistentRead=False))["Items"])

    return {"heartbeat (UpdateItem)": update, "read (GetItem)": read, _PAGE: scan}


async def cpu_us(call: Call, calls: int) -> float:
    """Return this process's CPU for one call, in microseconds."""
    await call()
    begin = time.process_time()
    for _ in range(calls):
        await call()
    return (time.process_time() - begin) / calls * 1e6


async def measure(options: argparse.Namespace, url: str) -> None:
    """Measure all in turns and print the table."""
    table = Table(title=f"CPU us, medians of {options.rounds} rounds")
    for column in ("request", "botocore", "worker", "botocore ÷ worker"):
        table.add_column(column, justify="left" if column == "request" else "right")
    async with Sessions().client("dynamodb", Service(region="us-east-1", endpoint=url)) as client:
        ways = through_botocore(client), as_a_worker(client)
        for name in ways[0]:
            calls, of = (options.calls // 50 or 1, options.rows) if name == _PAGE else (options.calls, 1)
            rounds = [[await cpu_us(way[name], calls) / of for way in ways] for _ in range(options.rounds)]
            plain, ours = map(statistics.median, zip(*rounds, strict=True))
            ratio = statistics.median(one / other for one, other in rounds)
            table.add_row(name, f"{plain:.1f}", f"{ours:.1f}", f"{ratio:.1f}")
        bare = [await cpu_us(_connection(client, url), options.calls) for _ in range(options.rounds)]
        table.add_row("connection", "", f"{statistics.median(bare):.1f}", "")
    Console().print(table)


def _connection(client: Any, url: str) -> Call:
    headers: Any = {
        "content-type": "application/x-amz-json-1.0",
        "x-amz-target": "DynamoDB_20120810.UpdateItem",
        "x": "y" * 300,
    }

    async def call() -> object:
        request = AWSPreparedRequest("POST", f"{url}/", headers, b"x" * 900, stream_output=False)
        return await (await client._endpoint.http_session.send(request)).content

    return call


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("calls", 300), ("rows", 1000), ("rounds", 7)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    os.environ.update(SECRETS)
    with a_stub(options.rows) as url:
        asyncio.run(measure(options, url))


if __name__ == "__main__":
    main()
