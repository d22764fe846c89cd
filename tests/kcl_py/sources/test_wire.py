"""What goes over the wire, and what happens when the other side does not play along: real clients, a stub server."""

import asyncio
import re
import socket
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from actors.testing import ManualClock
from kcl_py.config import Service
from kcl_py.errors import CredentialsError, EndpointError, RequestError
from kcl_py.sessions import LOOK_S, Sessions
from kcl_py.sources.kinesis.polling import KinesisSource
from kcl_py.sources.source import Position, PositionKind
from tests.clocks import PromptClock
from tests.kcl_py.sources.stub_service import (
    DATE_S,
    NUMBER,
    Answer,
    Call,
    StubService,
    a_reply,
    a_source,
)

pytestmark = pytest.mark.asyncio

ROLE = "arn:aws:iam::000000000000:role/reader"


def assumed(stub: StubService, key: str, *, minutes: int = 60) -> None:
    """Have STS answer with the credentials ``key``, which end in so many minutes."""
    stub.scripts["AssumeRole"] = (
        200,
        '<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>'
        f"<AccessKeyId>{key}</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>"
        f"<Expiration>{(datetime.now(UTC) + timedelta(minutes=minutes)).isoformat()}</Expiration>"
        "</Credentials></AssumeRoleResult></AssumeRoleResponse>",
    )


def a_page(shard_id: str, **more: Any) -> Answer:
    """Return a page of ListShards with one shard."""
    numbers = {"StartingSequenceNumber": NUMBER}
    keys = {"StartingHashKey": "0", "EndingHashKey": str(2**128 - 1)}
    return 200, {"Shards": [{"ShardId": shard_id, "SequenceNumberRange": numbers, "HashKeyRange": keys}], **more}


async def test_follow_up_pages_are_asked_for_by_token_alone(stub: StubService) -> None:
    """AWS refuses a token together with the stream's name."""

    def pages(call: Call) -> Answer:
        return a_page("shardId-1") if "NextToken" in call.arguments else a_page("shardId-0", NextToken="token")

    stub.scripts["ListShards"] = pages
    async with a_source(stub) as source:
        listing = await source.list_shards()
    assert [shard.shard_id for shard in listing.shards] == ["shardId-0", "shardId-1"]
    assert listing.shards[0].starts_at == int(NUMBER)
    assert listing.server_time_s == DATE_S
    assert [call.arguments for call in stub.calls] == [{"StreamName": "orders"}, {"NextToken": "token"}]


async def test_describe_takes_the_time_from_the_reply(stub: StubService) -> None:
    """The Date header of the very reply is the server's time; the identity counts whole seconds."""
    summary = {
        "StreamName": "orders",
        "StreamARN": "arn",
        "StreamStatus": "ACTIVE",
        "StreamCreationTimestamp": 1.6e9 + 0.9,
    }
    stub.scripts["DescribeStreamSummary"] = (200, {"StreamDescriptionSummary": summary})
    async with a_source(stub) as source:
        info = await source.describe()
    assert info.server_time_s == DATE_S
    assert info.identity == "orders:1600000000"


async def test_instants_travel_in_milliseconds(stub: StubService) -> None:
    """Left to botocore, whole seconds would be sent and reading would begin up to a second too early."""
    stub.scripts["GetShardIterator"] = (200, {"ShardIterator": "iterator"})
    async with a_source(stub) as source:
        await source.open("shardId-0", Position(PositionKind.AT_TIMESTAMP, 1_767_323_045_678))
    assert stub.calls[0].arguments["Timestamp"] == 1_767_323_045.678


async def test_numbers_travel_as_all_their_digits(stub: StubService) -> None:
    """56 digits do not fit a float; they are sent as text."""
    stub.scripts["GetShardIterator"] = (200, {"ShardIterator": "iterator"})
    async with a_source(stub) as source:
        await source.open("shardId-0", Position(PositionKind.AFTER, int(NUMBER)))
    assert stub.calls[0].arguments["StartingSequenceNumber"] == NUMBER


async def test_every_call_names_the_stream_by_its_arn_when_it_was_given(stub: StubService) -> None:
    """A stream of another account is only found by its ARN."""
    arn = "arn:aws:kinesis:eu-west-1:000000000000:stream/orders"
    stub.scripts |= {"GetShardIterator": (200, {"ShardIterator": "iterator"}), "GetRecords": a_reply()}
    async with a_source(stub, stream=arn) as source:
        await source.fetch("shardId-0", await source.open("shardId-0", Position(PositionKind.LATEST)), limit=5)
    assert [call.arguments["StreamARN"] for call in stub.calls] == [arn, arn]
    assert stub.calls[1].arguments == {"ShardIterator": "iterator", "Limit": 5, "StreamARN": arn}


