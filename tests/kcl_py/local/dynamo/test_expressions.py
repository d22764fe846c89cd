"""Expressions against an oracle that knows no parser, no paths and no number texts."""

import operator
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcl_py.local.dynamo.errors import Refusal
from kcl_py.local.dynamo.expressions import read_expressions
from kcl_py.local.dynamo.tokens import Tokens
from kcl_py.local.dynamo.values import item_bytes, plain, read_item, read_value

PATHS = ("p", "q", "m.p", "m.q", "l[0]", "l[1]")
SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
MISSING = object()

numbers = st.integers(-3, 3) | st.sampled_from([Decimal("0.5"), Decimal("-1.5")])
scalars = numbers | st.sampled_from(["", "a", "ab", "b"]) | st.sampled_from([b"", b"a", b"ab"]) | st.booleans()
plains = scalars | st.frozensets(st.sampled_from(["a", "b", "c"]), min_size=1) | st.lists(numbers, max_size=2)
items = st.fixed_dictionaries(
    {},
    optional={
        "p": plains,
        "q": plains,
        "m": st.dictionaries(st.sampled_from(["p", "q"]), scalars),
        "l": st.lists(scalars, max_size=2),
    },
)


def wire(value: Any) -> dict[str, Any]:
    """Write a plain value as DynamoDB has it."""
    match value:
        case bool():
            return {"BOOL": value}
        case int() | Decimal():
            return {"N": f"{value}.00" if isinstance(value, int) else str(value)}
        case str():
            return {"S": value}
        case bytes():
            return {"B": value}
        case frozenset():
            return {"SS": list(value)}
        case list():
            return {"L": [wire(one) for one in value]}
    return {"M": {name: wire(one) for name, one in value.items()}}


def kind(value: Any) -> str:
    return "N" if isinstance(value, Decimal | int) and not isinstance(value, bool) else type(value).__name__


def look(item: dict[str, Any], path: str) -> Any:
    """Return the plain value at one of ``PATHS``."""
    try:
        if path.startswith("m."):
            return item["m"][path[2:]]
        return item["l"][int(path[2])] if path.startswith("l") else item[path]
    except (KeyError, IndexError):
        return MISSING


Holds = Callable[[dict[str, Any]], bool]
OR, AND, NOT, ONE = range(4)
"""How closely an expression binds."""


def inside(text: str, binds: int, outer: int) -> str:
    return f"({text})" if binds < outer else text


@st.composite
def conditions(draw: Any, depth: int = 3) -> tuple[str, int, Holds]:
    """Draw an expression with literal plain values in it, how it binds, and what says whether an item fulfils it."""
    if not depth or draw(st.booleans()):
        text, holds = draw(comparisons())
        return text, ONE, holds
    left, left_binds, holds_left = draw(conditions(depth - 1))
    outer = draw(st.sampled_from([OR, AND, NOT]))
    if outer == NOT:
        return f"NOT {inside(left, left_binds, NOT)}", NOT, lambda item: not holds_left(item)
    right, right_binds, holds_right = draw(conditions(depth - 1))
    if outer == AND:
        text = f"{inside(left, left_binds, AND)} AND {inside(right, right_binds, AND)}"
        return text, AND, lambda item: holds_left(item) and holds_right(item)
    return f"{left} OR {right}", OR, lambda item: holds_left(item) or holds_right(item)


def same(one: Any, other: Any) -> bool:
    return MISSING not in (one, other) and kind(one) == kind(other) and bool(one == other)


@st.composite
def comparisons(draw: Any) -> tuple[str, Holds]:
    """Draw one test of one path."""
    path = draw(st.sampled_from(PATHS))
    choice = draw(st.sampled_from(["=", "<>", "order", "exists", "begins", "contains", "size"]))
    value = draw(scalars if choice != "order" else numbers | st.sampled_from(["a", "ab"]))
    text = repr(value)
    if choice == "=":
        return f"{path} = {{{text}}}", lambda item: same(look(item, path), value)
    if choice == "<>":
        return f"{path} <> {{{text}}}", lambda item: not same(look(item, path), value)
    if choice == "order":
        sign = draw(st.sampled_from([*SIGNS]))
        return (
            f"{path} {sign} {{{text}}}",
            lambda item: (
                (found := look(item, path)) is not MISSING and kind(found) == kind(value) and SIGNS[sign](found, value)
            ),
        )
    if choice == "exists":
        return f"attribute_exists({path})", lambda item: look(item, path) is not MISSING
    if choice == "begins":
        return (
            f"begins_with({path}, {{'a'}})",
            lambda item: isinstance(found := look(item, path), str) and found.startswith("a"),
        )
    if choice == "contains":
        return (
            f"contains({path}, {{'a'}})",
            lambda item: isinstance(found := look(item, path), str | frozenset) and "a" in found,
        )
    return (
        f"size({path}) = {{2}}",
        lambda item: isinstance(found := look(item, path), str | bytes | frozenset | list) and len(found) == 2,
    )


