"""Refusals as they travel: JSON from Kinesis and DynamoDB, XML from S3."""

from xml.sax.saxutils import escape

import msgspec

from kcl_py.local.errors import ModelError
from kcl_py.local.http import HttpReply

_encode = msgspec.json.Encoder().encode


def refused_json(error: ModelError) -> HttpReply:
    """Return a refusal of Kinesis or DynamoDB."""
    return error.status, {}, _encode({"__type": error.code, "message": error.message})


def refused_s3(error: ModelError) -> HttpReply:
    """Return a refusal of S3."""
    code, message = escape(error.code), escape(error.message)
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>'
    return error.status, {"Content-Type": "application/xml"}, body.encode()
