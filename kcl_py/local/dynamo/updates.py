"""What an update expression makes of an item, as a tree like a condition's.

Everything is read from the item as it was; only then it changes.
Source: update expressions in DynamoDB's developer guide.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, TypeAlias

from kcl_py.local.dynamo.conditions import Operand, Values
from kcl_py.local.dynamo.errors import Refusal, invalid
from kcl_py.local.dynamo.paths import Path, assign, find, remove
from kcl_py.local.dynamo.values import MOST_DIGITS, Item, Value, in_set_order, kind_of, plain_decimal

_EXACT = Context(prec=MOST_DIGITS + 260)
"""Room for the sum of the largest and the smallest number."""

Changes: TypeAlias = Iterator[tuple[Path, Value | None]]
"""What comes where; None takes away."""


@dataclass(frozen=True, slots=True)
class Sum:
    """``+`` or ``-``; of numbers only."""

    sign: str
    left: Operand
    right: Operand

    def read(self, item: Item, values: Values) -> Value | None:
        left, right = must_read(self.left, item, values), must_read(self.right, item, values)
        return _sum(left, right, sign=self.sign)


@dataclass(frozen=True, slots=True)
class IfNotExists:
    """What is at a path, else another operand."""

    path: Path
    other: Operand

    def read(self, item: Item, values: Values) -> Value | None:
        found = find(item, self.path)
        return self.other.read(item, values) if found is None else found


@dataclass(frozen=True, slots=True)
class ListAppend:
    """Two lists as one."""

    first: Operand
    second: Operand

    def read(self, item: Item, values: Values) -> Value | None:
        first, second = must_read(self.first, item, values), must_read(self.second, item, values)
        if "L" not in first or "L" not in second:
            raise wrong_operand()
        return {"L": first["L"] + second["L"]}


@dataclass(frozen=True, slots=True)
class Update:
    """The four sections of an update expression; ``adds`` and ``deletes`` name their values."""

    sets: tuple[tuple[Path, Operand], ...] = ()
    removes: tuple[Path, ...] = ()
    adds: tuple[tuple[Path, str], ...] = ()
    deletes: tuple[tuple[Path, str], ...] = ()

    @property
    def paths(self) -> list[Path]:
        """Every path that may change."""
        return [*(p for p, _ in self.sets), *self.removes, *(p for p, _ in self.adds), *(p for p, _ in self.deletes)]

    def makes_items(self) -> bool:
        """Tell whether it makes an item where there is none: taking away makes nothing."""
        return bool(self.sets or self.adds)

    def apply(self, item: Item, values: Values) -> Item:
        """Return the changed item. Raises Refusal: a path or a type does not fit, something is missing."""
        changes = [*self._set(item, values), *self._add(item, values), *self._delete(item, values)]
        for path, value in sorted((change for change in changes if change[1]), key=_place_in_list):
            item = assign(item, path, value)  # type: ignore[arg-type]  # the others are not among these
        gone = [*self.removes, *(path for path, value in changes if value is None)]
        for path in sorted(gone, key=_from_the_end, reverse=True):
            item = remove(item, path)
        return item

    def _set(self, item: Item, values: Values) -> Changes:
        for path, operand in self.sets:
            yield path, must_read(operand, item, values)

    def _add(self, item: Item, values: Values) -> Changes:
        for path, name in self.adds:
            yield path, _added(find(item, path), values[name])

    def _delete(self, item: Item, values: Values) -> Changes:
        for path, name in self.deletes:
            found = find(item, path)
            if found is not None:
                yield path, _without(found, values[name])


def _place_in_list(change: tuple[Path, Any]) -> int:
    """Elements beyond a list's end are appended in the order of their indexes."""
    last = change[0][-1]
    return last if isinstance(last, int) else -1


def _from_the_end(path: Path) -> list[tuple[int, str]]:
    """Taken from the end, removals leave the indexes of those still to come as they are."""
    return [(step, "") if isinstance(step, int) else (-1, step) for step in path]


def must_read(operand: Operand, item: Item, values: Values) -> Value:
    """Return the operand's value. Raises Refusal if the item has none."""
    value = operand.read(item, values)
    if value is None:
        raise invalid("The provided expression refers to an attribute that does not exist in the item")
    return value


def wrong_operand() -> Refusal:
    """Return what is said about a value in the item that an operator cannot take."""
    return invalid("An operand in the update expression has an incorrect data type")


def _sum(left: Value, right: Value, *, sign: str) -> Value:
    if "N" not in left or "N" not in right:
        raise wrong_operand()
    one, other = Decimal(left["N"]), Decimal(right["N"])
    return {"N": plain_decimal(_EXACT.add(one, other) if sign == "+" else _EXACT.subtract(one, other))}


def _added(found: Value | None, more: Value) -> Value:
    if found is None:
        return more
    if "N" in more:
        return _sum(found, more, sign="+")
    kind = kind_of(more)
    if kind not in found:
        raise wrong_operand()
    return {kind: in_set_order(kind, {*found[kind], *more[kind]})}


def _without(found: Value, less: Value) -> Value | None:
    kind = kind_of(less)
    if kind not in found:
        raise wrong_operand()
    kept = [one for one in found[kind] if one not in less[kind]]
    return {kind: kept} if kept else None
