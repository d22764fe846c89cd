"""What a worker talks to: its stream and its lease store, connected once at the start.

Errors of AWS at the start become ``AwsSetupError``s that name the resolved stream, region and endpoint. Nothing of AWS's
libraries is imported before the first connection. Durations are seconds.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import anyio
import structlog

from actors.clock import Clock, SystemClock
from kcl_py.aws import origin, translate
from kcl_py.config import Config
from kcl_py.errors import (
    AwsSetupError,
    ConfigError,
    CredentialsError,
    EndpointError,
    MissingError,
    RequestError,
    StreamNotFoundError,
)
from kcl_py.leases.store import LeaseStore
from kcl_py.sources.kinesis.polling import KinesisSource
from kcl_py.sources.source import Source, StreamInfo

if TYPE_CHECKING:
    from kcl_py.sessions import Sessions

RETRY_S = 0.25
RETRY_MAX_S = 2.0
"""Pauses between tries while AWS cannot be reached; they double."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Clients:
    """The two things that a tree talks to; whoever made them closes them."""

    source: Source
    leases: LeaseStore


@asynccontextmanager
async def connect(config: Config, *, clock: Clock | None = None) -> AsyncIterator[Clients]:
    """Connect to the stream and the lease store, and close both after.

    The stream is known to exist and to be readable when this yields; the lease table is not looked at (see
    ``LeaseStore.ensure``). Missing streams, regions and credentials fail at once; refused connections, throttling and a
    stream still being created are waited for, up to ``aws.start_timeout_s``.

    Raises:
        StreamNotFoundError, CredentialsError, EndpointError, AwsSetupError: as named.
    """
    clock = clock or SystemClock()
    async with AsyncExitStack() as stack:
        sessions = _sessions()
        kinesis = await _client(stack, sessions, config, "kinesis")
        leases = await _leases(stack, sessions, config, clock)
        source = KinesisSource(kinesis, config.stream, clock=clock)
        place = f"{kinesis.meta.region_name} at {origin(kinesis.meta.endpoint_url)}"
        info = await reach(source, config.stream, place, timeout_s=config.aws.start_timeout_s, clock=clock)
        log.info("kcl_py.stream.found", arn=info.arn, status=info.status, place=place)
        yield Clients(source, leases)


@asynccontextmanager
async def connect_leases(config: Config, *, clock: Clock | None = None) -> AsyncIterator[LeaseStore]:
    """Connect to the lease table alone, for looking at it.

    Raises:
        ConfigError: the leases are kept in memory, where nobody else can see them.
    """
    if config.leases.store == "memory":
        raise ConfigError("cannot look at the leases: expected leases.store dynamodb, found memory")
    async with AsyncExitStack() as stack:
        yield await _leases(stack, _sessions(), config, clock or SystemClock())


async def reach(source: Source, stream: str, place: str, *, timeout_s: float, clock: Clock) -> StreamInfo:
    """Describe the stream, waiting until it answers and exists for reading.

    Args:
        source: the stream.
        stream: its configured name, for errors.
        place: the resolved region and endpoint, for errors.
        timeout_s: longest total time.
        clock: waits between tries.

    Raises:
        StreamNotFoundError, CredentialsError, EndpointError, AwsSetupError: as named.
    """
    found, pause_s = "no reply", RETRY_S
    with anyio.move_on_after(timeout_s):
        while isinstance(seen := await _look(source, stream, place), str):
            found = seen
            log.warning("kcl_py.stream.waiting", place=place, found=found, retry_in_s=pause_s)
            await clock.sleep(pause_s)
            pause_s = min(pause_s * 2, RETRY_MAX_S)
        return seen
    raise EndpointError(
        f"cannot read stream {stream!r} in {place}: expected an answer within {timeout_s:g} s, found {found}; "
        "check aws.endpoint and aws.region, or raise aws.start_timeout_s"
    )


async def _look(source: Source, stream: str, place: str) -> StreamInfo | str:
    """Describe the stream once: as it is, or what is in the way for now."""
    try:
        info = await source.describe()
    except RequestError as error:
        if isinstance(error, CredentialsError) or not error.retryable:
            raise _setup_error(error, f"cannot read stream {stream!r} in {place}") from error
        return _cause(error)
    return "a stream that is still being created" if info.status == "CREATING" else info


def _setup_error(error: RequestError, what: str) -> AwsSetupError:
    match error:
        case MissingError():
            return StreamNotFoundError(f"{what}: there is no such stream; correct stream, aws.region or aws.endpoint")
        case CredentialsError():
            return CredentialsError(f"{what}: {_cause(error)}")
    return AwsSetupError(f"{what}: {_cause(error)}")


def _cause(error: RequestError) -> str:
    return f"{error.code}: {error.detail}" if error.detail else error.code


def _sessions() -> "Sessions":
    from kcl_py.sessions import Sessions

    return Sessions()


async def _client(
    stack: AsyncExitStack, sessions: "Sessions", config: Config, name: Literal["kinesis", "dynamodb"]
) -> Any:
    service = config.aws.service(name)
    if name == "kinesis" and config.stream_arn and not service.region:
        service = service.model_copy(update={"region": config.stream_arn.split(":")[3]})
    try:
        return await stack.enter_async_context(sessions.client(name, service))
    except Exception as error:
        fault = translate(error, "connect", name)
        if isinstance(fault, RequestError) and isinstance(fault, CredentialsError):
            raise CredentialsError(f"cannot connect to {name} for stream {config.stream!r}: {fault.detail}") from error
        raise EndpointError(
            f"cannot connect to {name}: expected a usable endpoint, found {type(error).__name__}; "
            "check aws.endpoint and AWS_ENDPOINT_URL"
        ) from error


async def _leases(stack: AsyncExitStack, sessions: "Sessions", config: Config, clock: Clock) -> LeaseStore:
    if config.leases.store == "memory":
        from kcl_py.leases.memory import MemoryLeaseStore

        return MemoryLeaseStore()
    from kcl_py.leases.dynamodb import DynamoLeaseStore

    return DynamoLeaseStore(await _client(stack, sessions, config, "dynamodb"), config.leases, clock=clock)
