"""Conditions on an item, as a tree: parsed once, asked often.

A condition knows its placeholders' names, not their values; ``holds`` is given both item and values. What an item lacks
or has in another type makes a condition false, never an error.
Source: the operators and functions of DynamoDB's developer guide.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from kcl_py.local.dynamo.paths import Path, find
from kcl_py.local.dynamo.values import ORDERED, Item, Value, kind_of, rank

Values: TypeAlias = Mapping[str, Value]

ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Operand(Protocol):
    """Something in an expression that has a value, or none in this item."""

    def read(self, item: Item, values: Values) -> Value | None: ...


class Condition(Protocol):
    """Something that an item fulfils or not."""

    def holds(self, item: Item, values: Values) -> bool: ...


@dataclass(frozen=True, slots=True)
class Attribute:
    """What the item has at a path."""

    path: Path

    def read(self, item: Item, values: Values) -> Value | None:
        return find(item, self.path)


@dataclass(frozen=True, slots=True)
class Placeholder:
    """One of the request's values."""

    name: str

    def read(self, item: Item, values: Values) -> Value | None:
        return values[self.name]


@dataclass(frozen=True, slots=True)
class Size:
    """The length of a text, a binary, a set, a list or a map."""

    of: Operand

    def read(self, item: Item, values: Values) -> Value | None:
        value = self.of.read(item, values)
        if value is None or kind_of(value) in ("N", "BOOL", "NULL"):
            return None
        [data] = value.values()
        return {"N": str(len(data))}


@dataclass(frozen=True, slots=True)
class Compare:
    """``=``, ``<>`` or an order. What is missing equals nothing, not even what is missing too."""

    sign: str
    left: Operand
    right: Operand

    def holds(self, item: Item, values: Values) -> bool:
        left, right = self.left.read(item, values), self.right.read(item, values)
        if self.sign == "=":
            return left is not None and left == right
        if self.sign == "<>":
            return left is None or left != right
        return is_ordered(self.sign, left, right)


def is_ordered(sign: str, left: Value | None, right: Value | None) -> bool:
    """Tell whether both are there, of one type that has an order, and in this order."""
    if left is None or right is None:
        return False
    kind = kind_of(left)
    return kind in ORDERED and kind in right and ORDERS[sign](rank(left), rank(right))


@dataclass(frozen=True, slots=True)
class Between:
    """Both bounds are included."""

    operand: Operand
    low: Operand
    high: Operand

    def holds(self, item: Item, values: Values) -> bool:
        value = self.operand.read(item, values)
        return is_ordered("<=", self.low.read(item, values), value) and is_ordered(
            "<=", value, self.high.read(item, values)
        )


@dataclass(frozen=True, slots=True)
class In:
    """Equal to one of several."""

    operand: Operand
    choices: tuple[Operand, ...]

    def holds(self, item: Item, values: Values) -> bool:
        value = self.operand.read(item, values)
        return value is not None and any(value == choice.read(item, values) for choice in self.choices)


@dataclass(frozen=True, slots=True)
class Exists:
    """``attribute_exists`` and, turned round, ``attribute_not_exists``."""

    path: Path
    expected: bool

    def holds(self, item: Item, values: Values) -> bool:
        return (find(item, self.path) is not None) is self.expected


@dataclass(frozen=True, slots=True)
class TypeIs:
    """``attribute_type``."""

    operand: Operand
    kind: Placeholder

    def holds(self, item: Item, values: Values) -> bool:
        value = self.operand.read(item, values)
        return value is not None and values[self.kind.name]["S"] in value


@dataclass(frozen=True, slots=True)
class BeginsWith:
    """A text or binary that begins with another."""

    operand: Operand
    prefix: Operand

    def holds(self, item: Item, values: Values) -> bool:
        value, prefix = self.operand.read(item, values), self.prefix.read(item, values)
        if value is None or prefix is None:
            return False
        [(kind, data)] = value.items()
        return kind in ("S", "B") and kind in prefix and data.startswith(prefix[kind])


@dataclass(frozen=True, slots=True)
class Contains:
    """A part of a text or binary, a member of a set or list."""

    operand: Operand
    member: Operand

    def holds(self, item: Item, values: Values) -> bool:
        value, member = self.operand.read(item, values), self.member.read(item, values)
        if value is None or member is None:
            return False
        [(kind, data)] = value.items()
        [(member_kind, member_data)] = member.items()
        if kind == "L":
            return member in data
        return kind in (member_kind, member_kind + "S") and kind in ("S", "B", "SS", "NS", "BS") and member_data in data


@dataclass(frozen=True, slots=True)
class And:
    """All of them."""

    parts: tuple[Condition, ...]

    def holds(self, item: Item, values: Values) -> bool:
        return all(part.holds(item, values) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Or:
    """One of them at least."""

    parts: tuple[Condition, ...]

    def holds(self, item: Item, values: Values) -> bool:
        return any(part.holds(item, values) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite."""

    part: Condition

    def holds(self, item: Item, values: Values) -> bool:
        return not self.part.holds(item, values)
