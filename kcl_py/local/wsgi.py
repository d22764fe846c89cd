"""A WSGI application behind an asyncio server: one request at a time, in one thread of its own.

Applications such as moto keep their state in plain objects, read and written with nothing between to hold off another
thread; a single thread makes each request whole.
"""

import asyncio
import io
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeAlias
from urllib.parse import unquote_to_bytes

from kcl_py.local.http import HttpReply, HttpRequest

Wsgi: TypeAlias = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class ApplicationError(Exception):
    """The application raised an exception instead of answering; which one is its text and its cause."""


class OneThread:
    """Everything of the application happens in one thread, its import included; ``close`` ends it.

    Args:
        make: imports and returns the application; called once, in that thread.
        name: of the thread.
    """

    def __init__(self, make: Callable[[], Wsgi], *, name: str) -> None:
        self._make, self._thread = make, ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._app: Future[Wsgi] | None = None

    def load(self) -> None:
        """Begin to import the application; requests wait for it. A second call does nothing."""
        if self._app is None:
            self._app = self._thread.submit(self._make)

    async def answer(self, request: HttpRequest, headers: Mapping[str, str]) -> HttpReply:
        """Answer one request with these headers instead of its own.

        Raises:
            ApplicationError: the application did not answer.
            Exception: it could not be made; ImportError, say.
        """
        self.load()
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._answer, request, headers)

    def close(self) -> None:
        """Give up what waits; what runs ends by itself."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _answer(self, request: HttpRequest, headers: Mapping[str, str]) -> HttpReply:
        assert self._app is not None  # load came first, in this same thread
        app = self._app.result()
        started: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:
            started.append((status, headers))

        try:
            body = b"".join(app(environ(request, headers), start_response))
        except Exception as error:  # as it is it could not pass: a StopIteration would leave the caller waiting
            raise ApplicationError(repr(error)) from error
        status, replied = started[-1]
        return int(status.split()[0]), dict(replied), body


def environ(request: HttpRequest, headers: Mapping[str, str]) -> dict[str, Any]:
    """Return ``request`` as WSGI wants it (PEP 3333), with ``headers``."""
    named = {name.upper().replace("-", "_"): value for name, value in headers.items()}
    content_type = named.pop("CONTENT_TYPE", "")
    host, _, port = headers.get("Host", "127.0.0.1:80").partition(":")
    return {
        **{f"HTTP_{name}": value for name, value in named.items() if name != "CONTENT_LENGTH"},
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(request.path).decode("latin-1"),
        "RAW_URI": request.path,
        "QUERY_STRING": request.query,
        "SERVER_NAME": host,
        "SERVER_PORT": port or "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "CONTENT_TYPE": content_type,
        "CONTENT_LENGTH": str(len(request.body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(request.body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
