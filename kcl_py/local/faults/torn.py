"""Bodies that arrive in part: then aiohttp says so, as aiobotocore lets it through.

aiohttp is imported when that happens.
"""

from collections.abc import AsyncGenerator
from typing import Any, Self


class TornEvents:
    """A stream of events that breaks after the first."""

    def __init__(self, events: Any) -> None:
        self._events = events

    def __getattr__(self, name: str) -> Any:
        return getattr(self._events, name)

    async def __aiter__(self) -> AsyncGenerator[Any, None]:
        try:
            async for event in self._events:
                yield event
                raise _cut()
        finally:
            if hasattr(self._events, "aclose"):  # a generator is not left to the garbage collector
                await self._events.aclose()


class TornBody:
    """What GetObject gives to read, broken off before its end."""

    def __init__(self, body: Any) -> None:
        self._body = body

    def __getattr__(self, name: str) -> Any:
        return getattr(self._body, name)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._body.close()

    async def read(self, amt: int | None = None) -> bytes:
        """Raise ``ClientPayloadError``."""
        raise _cut()

    async def iter_chunks(self, chunk_size: int = 1024) -> AsyncGenerator[bytes, None]:
        """Raise ``ClientPayloadError`` at the first chunk."""
        yield await self.read(chunk_size)

    iter_lines = iter_chunks

    def __aiter__(self) -> AsyncGenerator[bytes, None]:
        return self.iter_chunks()


def _cut() -> Exception:
    from aiohttp import ClientPayloadError

    return ClientPayloadError("Response payload is not completed (injected fault)")
