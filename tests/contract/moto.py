"""moto's DynamoDB under contract: in this process, one request at a time, so that its conditional writes are whole."""

from kcl_py.local.errors import ModelError
from kcl_py.local.http import HttpReply, HttpRequest
from kcl_py.local.replies import refused_json
from kcl_py.local.shape import api
from kcl_py.local.stream import ACCOUNT
from kcl_py.local.wsgi import ApplicationError, OneThread, Wsgi


class MotoDynamoDB:
    """A ``Handler``. Everything of moto, its import included, happens in one thread of its own; ``close`` ends it.

    moto keeps its tables for the whole process: one that is loaded anew begins without any, and two at once share them.
    """

    def __init__(self) -> None:
        self._moto = OneThread(_moto, name="dynamodb")

    def load(self) -> None:
        """Begin to import moto, which takes about a second; requests wait for it. A second call does nothing."""
        self._moto.load()

    async def __call__(self, request: HttpRequest) -> HttpReply:
        """Answer one request, always in the same account and, as moto is told no other, region.

        So of its headers only those are passed on that say what is asked for.
        """
        target = request.headers.get("X-Amz-Target", "")
        headers = {
            "Content-Type": request.headers.get("Content-Type", ""),
            "X-Amz-Target": target,
            "X-Moto-Account-Id": ACCOUNT,
        }
        try:
            api("dynamodb").read(target.partition(".")[2], request.body)
            return await self._moto.answer(request, headers)
        except ModelError as refusal:
            return refused_json(refusal)
        except ApplicationError as error:  # moto checks little: nearly always the request is to blame
            return refused_json(ModelError("ValidationException", f"moto cannot answer this: {error}"))

    def close(self) -> None:
        """Give up what waits; what runs ends by itself."""
        self._moto.close()


def _moto() -> Wsgi:
    from moto.backends import get_backend
    from moto.moto_server.werkzeug_app import create_backend_app

    get_backend("dynamodb")[ACCOUNT].reset()
    return create_backend_app("dynamodb")
