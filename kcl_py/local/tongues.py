"""CBOR for Kinesis: a request that comes in it is answered in it, and all between is JSON.

Java's SDK speaks it unless told not to. Binaries are byte strings in it, times are whole milliseconds; in JSON they are
base64 and seconds.
"""

from base64 import b64decode, b64encode
from typing import Any

import msgspec

from kcl_py.local import cbor
from kcl_py.local.errors import ModelError
from kcl_py.local.http import HttpReply

CBOR = "application/x-amz-cbor-1.1"
_BINARY = "Data"
"""The one member of Kinesis's API that is binary."""
_TIMES = frozenset({"ApproximateArrivalTimestamp", "ConsumerCreationTimestamp", "StreamCreationTimestamp", "Timestamp"})
"""All members of Kinesis's API that are times."""


def as_json(body: bytes) -> bytes:
    """Return a request in CBOR as it would be in JSON. Raises ModelError: SerializationException."""
    try:
        return msgspec.json.encode(_to_json(cbor.decode(body)))
    except ValueError as error:
        raise ModelError("SerializationException", f"cannot read the body as CBOR: {error}") from None


def as_cbor(reply: HttpReply) -> HttpReply:
    """Return a reply in JSON as it is in CBOR."""
    status, headers, body = reply
    content = cbor.encode(_from_json(msgspec.json.decode(body))) if body else b""
    return status, {**headers, "Content-Type": CBOR}, content


def _to_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, dict):
        return {name: _member_to_json(name, inner) for name, inner in value.items()}
    return [_to_json(inner) for inner in value] if isinstance(value, list) else value


def _member_to_json(name: str, value: Any) -> Any:
    return value / 1000 if name in _TIMES and _is_number(value) else _to_json(value)


def _from_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _member_from_json(name, inner) for name, inner in value.items()}
    return [_from_json(inner) for inner in value] if isinstance(value, list) else value


def _member_from_json(name: str, value: Any) -> Any:
    if name == _BINARY and isinstance(value, str):
        return b64decode(value)
    return cbor.Instant(round(value * 1000)) if name in _TIMES and _is_number(value) else _from_json(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
