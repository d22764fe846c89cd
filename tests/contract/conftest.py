"""The lease stores under contract, each with a way to look at its items behind its back."""

import importlib
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest
import pytest_asyncio

from actors.clock import SystemClock
from kcl_py.config import Leases, Service
from kcl_py.leases.attributes import decode_item, encode, encode_item
from kcl_py.leases.dynamodb import DynamoLeaseStore
from kcl_py.leases.memory import MemoryLeaseStore
from kcl_py.leases.store import LeaseStore
from kcl_py.leases.wire import WireClient
from kcl_py.local.dynamo.behaviour import Behaviour
from kcl_py.local.dynamo.client import DynamoDBClient
from kcl_py.local.dynamo.model import DynamoDB
from kcl_py.local.dynamodb import LocalDynamoDB
from kcl_py.local.http import Handler
from kcl_py.local.model import Kinesis
from kcl_py.local.server import Server, serve
from tests.contract.moto import MotoDynamoDB

_names = count(1)


@dataclass(frozen=True)
class Bench:
    """A store and its lease table as plain items."""

    store: LeaseStore
    put: Callable[[dict[str, Any]], Awaitable[None]]
    get: Callable[[str], Awaitable[dict[str, Any] | None]]
    put_worker: Callable[[dict[str, Any]], Awaitable[None]]
    get_worker: Callable[[str], Awaitable[dict[str, Any] | None]]


def some_leases() -> Leases:
    """Return settings with tables that no other test uses."""
    number = next(_names)
    return Leases(table=f"app-{number}", workers_table=f"app-{number}-workers", failover_s=60)


@pytest.fixture(scope="session")
def moto() -> Iterator[MotoDynamoDB]:
    """A DynamoDB by moto, loaded once; what its dependencies warn of while they are imported is not about us."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module("moto.moto_server.werkzeug_app")
    dynamodb = MotoDynamoDB()
    dynamodb.load()
    yield dynamodb
    dynamodb.close()


@asynccontextmanager
async def over_http(dynamodb: Handler) -> AsyncIterator[Any]:
    """Yield our own client of a DynamoDB behind our own server."""
    from kcl_py.sessions import Sessions

    clock = SystemClock()
    with pytest.MonkeyPatch.context() as env:
        env.setenv("AWS_ACCESS_KEY_ID", "test")
        env.setenv("AWS_SECRET_ACCESS_KEY", "test")
        env.delenv("AWS_PROFILE", raising=False)
        async with (
            serve(Server(Kinesis(clock), dynamodb, clock=clock)) as url,
            Sessions().client("dynamodb", Service(region="us-east-1", endpoint=url)) as client,
        ):
            yield client


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def dynamo_clients(moto: MotoDynamoDB) -> AsyncIterator[dict[str, Any]]:
    """A client of each DynamoDB that a lease store is held against."""
    clock = SystemClock()
    served = LocalDynamoDB(DynamoDB(Behaviour(clock)))
    async with over_http(served) as remote, over_http(moto) as motos:
        yield {"model": DynamoDBClient(DynamoDB(Behaviour(clock)), clock), "http": remote, "moto": motos}


@pytest.fixture(params=["model", "http", "moto"])
def dynamo_client(request: pytest.FixtureRequest, dynamo_clients: dict[str, Any]) -> Any:
    """A client of one DynamoDB at a time."""
    return dynamo_clients[request.param]


@pytest_asyncio.fixture(params=["memory", "model", "http", "moto"], loop_scope="session")
async def bench(request: pytest.FixtureRequest, dynamo_clients: dict[str, Any]) -> Bench:
    """One store at a time, its tables empty and ready."""
    return _memory() if request.param == "memory" else await dynamo_bench(dynamo_clients[request.param], some_leases())


def _memory() -> Bench:
    store = MemoryLeaseStore()

    async def put(item: dict[str, Any]) -> None:
        store.items[item["leaseKey"]] = item

    async def get(key: str) -> dict[str, Any] | None:
        return _plain(store.items.get(key))

    async def put_worker(item: dict[str, Any]) -> None:
        store.worker_items[item["wid"]] = item

    async def get_worker(worker: str) -> dict[str, Any] | None:
        return _plain(store.worker_items.get(worker))

    return Bench(store, put, get, put_worker, get_worker)


async def dynamo_bench(client: Any, leases: Leases) -> Bench:
    """Return a store on two new tables."""
    store = DynamoLeaseStore(
        client if isinstance(client, DynamoDBClient) else WireClient(client), leases, clock=SystemClock()
    )
    await store.ensure()

    async def put(item: dict[str, Any]) -> None:
        await client.put_item(TableName=leases.table, Item=encode_item(item))

    async def get(key: str) -> dict[str, Any] | None:
        reply = await client.get_item(TableName=leases.table, Key={"leaseKey": encode(key)}, ConsistentRead=True)
        return decode_item(reply["Item"]) if "Item" in reply else None

    async def put_worker(item: dict[str, Any]) -> None:
        await client.put_item(TableName=leases.workers_table, Item=encode_item(item))

    async def get_worker(worker: str) -> dict[str, Any] | None:
        reply = await client.get_item(TableName=leases.workers_table, Key={"wid": encode(worker)}, ConsistentRead=True)
        return decode_item(reply["Item"]) if "Item" in reply else None

    return Bench(store, put, get, put_worker, get_worker)


def _plain(item: Any) -> dict[str, Any] | None:
    return None if item is None else dict(item)
