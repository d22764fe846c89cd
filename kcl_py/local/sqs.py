"""SQS for the local AWS: moto's, which finds the same queues in whatever region."""

import re
from collections.abc import Mapping
from dataclasses import replace

from kcl_py.local.http import HttpReply, HttpRequest
from kcl_py.local.moto import Moto
from kcl_py.local.replies import refused_json

TARGET = "AmazonSQS"
"""Source: SQS's protocol in botocore's model."""
_SIGNED_FOR = re.compile(r"/[^/]+/sqs/aws4_request")


def is_sqs(target: str, headers: Mapping[str, str]) -> bool:
    """Return whether a request is for SQS: by the service it names or, from SDKs older than 2023, is signed for."""
    return target == TARGET or (not target and "/sqs/aws4_request" in headers.get("Authorization", ""))


class MotoSqs(Moto):
    """A ``Handler``, with the queues of one account. ``close`` ends it."""

    def __init__(self) -> None:
        super().__init__("sqs", "application/x-amz-json-1.0", refused_json)

    async def __call__(self, request: HttpRequest) -> HttpReply:
        """Answer one request."""
        signed = _SIGNED_FOR.sub("/us-east-1/sqs/aws4_request", request.headers.get("Authorization", ""))
        return await super().__call__(replace(request, headers={**request.headers, "Authorization": signed}))
