"""Attribute values: read, brought to one form, measured and compared.

A value is a dict of one entry, as on the wire: ``{"S": "text"}``. In its one form numbers are written plainly, sets are
sorted and binaries are bytes, so that two values are equal exactly if their dicts are. Values are never changed in
place. Sizes are bytes.
Source: data types, item sizes and quotas of DynamoDB's developer guide; sentences as AWS answers them.
"""

import re
from base64 import b64decode
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

from kcl_py.local.dynamo.errors import Refusal, invalid, invalid_value

Value: TypeAlias = dict[str, Any]
Item: TypeAlias = dict[str, Value]

MOST_DIGITS = 38
MOST_LEVELS = 32
ITEM_BYTES = 400 * 1024
_LARGEST, _SMALLEST = 125, -130
"""Exponents of ten."""
_CONTAINER_BYTES, _MEMBER_BYTES = 3, 1
ORDERED = frozenset({"S", "N", "B"})
"""Types whose values are less or greater than others."""

_PLAIN = re.compile(r"-?[1-9][0-9]{0,37}|0")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")
_SETS = {"SS": "S", "NS": "N", "BS": "B"}
_EMPTY_SET = {
    "SS": "An string set  may not be empty",
    "NS": "An number set  may not be empty",
    "BS": "Binary sets should not be empty",
}


def read_item(raw: Mapping[str, Any]) -> Item:
    """Bring an item or a key to its one form. Raises Refusal."""
    return {name: read_value(value) for name, value in raw.items()}


def read_value(raw: Mapping[str, Any], level: int = 0) -> Value:
    """Bring a value to its one form; binaries may be bytes or base64. Raises Refusal."""
    given = [(kind, data) for kind, data in raw.items() if data is not None]
    if len(given) != 1:
        how = "is empty" if not given else "has more than one datatypes set"
        raise invalid(f"Supplied AttributeValue {how}, must contain exactly one of the supported datatypes")
    [(kind, data)] = given
    if kind == "S":
        return {"S": data}
    if kind in ("M", "L"):
        return _read_container(kind, data, level + 1)
    if kind == "NULL" and not data:
        raise invalid_value("Null attribute value types must have the value of true")
    if kind in _SETS:
        return {kind: _read_set(kind, data)}
    return {kind: _read_scalar(kind, data)}


def _read_container(kind: str, data: Any, level: int) -> Value:
    if level > MOST_LEVELS:
        raise invalid("Nesting Levels have exceeded supported limits")
    if kind == "M":
        return {"M": {name: read_value(one, level) for name, one in data.items()}}
    return {"L": [read_value(one, level) for one in data]}


def _read_scalar(kind: str, data: Any) -> Any:
    if kind == "N":
        return plain(data)
    if kind == "B":
        return b64decode(data) if isinstance(data, str) else bytes(data)
    return data


def _read_set(kind: str, data: list[Any]) -> list[Any]:
    if not data:
        raise invalid_value(_EMPTY_SET[kind])
    members = [_read_scalar(_SETS[kind], one) for one in data]
    if len(set(members)) < len(members):
        which = (
            "Input collection contains" if kind == "NS" else f"Input collection [{', '.join(map(str, data))}] contains"
        )
        raise invalid_value(f"{which} duplicates" + ("" if kind == "NS" else "."))
    return in_set_order(kind, members)


def in_set_order(kind: str, members: Any) -> list[Any]:
    """Return the members of a set in the order in which it is kept."""
    return sorted(members, key=Decimal if kind == "NS" else None)


def plain(text: str) -> str:
    """Return a number in the form that DynamoDB gives back: no exponent, no needless zeros. Raises Refusal."""
    if _PLAIN.fullmatch(text):
        return text
    if not _NUMBER.fullmatch(text):
        raise invalid("The parameter cannot be converted to a numeric value" + (f": {text}" if text else ""))
    return plain_decimal(Decimal(text))


def plain_decimal(number: Decimal) -> str:
    """Return ``number`` as text. Raises Refusal if DynamoDB cannot hold it."""
    if not number:
        return "0"
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)  # neither infinite nor NaN
    kept = "".join(map(str, digits)).rstrip("0")
    if number.adjusted() > _LARGEST:
        raise invalid("Number overflow. Attempting to store a number with magnitude larger than supported range")
    if number.adjusted() < _SMALLEST:
        raise invalid("Number underflow. Attempting to store a number with magnitude smaller than supported range")
    if len(kept.lstrip("0")) > MOST_DIGITS:
        raise invalid("Attempting to store more than 38 significant digits in a Number")
    exponent += len(digits) - len(kept)
    return format(Decimal((sign, tuple(map(int, kept)), exponent)), "f")


def is_number(text: str) -> bool:
    """Tell whether ``text`` is a number that DynamoDB can hold."""
    try:
        plain(text)
    except (Refusal, InvalidOperation):
        return False
    return True


def rank(value: Value) -> Any:
    """Return what orders a value among those of its type, one of ``ORDERED``."""
    [(kind, data)] = value.items()
    return Decimal(data) if kind == "N" else data


def kind_of(value: Value) -> str:
    """Return the name of its type."""
    return next(iter(value))


def item_bytes(item: Mapping[str, Value]) -> int:
    """Return the size that counts for limits and capacity."""
    return sum([_text_bytes(name) + _value_bytes(value) for name, value in item.items()])


def _value_bytes(value: Value) -> int:
    [(kind, data)] = value.items()
    if kind == "M":
        return _CONTAINER_BYTES + _MEMBER_BYTES * len(data) + item_bytes(data)
    if kind == "L":
        return _CONTAINER_BYTES + sum([_MEMBER_BYTES + _value_bytes(one) for one in data])
    if kind in _SETS:
        return sum([_scalar_bytes(_SETS[kind], one) for one in data])
    return _scalar_bytes(kind, data)


def _scalar_bytes(kind: str, data: Any) -> int:
    if kind == "S":
        return _text_bytes(data)
    if kind == "N":
        digits: str = data.replace(".", "").replace("-", "").strip("0")
        return (len(digits) + 1) // 2 + (2 if data[0] == "-" else 1)
    return len(bytes(data)) if kind == "B" else 1


def _text_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
