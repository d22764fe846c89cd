"""Services of moto for the local AWS; one is loaded by its first request and takes about a second for it.

moto keeps what it has for the whole process: a service that is loaded anew begins without anything, and two at once
share it.
"""

from collections.abc import Callable
from typing import Literal

from kcl_py.local.errors import ModelError
from kcl_py.local.http import HttpReply, HttpRequest
from kcl_py.local.stream import ACCOUNT
from kcl_py.local.wsgi import ApplicationError, OneThread, Wsgi

_NOT_PASSED_ON = frozenset({"connection", "expect", "transfer-encoding"})
"""About the connection that the request came on."""
_NOT_PASSED_BACK = frozenset({"connection", "content-length", "date", "server", "transfer-encoding"})
"""The server's own business."""


class Moto:
    """A ``Handler``, with what is one account's. ``close`` ends it.

    Args:
        service: which one.
        content_type: of replies that do not say theirs.
        refused: makes the reply of a refusal.
    """

    def __init__(
        self, service: Literal["s3", "sqs"], content_type: str, refused: Callable[[ModelError], HttpReply]
    ) -> None:
        self._service, self._content_type, self._refused = service, content_type, refused
        self._moto = OneThread(self._app, name=service)

    async def __call__(self, request: HttpRequest) -> HttpReply:
        """Answer one request."""
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _NOT_PASSED_ON}
        try:
            status, replied, body = await self._moto.answer(request, headers | {"X-Moto-Account-Id": ACCOUNT})
        except ImportError as error:
            service = self._service.upper()
            return self._refused(
                ModelError(
                    "NotImplemented", f"cannot serve {service}: {error}; install the extra 'local' of kcl-py", 501
                )
            )
        except ApplicationError as error:  # moto checks little: nearly always the request is to blame
            return self._refused(ModelError("InvalidRequest", f"moto cannot answer this: {error}"))
        names = {name.lower(): value for name, value in replied.items()}
        kept = {name: value for name, value in names.items() if name not in _NOT_PASSED_BACK}
        if request.method == "HEAD" and "content-length" in names:  # the size of what is not sent
            kept["content-length"] = names["content-length"]
        return status, {"content-type": self._content_type} | kept, body

    def close(self) -> None:
        """Give up what waits; what runs ends by itself."""
        self._moto.close()

    def _app(self) -> Wsgi:
        from moto.backends import get_backend
        from moto.moto_server.werkzeug_app import create_backend_app

        for account in get_backend(self._service).values():  # its own reset is of all services
            account.reset()
        return create_backend_app(self._service)
