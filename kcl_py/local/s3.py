"""S3 for the local AWS: moto's, which is loaded by the first request and takes about a second for it.

moto keeps its buckets for the whole process: one that is loaded anew begins without any, and two at once share them.
"""

from collections.abc import Mapping

from kcl_py.local.errors import ModelError
from kcl_py.local.http import HttpReply, HttpRequest
from kcl_py.local.replies import refused_s3
from kcl_py.local.stream import ACCOUNT
from kcl_py.local.wsgi import ApplicationError, OneThread, Wsgi

_NOT_PASSED_ON = frozenset({"connection", "expect", "transfer-encoding"})
"""About the connection that the request came on."""
_NOT_PASSED_BACK = frozenset({"connection", "content-length", "date", "server", "transfer-encoding"})
"""The server's own business."""


def is_s3(path: str, query: str, headers: Mapping[str, str]) -> bool:
    """Return whether a request that names no service is for S3: by whom it is signed for, else by its path."""
    signed = headers.get("Authorization", "") + query
    if "/aws4_request" in signed or "%2Faws4_request" in signed:
        return "/s3/aws4_request" in signed or "%2Fs3%2Faws4_request" in signed
    return path != "/"


class MotoS3:
    """A ``Handler``, with the buckets of one account. ``close`` ends it."""

    def __init__(self) -> None:
        self._moto = OneThread(_moto, name="s3")

    async def __call__(self, request: HttpRequest) -> HttpReply:
        """Answer one request."""
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _NOT_PASSED_ON}
        try:
            status, replied, body = await self._moto.answer(request, headers | {"X-Moto-Account-Id": ACCOUNT})
        except ImportError as error:
            return refused_s3(
                ModelError("NotImplemented", f"cannot serve S3: {error}; install the extra 'local' of kcl-py", 501)
            )
        except ApplicationError as error:  # moto checks little: nearly always the request is to blame
            return refused_s3(ModelError("InvalidRequest", f"moto cannot answer this: {error}"))
        names = {name.lower(): value for name, value in replied.items()}
        kept = {name: value for name, value in names.items() if name not in _NOT_PASSED_BACK}
        if request.method == "HEAD" and "content-length" in names:  # the size of what is not sent
            kept["content-length"] = names["content-length"]
        return status, {"content-type": "application/xml"} | kept, body

    def close(self) -> None:
        """Give up what waits; what runs ends by itself."""
        self._moto.close()


def _moto() -> Wsgi:
    from moto.backends import get_backend
    from moto.moto_server.werkzeug_app import create_backend_app

    get_backend("s3").reset()
    return create_backend_app("s3")
