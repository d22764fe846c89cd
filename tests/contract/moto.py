"""moto's DynamoDB under contract: in this process, one request at a time.

moto's conditional writes are a read and a write with nothing between them to hold off another thread, so two writers
could both win; a single thread makes each request whole.
"""

import asyncio
import io
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeAlias

import msgspec

from kcl_py.local.dynamodb import HttpReply, HttpRequest
from kcl_py.local.errors import ModelError
from kcl_py.local.shape import Api
from kcl_py.local.stream import ACCOUNT

Wsgi: TypeAlias = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class MotoDynamoDB:
    """A ``Handler``. Everything of moto, its import included, happens in one thread of its own; ``close`` ends it.

    moto keeps its tables for the whole process: one that is loaded anew begins without any, and two at once share them.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="dynamodb")
        self._app: Future[tuple[Api, Wsgi]] | None = None

    def load(self) -> None:
        """Begin to import moto, which takes about a second; requests wait for it. A second call does nothing."""
        if self._app is None:
            self._app = self._thread.submit(_moto)

    async def __call__(self, request: HttpRequest) -> HttpReply:
        """Answer one request; begins to load moto if nobody has. Raises ImportError without the extra ``local``."""
        self.load()
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._answer, request)

    def close(self) -> None:
        """Give up what waits; what runs ends by itself."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _answer(self, request: HttpRequest) -> HttpReply:
        assert self._app is not None  # load came first, in this same thread
        api, app = self._app.result()
        started: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:
            started.append((status, headers))

        target = request.headers.get("X-Amz-Target", "")
        try:
            api.read(target.partition(".")[2], request.body)
            body = b"".join(app(_environ(target, request), start_response))
        except ModelError as refusal:
            return _failed(refusal)
        except Exception as error:  # moto checks little: nearly always the request is to blame, and never the network
            return _failed(ModelError("ValidationException", f"moto cannot answer this: {error!r}"))
        status, headers = started[-1]
        return int(status.split()[0]), dict(headers), body


def _moto() -> tuple[Api, Wsgi]:
    from moto.backends import get_backend
    from moto.moto_server.werkzeug_app import create_backend_app

    get_backend("dynamodb")[ACCOUNT].reset()
    return Api("dynamodb"), create_backend_app("dynamodb")


def _failed(error: ModelError) -> HttpReply:
    return error.status, {}, msgspec.json.encode({"__type": error.code, "message": error.message})


def _environ(target: str, request: HttpRequest) -> dict[str, Any]:
    """Return ``request`` as WSGI wants it (PEP 3333): always in the same account and, as moto is told no other, region.

    So of its headers only those are passed on that say what is asked for.
    """
    return {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": request.path,
        "QUERY_STRING": "",
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "CONTENT_TYPE": request.headers.get("Content-Type", ""),
        "CONTENT_LENGTH": str(len(request.body)),
        "HTTP_X_AMZ_TARGET": target,
        "HTTP_X_MOTO_ACCOUNT_ID": ACCOUNT,
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(request.body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
