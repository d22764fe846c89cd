"""What a Query looks for: one partition, and a range within it. Sentences as AWS answers them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kcl_py.local.dynamo.conditions import And, Attribute, BeginsWith, Between, Compare, Condition, Placeholder
from kcl_py.local.dynamo.errors import Refusal, invalid, invalid_value
from kcl_py.local.dynamo.expressions import Expressions
from kcl_py.local.dynamo.keys import KeySchema
from kcl_py.local.dynamo.values import Value


@dataclass(frozen=True, slots=True)
class Wanted:
    """The partition's key and, if given, the condition on the sort key."""

    partition: Value
    sort: Condition | None


def read_wanted(expressions: Expressions, schema: KeySchema) -> Wanted:
    """Read a key condition. Raises Refusal unless it fits the keys."""
    if expressions.key_condition is None:
        raise invalid("Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.")
    by_name: dict[str, Condition] = {}
    for part in _parts(expressions.key_condition):
        name, operands = _about(part)
        if name in by_name:
            raise _fault("KeyConditionExpressions must only contain one condition per key")
        by_name[name] = part
        _check_types(name, operands, schema, expressions.values)
    first = by_name.pop(schema.names[0], None)
    if first is None:
        raise invalid(f"Query condition missed key schema element: {schema.names[0]}")
    if not isinstance(first, Compare) or first.sign != "=":
        raise invalid("Query key condition not supported")
    sort = by_name.pop(schema.names[1], None) if len(schema.names) > 1 else None
    if by_name:
        missed = schema.names[-1] if len(schema.names) > 1 and sort is None else None
        raise invalid(
            f"Query condition missed key schema element: {missed}" if missed else "Query key condition not supported"
        )
    assert isinstance(first.right, Placeholder)
    return Wanted(expressions.values[first.right.name], sort)


def _parts(condition: Condition) -> Iterator[Condition]:
    if isinstance(condition, And):
        for part in condition.parts:
            yield from _parts(part)
    else:
        yield condition


def _about(part: Condition) -> tuple[str, list[Placeholder]]:
    """Return the attribute that a part is about, and the values that it names."""
    match part:
        case Compare(sign, Attribute(path), Placeholder() as value) if sign != "<>":
            operands = [value]
        case Between(Attribute(path), Placeholder() as low, Placeholder() as high):
            operands = [low, high]
        case BeginsWith(Attribute(path), Placeholder() as prefix):
            operands = [prefix]
        case Compare("<>") | Compare(left=Attribute(), right=Placeholder()):
            raise _fault("Invalid operator used in KeyConditionExpression: <>", plain=True)
        case Compare() | Between() | BeginsWith():
            raise _fault("Multiple attribute names used in one condition")
        case _:
            name = type(part).__name__.upper()
            raise _fault(f"Invalid operator used in KeyConditionExpression: {name}", plain=True)
    if len(path) != 1:
        raise _fault("KeyConditionExpressions cannot have conditions on nested attributes")
    return str(path[0]), operands


def _check_types(name: str, operands: list[Placeholder], schema: KeySchema, values: Mapping[str, Value]) -> None:
    kinds = dict(zip(schema.names, schema.kinds, strict=True))
    for operand in operands:
        value: Mapping[str, Any] = values[operand.name]
        if name in kinds and kinds[name] not in value:
            raise invalid_value("Condition parameter type does not match schema type")
        if name in kinds and value[kinds[name]] in ("", b""):
            raise invalid(
                "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an "
                f"empty string value. Key: {name}"
            )


def _fault(message: str, *, plain: bool = False) -> Refusal:
    return invalid(message if plain else f"Invalid KeyConditionExpression: {message}")
