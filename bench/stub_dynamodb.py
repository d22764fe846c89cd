"""A DynamoDB endpoint so cheap that the client is the slower side: each operation has one prepared reply.

It checks nothing. A scan is answered with one page of ``--rows`` lease rows, whatever it asks for. Prints ``ready URL``
when it listens.
"""

import argparse
import asyncio
import json
from collections.abc import Mapping

from bench.stub_server import HEAD
from kcl_py.leases.attributes import encode_item
from kcl_py.leases.items import item_from_row
from kcl_py.leases.row import LeaseRow, Native


def a_row(number: int) -> LeaseRow:
    """Return a row with all that a held one has."""
    owner = "ip-10-1-2-3.eu-west-1.compute.internal-4711/0123abcd"
    native = Native(
        token=f"{number:032x}",
        owner=owner,
        taken_ms=1_764_000_000_000,
        why="balance",
        stream="orders:1764000000",
        start_ms=1_764_000_000_000,
        lag_ms=12,
        lag_at_ms=1_764_000_000_000,
    )
    return LeaseRow(
        f"shardId-{number:012d}",
        counter=4711 + number,
        owner=owner,
        checkpoint="4" * 56,
        parents=(f"shardId-{number // 2:012d}",),
        hash_range=(number, 2**128 - 1),
        throughput_kbps=123.4,
        native=native,
    )


async def serve(replies: Mapping[str, bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one connection until it is closed."""
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
            await reader.readexactly(int(fields["content-length"]))
            body = replies[fields["x-amz-target"].rpartition(".")[2]]
            writer.writelines((HEAD % len(body), body))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, required=True)
    items = [encode_item(item_from_row(a_row(number))) for number in range(parser.parse_args().rows)]
    found = {"updateitem": {"Attributes": items[0]}, "getitem": {"Item": items[0]}, "scan": {"Items": items}}
    replies = {name: json.dumps(reply).encode() for name, reply in found.items()}
    server = await asyncio.start_server(lambda r, w: serve(replies, r, w), "127.0.0.1", 0)
    print(f"ready http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