async def test_silence_ends_at_the_deadline(stub: StubService) -> None:
    """A server that accepts and says nothing costs one deadline, not for ever; the outcome is unknown."""
    stub.scripts["GetRecords"] = None
    async with a_source(stub, deadline_s=0.05) as source:
        with pytest.raises(RequestError, match="no reply before the deadline") as raised:
            await source.fetch("shardId-0", "iterator", limit=1)
    assert raised.value.retryable


async def test_refused_connection_names_the_endpoint() -> None:
    """Nothing listens: at the start that is a set-up error, later a request to repeat."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        async with Sessions().client("kinesis", Service(region="eu-west-1", endpoint=url)) as client:
            source = KinesisSource(client, "orders", clock=PromptClock())
            with pytest.raises(EndpointError, match=f"cannot connect to {url}") as raised:
                await source.describe()
    assert isinstance(raised.value, RequestError)


async def test_closing_twice_is_as_good_as_once(stub: StubService) -> None:
    """No connection is left, and no warning about one."""
    stub.scripts["GetRecords"] = a_reply()
    async with a_source(stub) as source:
        await source.fetch("shardId-0", "iterator", limit=1)
        await source.aclose()
        await source.aclose()


async def test_requests_are_signed_with_the_credentials_of_the_role(
    stub: StubService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With aws.role, STS is asked once with our own credentials and Kinesis is called with the role's."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", stub.url)
    assumed(stub, "AKIDROLE")
    stub.scripts["GetRecords"] = a_reply()
    async with Sessions().client("kinesis", Service(region="eu-west-1", endpoint=stub.url, role=ROLE)) as client:
        source = KinesisSource(client, "orders", clock=PromptClock())
        for _ in range(2):
            await source.fetch("shardId-0", "iterator", limit=1)
    assert [call.operation for call in stub.calls] == ["AssumeRole", "GetRecords", "GetRecords"]
    assert "Credential=AKIDTEST/" in stub.calls[0].authorization
    assert "Credential=AKIDROLE/" in stub.calls[1].authorization


async def test_a_role_that_may_not_be_assumed_is_a_credentials_error(
    stub: StubService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """STS's refusal is told as one, with AWS's code."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", stub.url)
    stub.scripts["AssumeRole"] = (
        403,
        '<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>'
        "<Code>AccessDenied</Code><Message>no</Message></Error><RequestId>r</RequestId></ErrorResponse>",
    )
    async with Sessions().client("kinesis", Service(region="eu-west-1", endpoint=stub.url, role=ROLE)) as client:
        with pytest.raises(CredentialsError, match="AccessDenied"):
            await KinesisSource(client, "orders", clock=PromptClock()).describe()


@pytest.mark.parametrize("trouble", ["none", "refused", "hangs", "past"])
async def test_credentials_are_renewed_before_they_end_and_no_request_waits_for_it(
    stub: StubService, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    """When that fails, takes long or gives what is over, the old ones stay in use, and it is tried again."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", stub.url)
    stub.scripts["GetRecords"] = a_reply()
    assumed(stub, "AKIDFIRST")
    clock, sessions = ManualClock(), Sessions()
    async with (
        sessions.client("kinesis", Service(region="eu-west-1", endpoint=stub.url, role=ROLE)) as client,
        sessions.kept_fresh(clock),
    ):
        source = KinesisSource(client, "orders", clock=PromptClock())

        async def signed_by() -> str:
            await source.fetch("shardId-0", "iterator", limit=1)
            found: list[str] = re.findall("Credential=(.*?)/", stub.calls[-1].authorization)
            return found[0]

        assert await signed_by() == "AKIDFIRST"
        await clock.advance(LOOK_S)  # an hour is left
        later = datetime.now(UTC) + timedelta(minutes=50)
        monkeypatch.setattr("botocore.credentials._local_now", lambda: later)
        client._request_signer._credentials._time_fetcher = lambda: later
        match trouble:
            case "none":
                assumed(stub, "AKIDSECOND")
            case "refused":
                stub.refuse("AssumeRole", "AccessDenied")
            case "hangs":
                stub.scripts["AssumeRole"] = None
            case "past":
                assumed(stub, "AKIDPAST", minutes=40)
        await clock.advance(LOOK_S)
        async with asyncio.timeout(20):
            while [call.operation for call in stub.calls].count("AssumeRole") < 2:
                assert await signed_by() == "AKIDFIRST"
            if trouble != "none":
                for _ in range(5):
                    assert await signed_by() == "AKIDFIRST"
            else:
                while await signed_by() != "AKIDSECOND":
                    pass


async def test_cancellation_on_leaving_the_block_that_renews_credentials_gets_through() -> None:
    """B086: from outside, right as it is left; the task in it is cancelled too, and the one must not hide the other."""

    async def leave() -> None:
        async with Sessions().kept_fresh(ManualClock()):
            await asyncio.sleep(0)
            task = asyncio.current_task()
            assert task is not None
            task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asyncio.ensure_future(leave())
