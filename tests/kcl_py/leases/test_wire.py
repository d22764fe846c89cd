"""Requests that pass botocore by arrive as botocore's would, signed as botocore would sign them, and fail alike."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio
from aiobotocore.config import AioConfig
from aiobotocore.session import AioSession
from botocore import UNSIGNED
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials

from kcl_py.config import Leases
from kcl_py.errors import CredentialsError, RequestError
from kcl_py.leases import rules
from kcl_py.leases.attributes import encode_item
from kcl_py.leases.dynamodb import DynamoLeaseStore
from kcl_py.leases.items import item_from_row
from kcl_py.leases.row import WorkerRow
from kcl_py.leases.wire import WireClient
from kcl_py.signature import Signer
from tests.clocks import PromptClock
from tests.contract.lease_rows import KEY, MINE, a_row
from tests.kcl_py.sources.stub_service import DATE, StubService

pytestmark = pytest.mark.asyncio

LEASES = Leases(table="app", workers_table="app-workers")
ITEM = encode_item(item_from_row(a_row()))


class Recorder:
    """Stands where the connections would be: keeps each request and answers it with an empty object."""

    status_code, headers, raw = 200, {"date": DATE}, None

    def __init__(self) -> None:
        self.requests: list[Any] = []

    async def __aexit__(self, *error: object) -> None:
        """Do nothing: there is no connection."""

    async def send(self, request: Any) -> "Recorder":
        self.requests.append(request)
        return self

    @property
    def content(self) -> Any:
        async def body() -> bytes:
            return b"{}"

        return body()


@asynccontextmanager
async def a_client(**options: Any) -> AsyncIterator[Any]:
    keys = {"aws_access_key_id": "AKIA", "aws_secret_access_key": "secret", "region_name": "eu-west-1"}
    config = AioConfig(
        retries={"mode": "standard", "total_max_attempts": 1}, signature_version=options.pop("sign", None)
    )
    async with AioSession().create_client("dynamodb", config=config, **(keys | options)) as client:
        yield client


@asynccontextmanager
async def two_stores(**options: Any) -> AsyncIterator[tuple[DynamoLeaseStore, DynamoLeaseStore]]:
    """Yield a store that goes botocore's way, and one that does not."""
    async with a_client(**options) as client:
        yield (
            DynamoLeaseStore(client, LEASES, clock=PromptClock()),
            DynamoLeaseStore(WireClient(client), LEASES, clock=PromptClock()),
        )


@pytest_asyncio.fixture
async def stub() -> AsyncIterator[StubService]:
    service = StubService()
    await service.start()
    yield service
    await service.stop()


async def use(store: DynamoLeaseStore) -> None:
    """Send each frequent request."""
    await store.read(KEY)
    await store.write(rules.heartbeat(a_row(), **MINE))
    await store.put_worker(WorkerRow("w/1", beat=7))
    await store.scan()


async def test_same_requests_arrive_and_the_same_rows_come_back(stub: StubService) -> None:
    """Nothing that AWS sees of a request or that we see of a reply depends on who has written it."""
    stub.scripts |= {
        "GetItem": (200, {"Item": ITEM}),
        "UpdateItem": (200, {"Attributes": ITEM}),
        "Scan": (200, {"Items": [ITEM]}),
    }
    async with two_stores(endpoint_url=stub.url) as stores:
        for store in stores:
            await use(store)
            assert (await store.scan()).rows == (await store.read(KEY),) == (a_row(),)
    half = len(stub.calls) // 2
    plain, wired = (
        [(call.operation, call.arguments) for call in part] for part in (stub.calls[:half], stub.calls[half:])
    )
    assert wired == plain


ENDPOINTS = {
    "region": ({}, "https://dynamodb.eu-west-1.amazonaws.com/"),
    "account": ({"aws_account_id": "123456789012"}, "https://123456789012.ddb.eu-west-1.amazonaws.com/"),
    "port": ({"endpoint_url": "http://Localhost:4566"}, "http://Localhost:4566/"),
    "default port": ({"endpoint_url": "https://dynamo.example:443"}, "https://dynamo.example:443/"),
    "address": ({"endpoint_url": "http://[::1]:4566"}, "http://[::1]:4566/"),
    "session": ({"aws_session_token": "token"}, "https://dynamodb.eu-west-1.amazonaws.com/"),
    "region of a name": ({"region_name": "us-gov-west-1"}, "https://dynamodb.us-gov-west-1.amazonaws.com/"),
}


@pytest.mark.parametrize(("options", "url"), ENDPOINTS.values(), ids=ENDPOINTS)
async def test_requests_go_where_botocore_sends_them_and_are_signed_as_botocore_signs(
    options: dict[str, Any], url: str
) -> None:
    """Endpoint, headers and signature are botocore's, whatever of it is configured."""
    async with a_client(**options) as client:
        recorder = client._endpoint.http_session = Recorder()
        for one in (client, WireClient(client)):
            await one.get_item(TableName="app", Key={"leaseKey": {"S": KEY}})
        plain, wired = recorder.requests
    assert wired.url == plain.url == url
    for name in ("Content-Type", "X-Amz-Target", "X-Amz-Security-Token"):
        found = {key.lower(): value for key, value in wired.headers.items()}.get(name.lower())
        assert found == _text(plain.headers.get(name))
    assert wired.headers["user-agent"].split("/")[0] == "aiobotocore"
    assert wired.headers["authorization"] == _authorization(wired, options)


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def _authorization(sent: Any, options: dict[str, Any]) -> str:
    """Sign a request as it was sent with botocore's signer."""
    headers = {name: value for name, value in sent.headers.items() if name not in ("authorization", "host")}
    request = AWSRequest(method=sent.method, url=sent.url, headers=headers, data=sent.body)
    request.context["timestamp"] = headers["x-amz-date"]
    keys = ReadOnlyCredentials("AKIA", "secret", options.get("aws_session_token"))
    signer = SigV4Auth(keys, "dynamodb", options.get("region_name", "eu-west-1"))
    text = signer.string_to_sign(request, signer.canonical_request(request))
    signed: Any = signer
    signed._inject_signature_to_request(request, signer.signature(text, request))
    return str(request.headers["Authorization"])


