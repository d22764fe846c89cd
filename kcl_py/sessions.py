"""Clients of AWS: one session for each profile and role, one client with a connection pool of its own for each use.

The SDK repeats nothing: whoever sends a request decides about another. This module is slow to import (aiobotocore) and
is imported only to connect. aiobotocore's clients are what aioboto3 hands out; going to them directly saves a tenth of
a second of every start. Durations are seconds.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

from aiobotocore.config import AioConfig
from aiobotocore.credentials import (
    AioAssumeRoleCredentialFetcher,
    AioCredentialResolver,
    AioDeferredRefreshableCredentials,
    AioRefreshableCredentials,
)
from aiobotocore.session import AioSession
from botocore.credentials import CredentialProvider
from botocore.exceptions import NoCredentialsError

from actors.clock import Clock
from kcl_py.config import Service, ServiceName

CONNECT_TIMEOUT_S = 3.0
READ_TIMEOUT_S = 10.0
"""Longest silence on a connection. Requests have total deadlines above these two, which name the cause when met."""
CONNECTIONS = 256
"""Of one client: a shard has one read and one write in flight, so this many shards do not wait for each other."""
LOOK_S = 30.0
"""How often it is looked whether credentials end soon."""
RENEWED_BEFORE_S = 14 * 60.0
"""So long before their end they are renewed, or half their life if that is shorter. Source: botocore's fetchers give
what they have in their cache until 15 minutes before its end."""
LAST_S = 60
"""So long before their end a request renews them itself, and waits for that, since nothing else has."""
ROLE_SESSION = "kcl_py"
"""What an assumed role's session is called in AWS's audit logs."""


class Sessions:
    """Makes clients; services with the same profile and role share a session, so credentials are loaded once."""

    def __init__(self) -> None:
        self._made: dict[tuple[str | None, str | None], AioSession] = {}

    @asynccontextmanager
    async def client(self, name: ServiceName, service: Service) -> AsyncIterator[Any]:
        """Yield a client of one service and close it after.

        Raises botocore's errors for a missing region or profile, and ValueError for an endpoint that is none.
        """
        session = self._session(service)
        plain = service.endpoint is not None and service.endpoint.startswith("http:")
        async with session.create_client(
            name,
            region_name=service.region,
            endpoint_url=service.endpoint,
            verify=False if plain else None,  # certificates take a while to load
            config=AioConfig(
                connect_timeout=CONNECT_TIMEOUT_S,
                read_timeout=READ_TIMEOUT_S,
                max_pool_connections=CONNECTIONS,
                retries={"mode": "standard", "total_max_attempts": 1},
            ),
        ) as client:
            yield client

    @asynccontextmanager
    async def kept_fresh(self, clock: Clock) -> AsyncIterator[None]:
        """Renew credentials that end while the block is open, so that no request waits for it.

        A renewal that fails is tried again; until one succeeds, the old credentials stay in use to their end.
        """
        task = asyncio.create_task(self._keep_fresh(clock), name="credentials")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])  # raises what is cancelled here, and not that the task was

    async def _keep_fresh(self, clock: Clock) -> None:
        lives_s: dict[int, float] = {}
        while True:
            for session in tuple(self._made.values()):
                await renew(session, lives_s)
            await clock.sleep(LOOK_S)

    def _session(self, service: Service) -> AioSession:
        key = service.profile, service.role
        if key not in self._made:
            session = AioSession(profile=service.profile)
            if service.role is not None:
                session = _assuming(service.role, session, service.region)
            session.register("creating-serializer.kinesis", _keep_milliseconds)
            self._made[key] = session
        return self._made[key]


async def renew(session: AioSession, lives_s: dict[int, float]) -> None:
    """Renew a session's credentials if they end soon.

    Args:
        session: whose they are; nothing is done to such as never end, or were never used.
        lives_s: how long the credentials of each session were good for when they were first seen, by ``id``.
    """
    try:
        found: object = await session.get_credentials()
    except Exception:  # the next request says what is wrong
        return
    credentials: Any = found if isinstance(found, AioRefreshableCredentials) else None
    if credentials is None or credentials._frozen_credentials is None:
        return
    credentials._advisory_refresh_timeout = credentials._mandatory_refresh_timeout = LAST_S
    left_s = credentials._seconds_remaining()
    life_s = lives_s.setdefault(id(credentials), left_s)
    if left_s < min(RENEWED_BEFORE_S, life_s / 2):
        async with credentials._refresh_lock:
            had = credentials._expiry_time, credentials._frozen_credentials
            with suppress(Exception):  # it is logged, and tried again
                await credentials._protected_refresh(is_mandatory=False)
            if credentials._seconds_remaining() <= 0:  # what was given is over already, as from an old file
                credentials._expiry_time, credentials._frozen_credentials = had
        new_s = credentials._seconds_remaining()
        lives_s[id(credentials)] = new_s if new_s > left_s else life_s


def _keep_milliseconds(serializer_kwargs: dict[str, Any], **_: Any) -> None:
    """Send instants in milliseconds; botocore cuts an AT_TIMESTAMP to whole seconds and would begin too early."""
    serializer_kwargs["timestamp_precision"] = "millisecond"


def _assuming(role: str, base: AioSession, region: str | None) -> AioSession:
    session = AioSession()
    session.register_component("credential_provider", AioCredentialResolver([AssumedRole(role, base, region)]))
    return session


class AssumedRole(CredentialProvider):
    """Credentials of a role, assumed with those of another session."""

    METHOD = "assume-role"
    CANONICAL_NAME = None

    def __init__(self, role: str, base: AioSession, region: str | None) -> None:
        super().__init__(session=base)
        self._role, self._base, self._region = role, base, region

    async def load(self) -> AioDeferredRefreshableCredentials:
        """Return credentials that call STS when first used. Called by botocore, once a session."""
        source = await self._base.get_credentials()
        if source is None:
            raise NoCredentialsError
        sts: Any = partial(self._base.create_client, region_name=self._region)
        fetcher = AioAssumeRoleCredentialFetcher(
            client_creator=sts,
            source_credentials=source,
            role_arn=self._role,
            extra_args={"RoleSessionName": ROLE_SESSION},
        )
        return AioDeferredRefreshableCredentials(fetcher.fetch_credentials, self.METHOD)
