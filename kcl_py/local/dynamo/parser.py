"""Expressions read into trees, once for each text.

Precedence: NOT before AND before OR; comparisons bind closer. Functions and their operands are checked here; what needs
the request's values is left behind as checks.
Source: the expression grammar of DynamoDB's developer guide; sentences as AWS answers them.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from kcl_py.local.dynamo.conditions import (
    ORDERS,
    And,
    Attribute,
    BeginsWith,
    Between,
    Compare,
    Condition,
    Contains,
    Exists,
    In,
    Not,
    Operand,
    Or,
    Placeholder,
    Size,
    TypeIs,
    Values,
)
from kcl_py.local.dynamo.errors import Refusal
from kcl_py.local.dynamo.paths import Path, overlap, path_text
from kcl_py.local.dynamo.tokens import Token, Tokens
from kcl_py.local.dynamo.values import ORDERED, kind_of
from kcl_py.local.dynamo.words import RESERVED

Check: TypeAlias = Callable[[Values], None]
"""Raises Refusal if the request's values do not fit the expression."""

_TEXTS = frozenset({"S", "B"})
_TYPES = frozenset({"S", "N", "B", "SS", "NS", "BS", "BOOL", "NULL", "L", "M"})
_MEASURABLE = _TYPES - {"N", "BOOL", "NULL"}
_FUNCTIONS = {
    "attribute_exists": 1,
    "attribute_not_exists": 1,
    "attribute_type": 2,
    "begins_with": 2,
    "contains": 2,
    "size": 1,
}
"""How many operands each takes."""
_MOST_CHOICES = 100
_DEEPEST = 50
"""Levels of parentheses and NOT; AWS counts operators, at most 300, and says the same."""


