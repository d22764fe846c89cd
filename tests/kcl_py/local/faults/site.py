"""The two places where a fault can strike: around the clients in memory, and in the server that real clients speak to.

Both have stream ``s`` with one shard, table ``leases`` with key ``id``, and S3 (over HTTP only) bucket ``bucket``.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

import aioboto3
import anyio
from aiobotocore.config import AioConfig
from anyio.lowlevel import checkpoint

from kcl_py.aws import request
from kcl_py.errors import RequestError
from kcl_py.local.client import KinesisClient
from kcl_py.local.dynamo.behaviour import Behaviour
from kcl_py.local.dynamo.client import DynamoDBClient
from kcl_py.local.dynamo.model import DynamoDB
from kcl_py.local.dynamodb import LocalDynamoDB
from kcl_py.local.faults.client import FaultyClient
from kcl_py.local.faults.fault import Fault, Kind
from kcl_py.local.faults.faults import Faults
from kcl_py.local.server import Server, serve
from kcl_py.local.subscription import POLL_S
from tests.clocks import PromptClock
from tests.kcl_py.local.world import World

DEADLINE_S = 20.0
LOOKS = 100
"""How often the loop goes round before a call is believed to hang."""
TABLE = {
    "TableName": "leases",
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}


@dataclass
class Site:
    """Clients that meet ``faults``, and the models behind them, which do not."""

    faults: Faults
    world: World
    tables: DynamoDB
    clients: dict[str, Any]

    async def call(self, operation: str, params: dict[str, Any]) -> Any:
        """Make a call as kcl_py does: what is raised is one of our errors."""
        service, method = operation.split(".")
        with request(method, "target", deadline_s=DEADLINE_S):
            return await getattr(self.clients[service], method)(**params)

    async def ending(self, operation: str, params: dict[str, Any]) -> str:
        """Return what a call ends in, as ``ending_of`` says it."""
        return await ending_of(lambda: self.call(operation, params), self.faults)

    def records(self) -> list[bytes]:
        return [bytes(record.data) for record in self.world.read()]

    def ids(self) -> list[str]:
        items = self.tables.call("Scan", {"TableName": "leases", "ConsistentRead": True})["Items"]
        return sorted(item["id"]["S"] for item in items)


@asynccontextmanager
async def in_memory(*faults: Fault) -> AsyncIterator[Site]:
    """Yield the clients of the models, with faults around them."""
    world, drawn = World(), Faults(faults, random=Random(3))
    tables = DynamoDB(Behaviour(world.clock))
    tables.call("CreateTable", dict(TABLE))
    clients = {
        "kinesis": FaultyClient(KinesisClient(world.model, world.clock), "kinesis", drawn, clock=world.clock),
        "dynamodb": FaultyClient(DynamoDBClient(tables, world.clock), "dynamodb", drawn, clock=world.clock),
    }
    async with clients["kinesis"], clients["dynamodb"]:
        yield Site(drawn, world, tables, clients)


class ServedClock(PromptClock):
    """Long pauses take no time; the short ones between a server's looks are real, so that it does not spin."""

    async def sleep(self, delay_s: float) -> None:
        await (anyio.sleep(delay_s / 10) if delay_s <= POLL_S else super().sleep(delay_s))


@asynccontextmanager
async def over_http(*faults: Fault) -> AsyncIterator[Site]:
    """Yield aioboto3's clients, which repeat nothing, of a server in which faults happen."""
    world, drawn = World(clock=ServedClock()), Faults(faults, random=Random(3))
    tables = DynamoDB(Behaviour(world.clock))
    tables.call("CreateTable", dict(TABLE))
    server = Server(world.model, LocalDynamoDB(tables), clock=world.clock, faults=drawn)
    session = aioboto3.Session(aws_access_key_id="any", aws_secret_access_key="any", region_name="us-east-1")
    once = AioConfig(retries={"total_max_attempts": 1})
    async with (
        serve(server) as url,
        session.client("kinesis", endpoint_url=url, config=once) as kinesis,
        session.client("dynamodb", endpoint_url=url, config=once) as dynamodb,
    ):
        yield Site(drawn, world, tables, {"kinesis": kinesis, "dynamodb": dynamodb})


Place: TypeAlias = Callable[..., AbstractAsyncContextManager[Site]]
PLACES: tuple[Place, ...] = (in_memory, over_http)


async def ending_of(call: Callable[[], Awaitable[object]], faults: Faults) -> str:
    """Return which of our errors a call ends in, with its code; ``none``; or ``hangs`` if that is what happens."""
    endings: list[str] = []

    async def end() -> None:
        try:
            await call()
            endings.append("none")
        except RequestError as error:
            endings.append(f"{type(error).__name__} {error.code}")

    hung = hangs(faults)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(end)
        while not endings and hangs(faults) == hung:
            await checkpoint()
        for _ in range(LOOKS):
            await checkpoint()
        tasks.cancel_scope.cancel()
    return endings[0] if endings else "hangs"


def hangs(faults: Faults) -> int:
    return sum(times for (_, _, kind), times in faults.happened.items() if kind is Kind.HANG)
