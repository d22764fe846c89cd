"""Connecting at the start: what fails at once, what is waited for, and what the errors name."""

import gc
import socket
from typing import Any

import pytest
from structlog.testing import capture_logs

from kcl_py.clients import LOOK_TIMEOUT_S, connect, connect_leases, connect_to_look
from kcl_py.config import Config
from kcl_py.errors import AwsSetupError, ConfigError, CredentialsError, EndpointError, StreamNotFoundError
from kcl_py.sources.kinesis.polling import KinesisSource
from tests.clocks import PromptClock
from tests.kcl_py.sources.stub_service import Answer, Call, StubService

pytestmark = pytest.mark.asyncio

ARN = "arn:aws:kinesis:ap-south-1:000000000000:stream/orders"


def a_config(endpoint: str, *, start_timeout_s: float = 30.0, **overrides: Any) -> Config:
    """Return a configuration with the memory store."""
    aws = {"region": "eu-west-1", "endpoint": endpoint, "start_timeout_s": start_timeout_s} | overrides.pop("aws", {})
    values = {"app": "shop", "stream": "orders", "processor": "m:C", "leases": {"store": "memory"}, "aws": aws}
    return Config(**values | overrides)


def a_summary(status: str = "ACTIVE") -> Answer:
    """Return a reply to DescribeStreamSummary."""
    summary = {"StreamName": "orders", "StreamARN": ARN, "StreamStatus": status, "StreamCreationTimestamp": 1.6e9}
    return 200, {"StreamDescriptionSummary": summary}


async def test_connect_gives_the_source_and_the_store(stub: StubService) -> None:
    """One request is enough to start."""
    stub.scripts["DescribeStreamSummary"] = a_summary()
    async with connect(a_config(stub.url), clock=PromptClock()) as clients:
        assert isinstance(clients.source, KinesisSource)
        assert (await clients.leases.scan()).rows == ()
    assert len(stub.calls) == 1


async def test_connect_says_once_which_stream_it_has_found_and_where(stub: StubService) -> None:
    """B140: who has named another region or account by mistake sees it in the first line of the log."""
    stub.scripts["DescribeStreamSummary"] = a_summary()
    with capture_logs() as logged:
        async with connect(a_config(stub.url), clock=PromptClock()):
            pass
    [found] = [entry for entry in logged if entry["event"] == "kcl_py.stream.found"]
    assert (found["arn"], found["status"], found["place"]) == (ARN, "ACTIVE", f"eu-west-1 at {stub.url}")


async def test_connect_names_place_and_stream_when_there_is_no_such_stream(stub: StubService) -> None:
    """A wrong name, region or account is seen from the error, at the first answer."""
    stub.refuse("DescribeStreamSummary", "ResourceNotFoundException", "Stream orders not found")
    with pytest.raises(StreamNotFoundError, match=f"'orders' in eu-west-1 at {stub.url}"):
        async with connect(a_config(stub.url), clock=PromptClock()):
            pass
    assert len(stub.calls) == 1


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("UnrecognizedClientException", CredentialsError),
        ("ExpiredTokenException", CredentialsError),
        ("AccessDeniedException", AwsSetupError),
    ],
)
async def test_connect_fails_at_once_when_aws_refuses_us(
    stub: StubService, code: str, expected: type[Exception]
) -> None:
    """Waiting does not make credentials valid."""
    stub.refuse("DescribeStreamSummary", code)
    with pytest.raises(expected, match=f"'orders' in eu-west-1 at {stub.url}: {code}"):
        async with connect(a_config(stub.url), clock=PromptClock()):
            pass
    assert len(stub.calls) == 1


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("AWS_ACCESS_KEY_ID", None, "no credentials were found"),
        ("AWS_SECRET_ACCESS_KEY", None, "missing: AWS_SECRET_ACCESS_KEY"),
        ("AWS_PROFILE", "other", "other"),
    ],
)
async def test_connect_says_which_credentials_are_missing(
    stub: StubService, monkeypatch: pytest.MonkeyPatch, variable: str, value: str | None, expected: str
) -> None:
    """None, half of them, or a profile that does not exist."""
    if value is None:
        monkeypatch.delenv(variable)
    else:
        monkeypatch.setenv(variable, value)
    with pytest.raises(CredentialsError, match=expected):
        async with connect(a_config(stub.url), clock=PromptClock()):
            pass


