"""DynamoDB for the local AWS, as the server sees it: one awaitable call for each request.

So another DynamoDB can take the model's place.
"""

import msgspec

from kcl_py.local.dynamo.errors import Refusal
from kcl_py.local.dynamo.model import DynamoDB
from kcl_py.local.errors import ModelError
from kcl_py.local.http import HttpReply, HttpRequest

JSON = "application/x-amz-json-1.0"
"""Source: DynamoDB's protocol in botocore's model."""

_encode = msgspec.json.Encoder().encode


class LocalDynamoDB:
    """A ``Handler`` that has the model answer.

    Args:
        model: the service.
    """

    def __init__(self, model: DynamoDB) -> None:
        self._model = model

    async def __call__(self, request: HttpRequest) -> HttpReply:
        """Answer one request."""
        _, _, operation = request.headers.get("X-Amz-Target", "").partition(".")
        try:
            answer = self._model.answer(operation, request.body)
        except ModelError as refusal:
            return refusal.status, {"Content-Type": JSON}, _encode(refused(refusal))
        return 200, {"Content-Type": JSON}, _encode(answer)


def refused(refusal: ModelError) -> dict[str, object]:
    """Return the body of a refusal."""
    more = refusal.more if isinstance(refusal, Refusal) else {}
    return {"__type": refusal.code, "message": refusal.message, **more}
