"""Plain values on DynamoDB's wire, and back.

Pure. Numbers keep their kind: an integer stays an int, all else becomes a float; sets become frozensets.
Source: the data types of DynamoDB's API reference.
"""

import base64
from collections.abc import Mapping, Set
from decimal import Decimal
from typing import Any

Attribute = Mapping[str, Any]
"""A value as DynamoDB's API has it: ``{"S": "text"}``."""


def encode(value: object) -> Attribute:
    """Write one value. Raises TypeError for what DynamoDB cannot hold."""
    match value:
        case str():
            return {"S": value}
        case bool():
            return {"BOOL": value}
        case int() | float():
            return {"N": repr(value)}
        case bytes():
            return {"B": value}
        case Decimal():
            return {"N": str(value)}
        case None:
            return {"NULL": True}
        case set() | frozenset():
            return _encode_set(value)
        case Mapping():
            return {"M": {str(name): encode(one) for name, one in value.items()}}
        case list() | tuple():
            return {"L": [encode(one) for one in value]}
    raise TypeError(f"cannot store a {type(value).__name__}: expected str, number, bytes, set, map or list")


def _encode_set(members: Set[Any]) -> Attribute:
    [kind] = {kind for member in members for kind in encode(member)} or {"S"}
    if kind not in ("S", "N", "B"):
        raise TypeError(f"cannot store a set of {kind}: expected strings, numbers or bytes")
    return {f"{kind}S": [value for member in sorted(members) for value in encode(member).values()]}


def decode(attribute: Attribute) -> Any:
    """Read one value."""
    [(kind, value)] = attribute.items()
    match kind:
        case "S" | "BOOL":
            return value
        case "N":
            return number(value)
        case "B":
            return _bytes(value)
        case "SS":
            return frozenset(value)
        case "NS":
            return frozenset(map(number, value))
        case "BS":
            return frozenset(map(_bytes, value))
        case "M":
            return decode_item(value)
        case "L":
            return [decode(one) for one in value]
    return None


def encode_item(item: Mapping[str, Any]) -> dict[str, Attribute]:
    """Write an item or map."""
    return {name: encode(value) for name, value in item.items()}


def decode_item(item: Mapping[str, Attribute]) -> dict[str, Any]:
    """Read an item or map."""
    return {name: decode(attribute) for name, attribute in item.items()}


def number(text: str) -> int | float:
    """Read a number as DynamoDB writes it."""
    try:
        return int(text)
    except ValueError:
        return float(text)


def _bytes(value: bytes | str) -> bytes:
    return base64.b64decode(value) if isinstance(value, str) else bytes(value)
