"""What a worker talks to: its stream and its lease store, connected once at the start.

At the start AWS errors become ``AwsSetupError``s that name the resolved stream, region and endpoint. Nothing of AWS's
libraries is imported before the first connection. Durations are seconds.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from actors.clock import Clock, SystemClock
from kcl_py.aws import origin, request, translate
from kcl_py.config import Config, Service, ServiceName
from kcl_py.dead_letters.destination import DeadLetters
from kcl_py.errors import (
    AwsSetupError,
    ConfigError,
    CredentialsError,
    EndpointError,
    LeaseTableError,
    MissingError,
    RequestError,
    StreamNotFoundError,
)
from kcl_py.events import Events
from kcl_py.leases.store import LeaseStore
from kcl_py.sources.kinesis.polling import KinesisSource
from kcl_py.sources.source import Source, StreamInfo

if TYPE_CHECKING:
    from kcl_py.leases.client import DynamoClient
    from kcl_py.sessions import Sessions

RETRY_S = 0.25
RETRY_MAX_S = 2.0
"""Pauses between tries while AWS cannot be reached; they double."""
LOOK_TIMEOUT_S = 5.0
"""Longest time for AWS to answer somebody who only looks, and waits before a terminal."""

T = TypeVar("T")
Tell = Callable[[str, float], None]
"""Is told why there is no answer yet, and in how many seconds the next try is."""

log = Events()


def _log_waiting(reason: str, retry_in_s: float) -> None:
    log.warning("kcl_py.start.waiting", reason=reason, retry_in_s=retry_in_s)


@dataclass(frozen=True, slots=True)
class Waiting:
    """How an answer of AWS is waited for."""

    tell: Tell = _log_waiting
    advice: str = "or raise aws.start_timeout_s"
    """What to do if none comes, beside looking at endpoint and region."""


STARTING = Waiting()
"""As a worker does."""


@dataclass(frozen=True, slots=True)
class Clients:
    """What a tree talks to; whoever made it closes it."""

    source: Source
    leases: LeaseStore
    stream: StreamInfo | None = None
    """What the source says of the stream, if it has been asked."""
    dead_letters: DeadLetters | None = None
    """Where dead letters go; None: where ``delivery.dead_letter`` says."""


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
        await stack.enter_async_context(sessions.kept_fresh(SystemClock()))
        source, place = await _source(stack, sessions, config, clock)
        leases = await _leases(stack, sessions, config, clock)
        info = await reach(source, config.stream, place, timeout_s=config.aws.start_timeout_s, clock=clock)
        log.info("kcl_py.stream.found", arn=info.arn, status=info.status, place=place)
        yield Clients(source, leases, info)


@asynccontextmanager
async def connect_to_look(
    config: Config, *, clock: Clock | None = None, tell: Tell = _log_waiting
) -> AsyncIterator[Clients]:
    """Connect to a stream and a lease table that are both there, for looking at them.

    What ``connect`` waits for is waited for, but for ``LOOK_TIMEOUT_S`` at most; ``tell`` hears of it.

    Raises:
        ConfigError: the leases are kept in memory, where nobody else can see them.
        LeaseTableError: there is no lease table, or it has another key.
        StreamNotFoundError, CredentialsError, EndpointError, AwsSetupError: as for ``connect``.
    """
    from kcl_py.leases.dynamodb import DynamoLeaseStore

    _check_shared(config)
    clock = clock or SystemClock()
    async with AsyncExitStack() as stack:
        sessions = _sessions()
        await stack.enter_async_context(sessions.kept_fresh(SystemClock()))
        source, place = await _source(stack, sessions, config, clock)
        leases = DynamoLeaseStore(await _dynamo_client(stack, sessions, config), config.leases, clock=clock)
        timeout_s = min(config.aws.start_timeout_s, LOOK_TIMEOUT_S)
        waiting = Waiting(tell, "and the network")
        info = await reach(source, config.stream, place, timeout_s=timeout_s, clock=clock, waiting=waiting)
        with looking_at(config.leases.table):
            await leases.find()
        yield Clients(source, leases, info)


@asynccontextmanager
async def connect_leases(config: Config, *, clock: Clock | None = None) -> AsyncIterator[LeaseStore]:
    """Connect to the lease table alone, which need not be there yet.

    Raises:
        ConfigError: the leases are kept in memory, where nobody else can see them.
    """
    _check_shared(config)
    async with AsyncExitStack() as stack:
        yield await _leases(stack, _sessions(), config, clock or SystemClock())


@contextmanager
def looking_at(table: str) -> Iterator[None]:
    """Turn what keeps a lease table from being looked at into a ``LeaseTableError`` or another ``AwsSetupError``."""
    what = f"cannot read lease table {table!r}"
    try:
        yield
    except MissingError as error:
        raise LeaseTableError(
            f"{what}: expected the table of a worker that has run, found none; check app, leases.table and the region"
        ) from error
    except RequestError as error:
        raise AwsSetupError(f"{what}: {error.code}" + (f": {error.detail}" if error.detail else "")) from error


async def reach(
    source: Source, stream: str, place: str = "", *, timeout_s: float, clock: Clock, waiting: Waiting = STARTING
) -> StreamInfo:
    """Describe the stream, waiting until it answers and can be read.

    Args:
        source: the stream.
        stream: its configured name, for errors.
        place: the resolved region and endpoint, for errors; empty if they are not known.
        timeout_s: longest total time.
        clock: waits between tries.
        waiting: who is told meanwhile.

    Raises:
        StreamNotFoundError, CredentialsError, EndpointError, AwsSetupError: as named.
    """
    what = f"cannot read stream {stream!r}" + (f" in {place}" if place else "")
    ends_at = clock.monotonic() + timeout_s

    async def describe() -> StreamInfo:
        with request("DescribeStreamSummary", stream, deadline_s=ends_at - clock.monotonic(), clock=clock):
            info = await source.describe()
        if info.status == "CREATING":
            raise RequestError("DescribeStreamSummary", stream, "CREATING", "the stream is still being created")
        return info

    try:
        return await until_answered(describe, what, timeout_s=timeout_s, clock=clock, waiting=waiting)
    except MissingError as error:
        raise StreamNotFoundError(
            f"{what}: there is no such stream; correct stream, the region (aws.region, AWS_DEFAULT_REGION) "
            "or the endpoint (aws.endpoint, AWS_ENDPOINT_URL)"
        ) from error


async def until_answered(
    call: Callable[[], Awaitable[T]], what: str, *, timeout_s: float, clock: Clock, waiting: Waiting = STARTING
) -> T:
    """Return what ``call`` returns; while AWS cannot be reached, throttles or fails, call again.

    Args:
        call: one try; it has a deadline of its own.
        what: the beginning of the sentence of an error: cannot <do this> on <that>.
        timeout_s: after this there is no further try.
        clock: waits between tries.
        waiting: who is told before each pause.

    Raises:
        MissingError: at once, as is.
        CredentialsError, AwsSetupError: at once; trying again does not help.
        EndpointError: there was no good answer in time.
    """
    ends_at, pause_s = clock.monotonic() + timeout_s, RETRY_S
    while True:
        try:
            return await call()
        except MissingError:
            raise
        except RequestError as error:
            cause = f"{error.code}: {error.detail}" if error.detail else error.code
            if isinstance(error, CredentialsError):
                raise CredentialsError(f"{what}: {cause}") from error
            if not error.retryable:
                raise AwsSetupError(f"{what}: {cause}") from error
            if clock.monotonic() + pause_s >= ends_at:
                raise EndpointError(
                    f"{what}: expected an answer within {timeout_s:g} s, found {cause}; "
                    "check the endpoint (aws.endpoint, AWS_ENDPOINT_URL) and the region (aws.region, "
                    f"AWS_DEFAULT_REGION), {waiting.advice}"
                ) from error
        waiting.tell(f"{what}: {cause}", pause_s)
        await clock.sleep(pause_s)
        pause_s = min(pause_s * 2, RETRY_MAX_S)


def _sessions() -> "Sessions":
    from kcl_py.sessions import Sessions

    return Sessions()


async def _source(
    stack: AsyncExitStack, sessions: "Sessions", config: Config, clock: Clock
) -> tuple[KinesisSource, str]:
    """Return the stream to read, and its region and endpoint for people."""
    client = await _client(stack, sessions, config, "kinesis")
    place = f"{client.meta.region_name} at {origin(client.meta.endpoint_url)}"
    return KinesisSource(client, config.stream, clock=clock), place


def _check_shared(config: Config) -> None:
    if config.leases.store == "memory":
        raise ConfigError("cannot look at the leases: expected leases.store dynamodb, found memory")


async def _client(stack: AsyncExitStack, sessions: "Sessions", config: Config, name: ServiceName) -> Any:
    service = config.aws.service(name)
    if name == "kinesis" and config.stream_arn and not service.region:
        service = service.model_copy(update={"region": config.stream_arn.split(":")[3]})
    return await new_client(stack, sessions, name, service, f"stream {config.stream!r}")


async def new_client(
    stack: AsyncExitStack, sessions: "Sessions", name: ServiceName, service: Service, purpose: str
) -> Any:
    """Return a client of one service, which ``stack`` closes; ``purpose`` is for errors.

    Raises:
        CredentialsError, EndpointError: as named.
    """
    try:
        return await stack.enter_async_context(sessions.client(name, service))
    except Exception as error:
        fault = translate(error, "connect", name)
        if isinstance(fault, RequestError) and isinstance(fault, CredentialsError):
            raise CredentialsError(f"cannot connect to {name} for {purpose}: {fault.detail}") from error
        raise EndpointError(
            f"cannot connect to {name}: expected a usable endpoint, found {type(error).__name__}; "
            "check aws.endpoint and AWS_ENDPOINT_URL"
        ) from error


async def _leases(stack: AsyncExitStack, sessions: "Sessions", config: Config, clock: Clock) -> LeaseStore:
    if config.leases.store == "memory":
        from kcl_py.leases.memory import MemoryLeaseStore

        return MemoryLeaseStore()
    from kcl_py.leases.dynamodb import DynamoLeaseStore

    return DynamoLeaseStore(await _dynamo_client(stack, sessions, config), config.leases, clock=clock)


async def _dynamo_client(stack: AsyncExitStack, sessions: "Sessions", config: Config) -> "DynamoClient":
    client = await _client(stack, sessions, config, "dynamodb")
    from kcl_py.leases.wire import WireClient

    return WireClient(client)