async def test_key_of_another_day_is_not_used() -> None:
    """A signer that is kept over midnight signs as a new one does."""
    kept, headers = Signer("AKIA", "secret", "eu-west-1", "dynamodb"), {"host": "h"}
    for at in ("20261128T235959Z", "20261129T000000Z", "20261128T235959Z"):
        fresh = Signer("AKIA", "secret", "eu-west-1", "dynamodb")
        assert kept.authorization(headers, b"{}", at=at) == fresh.authorization(headers, b"{}", at=at)


async def test_credentials_that_were_renewed_sign_the_next_request() -> None:
    """Nothing of the old ones is kept: keys, token and account may all be others."""
    async with a_client(aws_session_token="old") as client:
        recorder, wired = Recorder(), WireClient(client)
        client._endpoint.http_session = recorder
        for key, token, account in (("AKIA", "old", None), ("ASIA", "new", "123456789012")):
            held = client._request_signer._credentials
            held.access_key, held.token, held.account_id = key, token, account
            await wired.get_item(TableName="app", Key={"leaseKey": {"S": KEY}})
    first, second = recorder.requests
    assert "Credential=AKIA/" in first.headers["authorization"]
    assert first.headers["x-amz-security-token"] == "old"
    assert "Credential=ASIA/" in second.headers["authorization"]
    assert second.headers["x-amz-security-token"] == "new"
    assert second.url == "https://123456789012.ddb.eu-west-1.amazonaws.com/"


@pytest.mark.parametrize(
    "options", [{"sign": UNSIGNED}, {"endpoint_url": "http://proxy.example/dynamodb"}], ids=["unsigned", "below a path"]
)
async def test_what_is_not_done_here_goes_botocores_way(options: dict[str, Any]) -> None:
    """Another way of signing and an endpoint with a path are sent exactly as botocore sends them."""
    async with a_client(**options) as client:
        recorder = client._endpoint.http_session = Recorder()
        for one in (client, WireClient(client)):
            await one.get_item(TableName="app", Key={"leaseKey": {"S": KEY}})
    plain, wired = recorder.requests
    assert (wired.url, wired.body, wired.headers.keys()) == (plain.url, plain.body, plain.headers.keys())


REFUSALS = {
    "throttled": (400, {"__type": "com.amazonaws.dynamodb#ProvisionedThroughputExceededException", "message": "slow"}),
    "condition": (400, {"__type": "x#ConditionalCheckFailedException", "message": "no", "Item": ITEM}),
    "no table": (400, {"__type": "x#ResourceNotFoundException", "message": "no table"}),
    "signature": (400, {"__type": "x#InvalidSignatureException", "message": "Signature expired"}),
    "failed": (500, {"__type": "x#InternalServerError", "message": "oh"}),
    "unreadable": (503, "<html>busy</html>"),
    "nothing": (500, ""),
}


@pytest.mark.parametrize("answer", REFUSALS.values(), ids=REFUSALS)
async def test_refusals_become_the_same_errors(stub: StubService, answer: Any) -> None:
    """Class, code and sentence do not depend on the way: with the stub's clock of 2023, a wrong clock is told too."""
    stub.scripts["UpdateItem"] = answer
    found = []
    async with two_stores(endpoint_url=stub.url) as stores:
        for store in stores:
            with pytest.raises(RequestError) as caught:
                await store.write(rules.heartbeat(a_row(), **MINE))
            found.append((type(caught.value), caught.value.code, caught.value.detail))
    assert found[0] == found[1]
    assert len(stub.calls) == 2  # neither repeats anything


@pytest.mark.parametrize("body", ["", "<html>", '{"Attributes": {"leaseKey"', "[]", '{"message": "hello"}'])
async def test_reply_that_cannot_be_read_is_an_unknown_outcome(stub: StubService, body: str) -> None:
    """The write may have happened; one read decides, as after a lost reply."""
    stub.scripts["UpdateItem"] = (200, body)
    async with two_stores(endpoint_url=stub.url) as (_, store):
        with pytest.raises(RequestError) as caught:
            await store.write(rules.heartbeat(a_row(), **MINE))
    assert type(caught.value) is RequestError
    assert caught.value.retryable


async def test_reply_without_items_is_not_taken_for_an_empty_table(stub: StubService) -> None:
    """Something between here and DynamoDB has answered; every row would count as deleted."""
    stub.scripts["Scan"] = (200, {"message": "hello"})
    async with two_stores(endpoint_url=stub.url) as stores:
        for store in stores:
            with pytest.raises(RequestError):
                await store.scan()


async def test_missing_credentials_are_named() -> None:
    """Without keys nothing is sent, and what to do is said."""
    async with a_client() as client:
        client._request_signer._credentials = None
        recorder = client._endpoint.http_session = Recorder()
        store = DynamoLeaseStore(WireClient(client), LEASES, clock=PromptClock())
        with pytest.raises(CredentialsError, match="no credentials were found"):
            await store.read(KEY)
    assert not recorder.requests
