"""The line from one worker to AWS, which a crash cuts: what a dead worker sends has no effect."""

from collections.abc import Awaitable, Callable
from typing import Any

from anyio.lowlevel import checkpoint
from botocore.exceptions import EndpointConnectionError


class Line:
    """What all clients of one worker go through."""

    def __init__(self) -> None:
        self.is_cut = False

    def client(self, client: Any) -> Any:
        """Return ``client`` at the other end of this line."""
        return _Client(client, self)


class _Client:
    def __init__(self, client: Any, line: Line) -> None:
        self._client, self._line = client, line

    def __getattr__(self, operation: str) -> Callable[..., Awaitable[Any]]:
        call = getattr(self._client, operation)

        async def request(**arguments: Any) -> Any:
            if self._line.is_cut:
                await checkpoint()
                raise EndpointConnectionError(endpoint_url="the worker has crashed")
            return await call(**arguments)

        return request
