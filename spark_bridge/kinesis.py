"""The few calls that the bridge makes to Kinesis itself: connecting, and resolving where a new query begins.

Reading is the tree's, and ``refetch``'s. Instants are Unix milliseconds, pauses seconds.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar

import anyio

from kcl_py.errors import ConfigError, IteratorExpiredError, RequestError
from kcl_py.sources.source import LATEST, Listing, Position, PositionKind, Source
from spark_bridge.offsets import Offset
from spark_bridge.options import Options
from spark_bridge.seed import first_offset

LATEST_MARGIN_MS = 2000
"""How long before the answered time ``latest`` begins: that has whole seconds, and servers' clocks differ."""
TRIES = 12
PAUSE_S = 0.1
PAUSE_MAX_S = 5.0
"""Pauses between tries; they double. Together about half a minute."""

Connect = Callable[[Options], AbstractAsyncContextManager[Source]]
Sleep = Callable[[float], Awaitable[None]]
_T = TypeVar("_T")


@asynccontextmanager
async def connect(options: Options) -> AsyncIterator[Source]:
    """Connect to the stream of ``options``; raises ``AwsSetupError`` if it cannot be read."""
    from kcl_py.clients import connect as connect_clients  # the AWS library is loaded only when it is needed

    async with connect_clients(options.config()) as clients:
        yield clients.source


async def patiently(call: Callable[[], Awaitable[_T]], *, sleep: Sleep = anyio.sleep) -> _T:
    """Return what ``call`` returns, repeating it while it raises ``RequestError``s that are worth it."""
    pause_s = PAUSE_S
    for _ in range(TRIES - 1):
        try:
            return await call()
        except RequestError as error:
            if not error.retryable or isinstance(error, IteratorExpiredError):
                raise
        await sleep(pause_s)
        pause_s = min(pause_s * 2, PAUSE_MAX_S)
    return await call()


async def listed(source: Source, known: Iterable[str], *, sleep: Sleep = anyio.sleep) -> Listing:
    """List all shards; a listing that is older than shards that are ``known`` is asked for again, for some seconds."""
    listing, pause_s = await patiently(source.list_shards, sleep=sleep), PAUSE_S
    while listing.is_behind(known) and pause_s < PAUSE_MAX_S:
        await sleep(pause_s)
        listing, pause_s = await patiently(source.list_shards, sleep=sleep), pause_s * 2
    return listing


async def resolve_start(source: Source, start: Position, *, sleep: Sleep = anyio.sleep) -> Offset:
    """Return the offset at which a query without a checkpoint begins: instants in it are fixed from now on.

    Raises:
        ConfigError: the start lies in the future.
    """
    if start.kind is PositionKind.LATEST:
        listing = await patiently(lambda: source.list_shards(LATEST), sleep=sleep)
        return first_offset(listing.shards, int(listing.server_time_s * 1000) - LATEST_MARGIN_MS)
    if start.kind is PositionKind.AT_TIMESTAMP:
        stream = await patiently(source.describe, sleep=sleep)
        if start.value > stream.server_time_s * 1000:
            raise ConfigError("option start: expected a time that has passed, found one in the future")
        if start.value > stream.created_s * 1000:
            listing = await patiently(lambda: source.list_shards(start), sleep=sleep)
            return first_offset(listing.shards, start.value)
    listing = await patiently(source.list_shards, sleep=sleep)
    return first_offset(listing.shards, 0)
