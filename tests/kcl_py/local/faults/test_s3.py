"""Faults in S3: in the server, and around a real client; PutObject and GetObject of bucket ``bucket``."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

import aioboto3
import pytest
from aiobotocore.config import AioConfig

from kcl_py.aws import request
from kcl_py.errors import RequestError
from kcl_py.local.dynamo.behaviour import Behaviour
from kcl_py.local.dynamo.model import DynamoDB
from kcl_py.local.dynamodb import LocalDynamoDB
from kcl_py.local.faults.client import FaultyClient
from kcl_py.local.faults.fault import Fault, Kind
from kcl_py.local.faults.faults import Faults
from kcl_py.local.http import HttpRequest
from kcl_py.local.s3 import MotoS3
from kcl_py.local.server import Server, serve
from tests.kcl_py.local.faults.site import DEADLINE_S, ServedClock, ending_of
from tests.kcl_py.local.world import World

pytestmark = pytest.mark.asyncio
BODY = b"x" * 1000
SIGNED = {"Authorization": "AWS4-HMAC-SHA256 Credential=any/20231114/us-east-1/s3/aws4_request"}


@dataclass
class Site:
    """A client that meets ``faults``, and the S3 behind it, which does not."""

    faults: Faults
    client: Any
    moto: MotoS3

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        status, _, found = await self.moto(HttpRequest(method, path, "", SIGNED, body))
        return status, found

    async def put(self) -> None:
        with request("PutObject", "bucket", deadline_s=DEADLINE_S):
            await self.client.put_object(Bucket="bucket", Key="new", Body=BODY)


@asynccontextmanager
async def served(faults: Faults | None) -> AsyncIterator[Site]:
    """Yield aioboto3's client, which repeats nothing, and an S3 with an object ``there``."""
    world = World(clock=ServedClock())
    session = aioboto3.Session(aws_access_key_id="any", aws_secret_access_key="any", region_name="us-east-1")
    with closing(MotoS3()) as moto:
        tables = LocalDynamoDB(DynamoDB(Behaviour(world.clock)))
        server = Server(world.model, tables, clock=world.clock, s3=moto, faults=faults)
        once = AioConfig(retries={"total_max_attempts": 1})
        async with serve(server) as url, session.client("s3", endpoint_url=url, config=once) as client:
            site = Site(faults or Faults(random=Random(1)), client, moto)
            assert await site.ask("PUT", "/bucket") == (200, b"")
            assert await site.ask("PUT", "/bucket/there", BODY) == (200, b"")
            yield site


@asynccontextmanager
async def over_http(*faults: Fault) -> AsyncIterator[Site]:
    """Let the server be what fails."""
    async with served(Faults(faults, random=Random(1))) as site:
        yield site


@asynccontextmanager
async def around_the_client(*faults: Fault) -> AsyncIterator[Site]:
    """Let the client be what fails."""
    async with served(None) as site:
        drawn = Faults(faults, random=Random(1))
        yield Site(drawn, FaultyClient(site.client, "s3", drawn, clock=ServedClock()), site.moto)


Place: TypeAlias = Callable[..., AbstractAsyncContextManager[Site]]
everywhere = pytest.mark.parametrize("place", [over_http, around_the_client], ids=lambda place: place.__name__)
CLOSED = "RequestError ConnectionClosedError"


@everywhere
@pytest.mark.parametrize(
    ("fault", "expected", "is_done"),
    [
        (Fault(kind=Kind.ERROR), "RequestError InternalError", False),
        (Fault(kind=Kind.ERROR, code="AccessDenied"), "RejectedError AccessDenied", False),
        (Fault(kind=Kind.THROTTLE), "ThrottledError SlowDown", False),
        (Fault(kind=Kind.LOST_REPLY), CLOSED, True),
        (Fault(kind=Kind.LOST_REPLY, code="ServiceUnavailable"), "RequestError ServiceUnavailable", True),
        (Fault(kind=Kind.DELAY, delay_s=30), "none", True),
        (Fault(kind=Kind.HANG), "hangs", False),
        (Fault(kind=Kind.RESET), "UnreachableError EndpointConnectionError", False),
        (Fault(kind=Kind.TRUNCATED), CLOSED, True),
    ],
)
async def test_put_object_meets_a_fault(place: Place, fault: Fault, expected: str, is_done: bool) -> None:
    """The object is there or not, whatever is seen."""
    async with place(fault) as site:
        found = await ending_of(site.put, site.faults)
        status, _ = await site.ask("GET", "/bucket/new")
        assert (found, status) == (expected, 200 if is_done else 404)
        assert site.faults.happened[("s3", "PutObject", fault.kind)] >= 1


@everywhere
async def test_get_object_breaks_off_in_its_body(place: Place) -> None:
    """The reply begins well; whoever reads on is told."""
    async with place(Fault(kind=Kind.TRUNCATED, operation="GetObject")) as site:
        reply = await site.client.get_object(Bucket="bucket", Key="there")
        assert reply["ContentLength"] == len(BODY)
        with (
            pytest.raises(RequestError, match="ClientPayloadError"),
            request("GetObject", "bucket", deadline_s=DEADLINE_S),
        ):
            await reply["Body"].read()
        reply["Body"].close()


@everywhere
async def test_a_fault_of_one_operation_leaves_the_others_alone(place: Place) -> None:
    """Operations of S3 are told from each other, though requests do not name them."""
    async with place(Fault(kind=Kind.ERROR, service="s3", operation="ListObjectsV2")) as site:
        await site.client.head_object(Bucket="bucket", Key="there")
        with pytest.raises(site.client.exceptions.ClientError, match="InternalError"):
            await site.client.list_objects_v2(Bucket="bucket")
        assert site.faults.happened == {("s3", "ListObjectsV2", Kind.ERROR): 1}
