"""The line from one worker to AWS: faults happen on it, silence ends at a deadline, and a crash cuts it.

Deadlines are seconds of the clock of the test, so that a request that hangs takes no time of the day.
"""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import anyio
from anyio.lowlevel import checkpoint
from botocore.exceptions import EndpointConnectionError, ReadTimeoutError

from actors import Clock
from kcl_py.local.faults.client import FaultyClient
from kcl_py.local.faults.faults import Faults

T = TypeVar("T")


class Line:
    """What all clients of one worker go through.

    Args:
        faults: what goes wrong.
        clock: of the test.
    """

    def __init__(self, faults: Faults, clock: Clock) -> None:
        self._faults, self._clock = faults, clock
        self.is_cut = False
        """Whether the worker is dead: nothing that it sends has an effect."""

    def client(self, service: str, client: Any, deadline_s: Callable[[str], float]) -> Any:
        """Return ``client`` as it is at the other end of this line.

        Args:
            service: kinesis or dynamodb.
            client: of the model.
            deadline_s: how long a reply is waited for, by the name of the client's method.
        """
        faulty = FaultyClient(client, service, self._faults, clock=self._clock)
        return _Client(self, faulty, f"memory://{service}", deadline_s)

    async def carry(self, work: Coroutine[Any, Any, T], *, url: str, deadline_s: float) -> T:
        """Send a request and wait for its reply.

        Raises:
            EndpointConnectionError: the line is cut; the request had no effect.
            ReadTimeoutError: there was no reply in time.
        """
        if self.is_cut:
            work.close()
            await checkpoint()
            raise EndpointConnectionError(endpoint_url=url)
        if self._faults.is_idle:
            return await work
        return await self._within(deadline_s, work, url)

    async def _within(self, deadline_s: float, work: Awaitable[T], url: str) -> T:
        replies: list[T] = []
        failure: Exception | None = None

        async def give_up() -> None:
            await self._clock.sleep(deadline_s)
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(give_up)
            try:
                replies.append(await work)
            except Exception as error:  # raised below, outside the task group, which would wrap it
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        if not replies:
            raise ReadTimeoutError(endpoint_url=url)
        return replies[0]


class _Client:
    def __init__(self, line: Line, client: FaultyClient, url: str, deadline_s: Callable[[str], float]) -> None:
        self._line, self._client, self._url, self._deadline_s = line, client, url, deadline_s

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._client, name)

        async def call(**params: Any) -> Any:
            return await self._line.carry(method(**params), url=self._url, deadline_s=self._deadline_s(name))

        return call
