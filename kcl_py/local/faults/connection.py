"""What a fault does to the connection of a request, by aiohttp.

Each leaves a response that aiohttp finds nobody to send to.
"""

import socket
import struct
from collections.abc import Mapping

from aiohttp import web

_RESET_AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER: on, with no time."""


def close(request: web.BaseRequest) -> web.Response:
    """Close the connection in order, with nothing sent."""
    if request.transport is not None:
        request.transport.close()
    return web.Response()


def reset(request: web.BaseRequest) -> web.Response:
    """Reset the connection: the caller's next look at it fails."""
    if request.transport is not None:
        request.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_ONCE)
        request.transport.abort()
    return web.Response()


async def cut(request: web.BaseRequest, status: int, headers: Mapping[str, str], body: bytes) -> web.StreamResponse:
    """Announce ``body``, send half of it and close; with nothing to send half of, nothing is announced."""
    if not body or request.method == "HEAD":
        return close(request)
    response = web.StreamResponse(status=status, headers={**headers, "Content-Length": str(len(body))})
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    close(request)
    return response