async def test_connect_says_that_no_region_is_set(stub: StubService, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence says what to set: an option, or the variable that is in fact looked at."""
    with pytest.raises(CredentialsError, match=r"set aws\.region or AWS_DEFAULT_REGION$"):
        async with connect(a_config(stub.url, aws={"region": None}), clock=PromptClock()):
            pass
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-north-1")
    stub.scripts["DescribeStreamSummary"] = a_summary()
    async with connect(a_config(stub.url, aws={"region": None}), clock=PromptClock()):
        pass
    assert "/eu-north-1/kinesis/" in stub.calls[-1].authorization


async def test_connect_takes_the_region_of_an_arn_when_none_is_set(stub: StubService) -> None:
    """The ARN says where the stream is; the signature shows the region that is used."""
    stub.scripts["DescribeStreamSummary"] = a_summary()
    async with connect(a_config(stub.url, stream=ARN, aws={"region": None}), clock=PromptClock()):
        pass
    assert "/ap-south-1/kinesis/" in stub.calls[0].authorization


async def test_connect_waits_for_throttling_to_end_and_the_stream_to_be_made(stub: StubService) -> None:
    """Both pass by themselves."""
    throttled: Answer = (400, {"__type": "LimitExceededException", "message": "rate"})
    answers = [throttled, a_summary("CREATING"), a_summary()]

    def one_after_the_other(_: Call) -> Answer:
        return answers[len(stub.calls) - 1]

    stub.scripts["DescribeStreamSummary"] = one_after_the_other
    clock = PromptClock()
    async with connect(a_config(stub.url), clock=clock):
        pass
    assert clock.slept_s == [0.25, 0.5]


async def test_connect_gives_up_at_its_timeout_when_nothing_listens() -> None:
    """The error names the address and how long it was tried."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(EndpointError, match=f"at {url}: expected an answer within 0.2 s, found .*refused"):
            async with connect(a_config(url, start_timeout_s=0.2)):
                pass


async def test_who_looks_is_not_kept_waiting_as_a_worker_is() -> None:
    """Told each time that there is no answer, and after 5 s that there will be none."""
    told, clock = list[str](), PromptClock()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(EndpointError, match=rf"at {url}: expected an answer within 5 s, .*the network$"):
            async with connect_to_look(
                a_config(url, leases={"store": "dynamodb"}), clock=clock, tell=lambda reason, _: told.append(reason)
            ):
                pass
    assert sum(clock.slept_s) < LOOK_TIMEOUT_S
    assert len(told) == len(clock.slept_s) > 2
    assert all(f"cannot read stream 'orders' in eu-west-1 at {url}: " in one for one in told)


async def test_connect_gives_up_at_its_timeout_when_the_server_is_silent(stub: StubService) -> None:
    """A server that accepts and never answers does not hold the start up for longer."""
    stub.scripts["DescribeStreamSummary"] = None
    with pytest.raises(EndpointError, match="found TimeoutError: no reply"):
        async with connect(a_config(stub.url, start_timeout_s=0.1), clock=PromptClock()):
            pass


async def test_connect_closes_its_connections_when_the_body_raises(stub: StubService) -> None:
    """What the body raises comes through, and no connection is left open (aiohttp would warn, which fails here)."""
    stub.scripts["DescribeStreamSummary"] = a_summary()

    async def fail() -> None:
        async with connect(a_config(stub.url), clock=PromptClock()):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    gc.collect()


async def test_connect_leases_refuses_the_memory_store(stub: StubService) -> None:
    """Nobody can see another process's memory."""
    with pytest.raises(ConfigError, match="found memory"):
        async with connect_leases(a_config(stub.url)):
            pass
