"""The expressions of one request, with its placeholders filled in.

Parsing is done once for a text and its names, then remembered: a worker sends the same few expressions for ever.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kcl_py.local.dynamo.conditions import Condition, Values
from kcl_py.local.dynamo.errors import Refusal, invalid
from kcl_py.local.dynamo.parser import Check, Parser
from kcl_py.local.dynamo.paths import Path
from kcl_py.local.dynamo.tokens import Tokens
from kcl_py.local.dynamo.update_parser import UpdateParser
from kcl_py.local.dynamo.updates import Update
from kcl_py.local.dynamo.values import Item, read_value

EXPRESSION_BYTES = 4096
"""Source: quotas of DynamoDB's developer guide."""
_REMEMBERED = 4096
"""Expressions."""
_LEGACY = (
    "AttributesToGet",
    "AttributeUpdates",
    "ConditionalOperator",
    "Expected",
    "KeyConditions",
    "QueryFilter",
    "ScanFilter",
)

NAMES, VALUES = "ExpressionAttributeNames", "ExpressionAttributeValues"


@dataclass(frozen=True, slots=True)
class Parsed:
    """An expression in general, before it is asked about anything."""

    tree: Any
    names: frozenset[str]
    values: frozenset[str]
    checks: tuple[Check, ...]
    attributes: frozenset[str]
    """The top-level attributes that it names."""


@dataclass(frozen=True, slots=True)
class Expressions:
    """What one request's expressions say; None for one that it does not have."""

    values: Values
    condition: Condition | None = None
    update: Update | None = None
    key_condition: Condition | None = None
    filter: Condition | None = None
    projection: tuple[Path, ...] | None = None
    filtered: frozenset[str] = frozenset()
    """The attributes that the filter looks at."""

    def allows(self, item: Item | None) -> bool:
        """Tell whether the condition, if any, holds for what is there."""
        return self.condition is None or self.condition.holds(item or {}, self.values)


_FIELDS = {
    "ConditionExpression": "condition",
    "UpdateExpression": "update",
    "KeyConditionExpression": "key_condition",
    "FilterExpression": "filter",
    "ProjectionExpression": "projection",
}
_NOTHING = Expressions({})


def read_expressions(request: Mapping[str, Any], *kinds: str) -> Expressions:
    """Read the expressions that a request has of those that it may have. Raises Refusal."""
    for name in _LEGACY:
        if request.get(name) is not None:
            raise invalid(f"The local DynamoDB does not know the legacy parameter {name}; use expressions")
    names, raw = request.get(NAMES), request.get(VALUES)
    texts = [(kind, text) for kind in kinds if (text := request.get(kind)) is not None]
    if not texts:
        if names is not None or raw is not None:
            raise _needless(kinds, NAMES if names is not None else VALUES)
        return _NOTHING
    values = _read_values(raw)
    pairs = _read_names(names)
    parsed = {kind: parse(kind, text, pairs) for kind, text in texts}
    _check_placeholders(parsed, names or {}, values)
    for one in parsed.values():
        for check in one.checks:
            check(values)
    filtered = parsed["FilterExpression"].attributes if "FilterExpression" in parsed else frozenset()
    return Expressions(values, **{_FIELDS[kind]: one.tree for kind, one in parsed.items()}, filtered=filtered)


@lru_cache(_REMEMBERED)
def parse(kind: str, text: str, aliases: tuple[tuple[str, str], ...]) -> Parsed:
    """Read one expression. Raises Refusal."""
    if not text.strip():
        raise invalid(f"Invalid {kind}: The expression can not be empty;")
    if len(text.encode("utf-8", "replace")) > EXPRESSION_BYTES:
        raise invalid(
            f"Invalid {kind}: Expression size has exceeded the maximum allowed size; expression size: {len(text)}"
        )
    tokens = Tokens(kind, text)
    parser = UpdateParser(tokens, dict(aliases))
    if kind == "UpdateExpression":
        tree: Any = parser.update()
    else:
        tree = Parser.projection(parser) if kind == "ProjectionExpression" else parser.condition()
    names, values = frozenset(parser.used_names), frozenset(parser.used_values)
    return Parsed(tree, names, values, tuple(parser.checks), frozenset(parser.attributes))


def _needless(kinds: Iterable[str], name: str) -> Refusal:
    takes = [kind for kind in kinds if kind != "ProjectionExpression" or name == NAMES]
    if name == NAMES:
        return invalid(f"{name} can only be specified when using expressions")
    verb = "is" if len(takes) == 1 else "are"
    return invalid(f"{name} can only be specified when using expressions: {' and '.join(takes)} {verb} null")


def _read_names(names: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    if names is None:
        return ()
    if not names:
        raise invalid(f"{NAMES} must not be empty")
    for name in names:
        _check_placeholder(NAMES, name, "#")
    return tuple(names.items())


def _read_values(raw: Mapping[str, Any] | None) -> Values:
    if raw is None:
        return {}
    if not raw:
        raise invalid(f"{VALUES} must not be empty")
    values = {}
    for name, value in raw.items():
        _check_placeholder(VALUES, name, ":")
        try:
            values[name] = read_value(value)
        except Refusal as refusal:
            raise invalid(f"{VALUES} contains invalid value: {refusal.message} for key {name}") from None
    return values


def _check_placeholder(parameter: str, name: str, mark: str) -> None:
    rest = name[1:].replace("_", "a")
    if name[:1] != mark or not (rest.isascii() and rest.isalnum()):
        raise invalid(f'{parameter} contains invalid key: Syntax error; key: "{name}"')


def _check_placeholders(parsed: Mapping[str, Parsed], names: Mapping[str, str], values: Values) -> None:
    """All that are used are given, and all that are given are used."""
    used_names: set[str] = set()
    used_values: set[str] = set()
    for kind, one in parsed.items():
        if missing := sorted(one.values - values.keys()):
            raise invalid(
                f"Invalid {kind}: An expression attribute value used in expression is not defined; "
                f"attribute value: {missing[0]}"
            )
        used_names |= one.names
        used_values |= one.values
    for parameter, given, used in ((NAMES, names, used_names), (VALUES, values, used_values)):
        if len(given) > len(used):
            unused = ", ".join(name for name in given if name not in used)
            raise invalid(f"Value provided in {parameter} unused in expressions: keys: {{{unused}}}")
