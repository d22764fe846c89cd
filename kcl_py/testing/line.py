"""The line from one worker to AWS: faults happen on it, silence ends, and a crash cuts it.

Silence is measured by the clock of the test, so that a request which hangs takes no real time.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from anyio.lowlevel import checkpoint
from botocore.exceptions import EndpointConnectionError, ReadTimeoutError

from actors.testing import ManualClock
from kcl_py.local.faults.client import FaultyClient
from kcl_py.local.faults.faults import Faults

SILENCE_S = 10.0
"""How long a client waits for a reply; who sends a request may have less patience. Source: ``kcl_py.sessions``."""


class Line:
    """What all clients of one worker go through.

    Args:
        faults: what goes wrong.
        clock: of the test.
    """

    def __init__(self, faults: Faults, clock: ManualClock) -> None:
        self._faults, self.clock = faults, clock
        self.is_cut = False
        """Whether the worker is dead: nothing that it sends has an effect."""

    def client(self, service: str, client: Any) -> Any:
        """Return the client of a model, of ``kinesis`` or ``dynamodb``, as it is at this end of the line."""
        return _Client(self, FaultyClient(client, service, self._faults, clock=self.clock), f"memory://{service}")


class _Client:
    def __init__(self, line: Line, client: FaultyClient, url: str) -> None:
        self._line, self._client, self._url = line, client, url

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method, line, url = getattr(self._client, name), self._line, self._url

        async def call(**params: Any) -> Any:
            if line.is_cut:
                await checkpoint()
                raise EndpointConnectionError(endpoint_url=url)
            reply = None
            with line.clock.awaited(), line.clock.move_on_after(SILENCE_S) as limit:
                reply = await method(**params)
            if limit.cancelled_caught:
                raise ReadTimeoutError(endpoint_url=url)
            return reply

        return call