@dataclass
class Parser:
    """Reads one expression from its tokens.

    Args:
        tokens: the expression.
        names: what each ``#name`` stands for.
    """

    tokens: Tokens
    names: Mapping[str, str]
    used_names: set[str] = field(default_factory=set)
    used_values: set[str] = field(default_factory=set)
    checks: list[Check] = field(default_factory=list)
    attributes: set[str] = field(default_factory=set)
    depth: int = 0
    group: tuple[int, int] = (0, 0)
    """Where the parentheses closed last begin and end."""

    def condition(self) -> Condition:
        """Read a condition to its end. Raises Refusal."""
        found = self._or()
        self.end()
        return found

    def projection(self) -> tuple[Path, ...]:
        """Read paths, separated by commas, to their end. Raises Refusal."""
        paths = [self.path()]
        while self.tokens.accept(","):
            paths.append(self.path())
        self.end()
        self.check_paths(paths)
        return tuple(paths)

    def end(self) -> None:
        self.tokens.expect_kind("end")

    def check_paths(self, paths: list[Path]) -> None:
        """Raise Refusal if two of them cannot stand together."""
        if found := overlap(paths):
            how, one, other = found
            raise self.error(
                f"Two document paths {how} with each other; must remove or rewrite one of these paths; "
                f"path one: {path_text(one)}, path two: {path_text(other)}"
            )

    def error(self, message: str) -> Refusal:
        return self.tokens.error(message)

    def path(self) -> Path:
        first = self._name()
        self.attributes.add(first)
        steps: list[str | int] = [first]
        while self.tokens.sees(".", "["):
            if self.tokens.accept("."):
                steps.append(self._name())
            else:
                self.tokens.expect("[")
                steps.append(int(self.tokens.expect_kind("index").text))
                self.tokens.expect("]")
        return tuple(steps)

    def _name(self) -> str:
        token = self.tokens.peek()
        if token.kind == "name":
            self.tokens.take()
            return self._meaning(token)
        name = self.tokens.expect_kind("word").text
        if name.upper() in RESERVED:
            raise self.error(f"Attribute name is a reserved keyword; reserved keyword: {name}")
        return name

    def _meaning(self, token: Token) -> str:
        if token.text not in self.names:
            raise self.error(
                f"An expression attribute name used in the document path is not defined; attribute name: {token.text}"
            )
        self.used_names.add(token.text)
        return self.names[token.text]

    def placeholder(self) -> Placeholder:
        token = self.tokens.expect_kind("value")
        self.used_values.add(token.text)
        return Placeholder(token.text)

    def is_call(self) -> bool:
        return self.tokens.peek().kind == "word" and self.tokens.peek(1).text == "("

    def allow(self, operand: Operand, kinds: frozenset[str], what: str) -> None:
        """Have a value of the request, if ``operand`` is one, checked for its type."""
        if isinstance(operand, Placeholder):
            name = operand.name

            def check(values: Values) -> None:
                if (kind := kind_of(values[name])) not in kinds:
                    raise self.error(f"Incorrect operand type for operator or function; {what}, operand type: {kind}")

            self.checks.append(check)

    def count(self, function: str, found: int, expected: int) -> None:
        if found != expected:
            raise self.error(
                "Incorrect number of operands for operator or function; "
                f"operator or function: {function}, number of operands: {found}"
            )

    def _or(self) -> Condition:
        parts = [self._and()]
        while self.tokens.accept("OR"):
            parts.append(self._and())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _and(self) -> Condition:
        parts = [self._not()]
        while self.tokens.accept("AND"):
            parts.append(self._not())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _not(self) -> Condition:
        if not self.tokens.accept("NOT"):
            return self._one()
        with self._deeper():
            return Not(self._not())

    def _one(self) -> Condition:
        opened = self.tokens.position
        if not self.tokens.accept("("):
            return self._comparison()
        with self._deeper():
            inner = self._or()
        closed = self.tokens.position
        self.tokens.expect(")")
        if self.group == (opened + 1, closed):
            raise self.error("The expression has redundant parentheses;")
        self.group = (opened, closed + 1)
        return inner

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.error("The expression contains too many operators;")
        yield
        self.depth -= 1

    def _comparison(self) -> Condition:
        if self.is_call() and self.tokens.peek().text != "size":
            return self._function()
        left = self._operand()
        token = self.tokens.peek()
        if token.text in ("=", "<>") or token.text in ORDERS:
            self.tokens.take()
            return self._compare(token.text, left, self._operand())
        if self.tokens.accept("BETWEEN"):
            low = self._operand()
            self.tokens.expect("AND")
            return self._between(left, low, self._operand())
        self.tokens.expect("IN")
        return In(left, self._choices())

    def _compare(self, sign: str, left: Operand, right: Operand) -> Condition:
        self._distinct(sign, left, right, "operator")
        if sign in ORDERS:
            self.allow(left, ORDERED, f"operator: {sign}")
            self.allow(right, ORDERED, f"operator: {sign}")
        return Compare(sign, left, right)

    def _distinct(self, name: str, left: Operand, right: Operand, what: str = "operator or function") -> None:
        if isinstance(left, Attribute) and left == right:
            raise self.error(
                "The first operand must be distinct from the remaining operands for this operator or function; "
                f"operator: {name}, first operand: {path_text(left.path)}"
            )

    def _between(self, operand: Operand, low: Operand, high: Operand) -> Condition:
        for one in (operand, low, high):
            self.allow(one, ORDERED, "operator: BETWEEN")
        if isinstance(low, Placeholder) and isinstance(high, Placeholder):
            self.checks.append(_bounds(self, low.name, high.name))
        return Between(operand, low, high)

    def _choices(self) -> tuple[Operand, ...]:
        self.tokens.expect("(")
        choices = [self._operand()]
        while self.tokens.accept(","):
            choices.append(self._operand())
        self.tokens.expect(")")
        if len(choices) >= _MOST_CHOICES:
            raise self.error(
                "The IN operator is provided with too many operands; "
                f"number of operands: {len(choices) + 1}, maximum: {_MOST_CHOICES}"
            )
        return tuple(choices)

    def _operand(self) -> Operand:
        if self.tokens.peek().kind == "value":
            return self.placeholder()
        if not self.is_call():
            return Attribute(self.path())
        name, operands = self._call()
        if name != "size":
            raise self.error(f"The function is not allowed to be used this way in an expression; function: {name}")
        self.allow(operands[0], _MEASURABLE, "operator or function: size")
        return Size(operands[0])

    def _call(self) -> tuple[str, list[Operand]]:
        name = self.tokens.take().text
        if name not in _FUNCTIONS:
            raise self.error(f"Invalid function name; function: {name}")
        self.tokens.expect("(")
        operands = [self._operand()]
        while self.tokens.accept(","):
            operands.append(self._operand())
        self.tokens.expect(")")
        self.count(name, len(operands), _FUNCTIONS[name])
        return name, operands

    def _function(self) -> Condition:
        name, operands = self._call()
        first, last = operands[0], operands[-1]
        what = f"operator or function: {name}"
        if name in ("attribute_exists", "attribute_not_exists"):
            if not isinstance(first, Attribute):
                raise self.error(f"Operator or function requires a document path; {what}")
            return Exists(first.path, name == "attribute_exists")
        if name == "attribute_type":
            return self._type_is(first, last)
        self._distinct(name, first, last)
        if name == "contains":
            return Contains(first, last)
        self.allow(first, _TEXTS, what)
        self.allow(last, _TEXTS, what)
        return BeginsWith(first, last)

    def _type_is(self, operand: Operand, kind: Operand) -> Condition:
        what = "operator or function: attribute_type"
        if not isinstance(kind, Placeholder):
            raise self.error(f"Incorrect operand type for operator or function; {what}, operand type: path")
        self.allow(kind, frozenset({"S"}), what)

        def check(values: Values) -> None:
            if (text := values[kind.name]["S"]) not in _TYPES:
                valid = "B,NULL,SS,BOOL,L,BS,N,NS,S,M"
                raise self.error(f"Invalid attribute type name found; type: {text}, valid types: {{{valid}}}")

        self.checks.append(check)
        return TypeIs(operand, kind)


def _bounds(parser: Parser, low: str, high: str) -> Check:
    def check(values: Values) -> None:
        if kind_of(values[low]) != kind_of(values[high]):
            fault = "same data type for lower and upper bounds"
        elif not Between(Placeholder(low), Placeholder(low), Placeholder(high)).holds({}, values):
            fault = "upper bound to be greater than or equal to lower bound"
        else:
            return
        raise parser.error(
            f"The BETWEEN operator requires {fault}; lower bound operand: AttributeValue: {_shown(values[low])}, "
            f"upper bound operand: AttributeValue: {_shown(values[high])}"
        )

    return check


def _shown(value: Mapping[str, object]) -> str:
    [(kind, data)] = value.items()
    return f"{{{kind}:{data}}}"
