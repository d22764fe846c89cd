"""Faults in the server itself: what hangs ends with it, and what is late comes even if nobody waits any more."""

import json
from random import Random

import anyio
import pytest

from kcl_py.local.dynamo.behaviour import Behaviour
from kcl_py.local.dynamo.model import DynamoDB
from kcl_py.local.dynamodb import LocalDynamoDB
from kcl_py.local.faults.fault import Fault, Kind
from kcl_py.local.faults.faults import Faults
from kcl_py.local.server import Server, serve
from kcl_py.local.subscription import POLL_S
from tests.clocks import PromptClock
from tests.kcl_py.local.world import World

pytestmark = pytest.mark.asyncio


class HeldClock(PromptClock):
    """Long pauses last until ``released``; the short ones between a server's looks are real."""

    def __init__(self) -> None:
        super().__init__()
        self.released = anyio.Event()

    async def sleep(self, delay_s: float) -> None:
        await (anyio.sleep(delay_s / 10) if delay_s <= POLL_S else self.released.wait())


def put_record(url: str) -> bytes:
    body = json.dumps({"StreamName": "s", "PartitionKey": "k", "Data": "eA=="})
    head = "Content-Type: application/x-amz-json-1.1\r\nX-Amz-Target: Kinesis_20131202.PutRecord"
    return f"POST / HTTP/1.1\r\nHost: {url}\r\n{head}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


def a_server(kind: Kind, delay_s: float = 0.0) -> tuple[World, HeldClock, Faults, Server]:
    clock = HeldClock()
    world, faults = World(clock=clock), Faults([Fault(kind=kind, delay_s=delay_s)], random=Random(1))
    tables = LocalDynamoDB(DynamoDB(Behaviour(clock)))
    return world, clock, faults, Server(world.model, tables, clock=clock, faults=faults)


async def asked(url: str, faults: Faults) -> anyio.abc.SocketStream:
    """Send a PutRecord and return the connection once a fault has happened in it."""
    connection = await anyio.connect_tcp("127.0.0.1", int(url.rpartition(":")[2]))
    await connection.send(put_record(url))
    with anyio.fail_after(10):
        while not faults.happened:
            await anyio.lowlevel.checkpoint()
    return connection


async def test_a_call_that_hangs_ends_with_the_server() -> None:
    """Nothing came, and nothing took effect."""
    world, _, faults, server = a_server(Kind.HANG)
    async with serve(server) as url:
        connection = await asked(url, faults)
    async with connection:
        with pytest.raises(anyio.EndOfStream):
            await connection.receive()
    assert world.read() == []


async def test_a_late_request_takes_effect_though_its_caller_has_left() -> None:
    """As one that was under way when its connection closed may on AWS."""
    world, clock, faults, server = a_server(Kind.DELAY, 60)
    async with serve(server) as url:
        async with await asked(url, faults):
            assert world.read() == []
        clock.released.set()
        with anyio.fail_after(10):
            while not world.read():
                await anyio.lowlevel.checkpoint()
    assert [record.data for record in world.read()] == [b"x"]
