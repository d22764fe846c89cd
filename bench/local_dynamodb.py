"""How many conditional writes a second ``kcl local`` takes, over HTTP.

The clients are bare sockets that send prepared bodies and decode nothing, so the server, which has one core, is what is
measured. Each write is like a heartbeat of the lease protocol: three conditions beside the key's, three changes, and
the whole row comes back.

    python -m bench.local_dynamodb [--writes 10000] [--connections 4] [--rounds 5] [--data]
"""

import argparse
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any
from urllib.parse import urlsplit

from bench.local_server import Connection, local
from kcl_py.leases import expressions
from kcl_py.leases.attributes import encode_item
from kcl_py.leases.items import item_from_row
from kcl_py.leases.row import LeaseRow, Native
from kcl_py.leases.store import Is, Write

TABLE, SERVICE = "bench", "DynamoDB_20120810"
_NAMED = json.dumps({"TableName": TABLE}).encode()


def send(url: str, operation: str, params: dict[str, Any]) -> None:
    """Send one request. Raises RuntimeError unless it is answered well."""
    Connection(url).send(operation, json.dumps(params).encode(), service=SERVICE)


def heartbeat(key: str, counter: int) -> dict[str, Any]:
    """Return a conditional write that raises the counter of a row."""
    tests = (Is(("leaseCounter",), counter), Is(("leaseOwner",), "w/1"), Is(("native", "token"), "t"))
    changes = {("leaseCounter",): counter + 1, ("checkpoint",): str(counter), ("native", "lag_ms"): counter}
    write = Write("heartbeat", key, tests=tests, set=changes)
    return {
        "TableName": TABLE,
        "Key": {"leaseKey": {"S": key}},
        **expressions.update(write),
        "ReturnValues": "ALL_NEW",
    }


def raw(url: str, params: dict[str, Any]) -> bytes:
    """Return a request as it travels."""
    body = json.dumps(params).encode()
    head = (
        f"POST / HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\nContent-Type: application/x-amz-json-1.0\r\n"
        f"X-Amz-Target: DynamoDB_20120810.UpdateItem\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def write_all(url: str, requests: list[bytes]) -> None:
    """Send requests one after the other. Raises RuntimeError if one is refused."""
    parts = urlsplit(url)
    with socket.create_connection((str(parts.hostname), int(parts.port or 80))) as connection:
        for request in requests:
            connection.sendall(request)
            reply = connection.recv(65536)
            while b"\r\n\r\n" not in reply:
                reply += connection.recv(65536)
            if not reply.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(repr(reply[:300]))


def measure(url: str, *, writes: int, connections: int) -> float:
    """Return writes a second, on as many rows as there are connections."""
    each, keys = writes // connections, [f"shardId-{number:012d}" for number in range(connections)]
    for key in keys:
        row = LeaseRow(key, counter=0, owner="w/1", checkpoint="0", native=Native(token="t", owner="w/1"))
        send(url, "PutItem", {"TableName": TABLE, "Item": encode_item(item_from_row(row))})
    requests = [[raw(url, heartbeat(key, counter)) for counter in range(each)] for key in keys]
    begin = time.perf_counter()
    with ThreadPoolExecutor(connections) as pool:
        list(pool.map(lambda sent: write_all(url, sent), requests))
    return each * connections / (time.perf_counter() - begin)


def main() -> None:
    """Print the median."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writes", type=int, default=10_000)
    parser.add_argument("--connections", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", action="store_true", help="keep the table in a folder")
    options = parser.parse_args()
    with local(keeps=options.data) as url:
        send(url, "CreateTable", _table())
        while b'"CREATING"' in Connection(url).send("DescribeTable", _NAMED, service=SERVICE):
            pass
        rates = [measure(url, writes=options.writes, connections=options.connections) for _ in range(options.rounds)]
    print(f"conditional UpdateItem, {options.connections} connections: {median(rates):,.0f} writes/s")


def _table() -> dict[str, Any]:
    return {
        "TableName": TABLE,
        "KeySchema": [{"AttributeName": "leaseKey", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "leaseKey", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    }


if __name__ == "__main__":
    main()
