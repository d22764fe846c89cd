"""AWS's event stream encoding: how events travel in the body of one answer. Pure.

A message is two lengths and a check sum, headers, a payload, and a check sum of it all.
Source: the encoding as botocore's ``eventstream`` reads it.
"""

from struct import pack
from zlib import crc32

CONTENT_TYPE = "application/vnd.amazon.eventstream"
_PRELUDE_BYTES, _CHECK_BYTES = 12, 4
_STRING = 7


def event(kind: str, payload: bytes) -> bytes:
    """Return the message of an event, such as ``initial-response`` or ``SubscribeToShardEvent``."""
    headers = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    return _message(headers, payload)


def exception(code: str, payload: bytes) -> bytes:
    """Return the message of the exception that a stream ends with."""
    headers = {":exception-type": code, ":content-type": "application/json", ":message-type": "exception"}
    return _message(headers, payload)


def _message(headers: dict[str, str], payload: bytes) -> bytes:
    packed = b"".join(_header(name, value) for name, value in headers.items())
    lengths = pack(">II", _PRELUDE_BYTES + len(packed) + len(payload) + _CHECK_BYTES, len(packed))
    message = lengths + pack(">I", crc32(lengths)) + packed + payload
    return message + pack(">I", crc32(message))


def _header(name: str, value: str) -> bytes:
    return pack(">B", len(name)) + name.encode() + pack(">BH", _STRING, len(value)) + value.encode()
