"""Requests and replies between the server and the services behind it, without anything of aiohttp."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request as it arrived, its body whole."""

    method: str
    path: str
    """As it was sent, so with its escapes."""
    query: str
    headers: Mapping[str, str]
    body: bytes


HttpReply: TypeAlias = tuple[int, Mapping[str, str], bytes]
"""Status, headers, body."""
Handler: TypeAlias = Callable[[HttpRequest], Awaitable[HttpReply]]
"""What a server needs of a service."""