def with_placeholders(text: str) -> dict[str, Any]:
    """Turn ``{literal}``s into placeholders."""
    values: dict[str, Any] = {}
    while "{" in text:
        before, _, rest = text.partition("{")
        literal, _, after = rest.partition("}")
        name = f":v{len(values)}"
        values[name] = wire(eval(literal, {"Decimal": Decimal}))
        text = before + name + after
    return {"ConditionExpression": text} | ({"ExpressionAttributeValues": values} if values else {})


@given(conditions(), items)
def test_condition_agrees_with_the_oracle(drawn: tuple[str, int, Holds], item: dict[str, Any]) -> None:
    """Whatever is nested in whatever, and whatever the item lacks."""
    text, _, holds = drawn
    expressions = read_expressions(with_placeholders(text), "ConditionExpression")
    assert expressions.allows(read_item(wire(item)["M"])) is holds(item)


@given(items, st.sampled_from(PATHS), scalars, st.sampled_from(PATHS))
def test_update_changes_what_it_names_and_nothing_else(item: dict[str, Any], path: str, value: Any, gone: str) -> None:
    """A value comes where the path says, another is taken, all else stays, and the old item is as it was."""
    before = read_item(wire(item)["M"])
    kept = repr(before)
    request = {
        "UpdateExpression": f"SET {path} = :v, z = if_not_exists({gone}, :v)",
        "ExpressionAttributeValues": {":v": wire(value)},
    }
    update = read_expressions(request, "UpdateExpression")
    parent = {"m": "m", "l": "l"}.get(path[0])
    if parent is not None and parent not in item:
        with pytest.raises(Refusal, match="invalid for update"):
            update.update.apply(before, update.values)  # type: ignore[union-attr]  # it is there
        return
    after = update.update.apply(before, update.values)  # type: ignore[union-attr]
    expected = {**item, "z": value if (found := look(item, gone)) is MISSING else found}
    if parent == "m":
        expected["m"] = {**item["m"], path[2:]: value}
    elif parent == "l":
        number = int(path[2])
        expected["l"] = [*item["l"][:number], value, *item["l"][number + 1 :]]
    else:
        expected[path] = value
    assert after == read_item(wire(expected)["M"])
    assert repr(before) == kept


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=6))
def test_number_has_one_form_however_it_is_written(number: Decimal) -> None:
    """So two numbers are equal exactly if their texts are."""
    forms = {
        plain(f"{number:f}"),
        plain(f"{number:E}"),
        plain(f"{number:f}0" if "." in f"{number:f}" else f"{number:f}"),
    }
    [form] = forms
    assert Decimal(form) == number
    assert plain(form) == form


@given(st.text(alphabet="ab#:1()[].,=<>+- ANDORsetSETremov_\u00e9\n", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Never a failure of another kind."""
    for kind_ in ("ConditionExpression", "UpdateExpression", "ProjectionExpression"):
        with suppress(Refusal):
            read_expressions({kind_: text}, kind_)


def test_deep_nesting_is_refused_not_a_failure() -> None:
    """Of parentheses and of NOT."""
    for text in ("(" * 2000 + "a = b" + ")" * 2000, "NOT " * 1000 + "a = b"):
        with pytest.raises(Refusal, match="too many operators"):
            read_expressions({"ConditionExpression": text}, "ConditionExpression")


def test_syntax_error_shows_the_token_and_its_neighbours() -> None:
    """As AWS does, so a message can be looked up."""
    for text, token, near in (("a == :v", "=", "== :v"), ("a =", "<EOF>", "="), ("a $ b", "$", "a $ b")):
        with pytest.raises(Refusal) as caught:
            read_expressions({"ConditionExpression": text}, "ConditionExpression")
        assert f'Syntax error; token: "{token}", near: "{near}' in caught.value.message


def test_tokens_keep_their_text() -> None:
    """Whitespace is between them, not in them."""
    tokens = Tokens("ConditionExpression", " #a.b[12]<=:v ")
    assert [tokens.take().text for _ in range(8)] == ["#a", ".", "b", "[", "12", "]", "<=", ":v"]


def test_sizes_are_as_documented() -> None:
    """Names count, numbers half a byte a digit, containers three and one a member."""
    assert item_bytes({"name": {"S": "äb"}}) == 4 + 3
    assert item_bytes({"n": {"N": "12345"}}) == 1 + 4
    assert item_bytes({"n": {"N": "-100"}}) == 1 + 3
    assert item_bytes({"m": read_value({"M": {"a": {"BOOL": True}}})}) == 1 + 3 + 1 + 1 + 1
    assert item_bytes({"l": read_value({"L": [{"NULL": True}, {"B": b"xyz"}]})}) == 1 + 3 + 2 + 1 + 3
