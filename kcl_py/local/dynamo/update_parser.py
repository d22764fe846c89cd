"""Update expressions read into ``Update``s.

Source: the grammar of update expressions in DynamoDB's developer guide; sentences as AWS answers them.
"""

from dataclasses import dataclass

from kcl_py.local.dynamo.conditions import Attribute, Operand, Placeholder, Values
from kcl_py.local.dynamo.parser import Parser
from kcl_py.local.dynamo.paths import Path
from kcl_py.local.dynamo.updates import IfNotExists, ListAppend, Sum, Update
from kcl_py.local.dynamo.values import kind_of

_SECTIONS = ("SET", "REMOVE", "ADD", "DELETE")
_NUMBER, _LIST = frozenset({"N"}), frozenset({"L"})
_SETS = frozenset({"SS", "NS", "BS"})
_ALLOWED = {"ADD": _SETS | _NUMBER, "DELETE": _SETS}
_LONG_NAMES = {
    "S": "STRING",
    "N": "NUMBER",
    "B": "BINARY",
    "BOOL": "BOOLEAN",
    "NULL": "NULL",
    "L": "LIST",
    "M": "MAP",
    "SS": "STRING_SET",
    "NS": "NUMBER_SET",
    "BS": "BINARY_SET",
}


@dataclass
class UpdateParser(Parser):
    """Reads an update expression."""

    def update(self) -> Update:
        """Read it to its end. Raises Refusal."""
        sets: list[tuple[Path, Operand]] = []
        removes: list[Path] = []
        changes: dict[str, list[tuple[Path, str]]] = {"ADD": [], "DELETE": []}
        seen: set[str] = set()
        while self.tokens.sees(*_SECTIONS):
            section = self._section(seen)
            while True:
                if section == "SET":
                    sets.append(self._assignment())
                elif section == "REMOVE":
                    removes.append(self.path())
                else:
                    changes[section].append(self._change(section))
                if not self.tokens.accept(","):
                    break
        if not seen:
            raise self.tokens.syntax_error()
        self.end()
        update = Update(tuple(sets), tuple(removes), tuple(changes["ADD"]), tuple(changes["DELETE"]))
        self.check_paths(update.paths)
        return update

    def _section(self, seen: set[str]) -> str:
        section = self.tokens.take().text.upper()
        if section in seen:
            raise self.error(f'The "{section}" section can only be used once in an update expression;')
        seen.add(section)
        return section

    def _assignment(self) -> tuple[Path, Operand]:
        path = self.path()
        self.tokens.expect("=")
        left = self._value()
        if not self.tokens.sees("+", "-"):
            return path, left
        sign = self.tokens.take().text
        right = self._value()
        for one in (left, right):
            self.allow(one, _NUMBER, f"operator or function: {sign}")
        return path, Sum(sign, left, right)

    def _value(self) -> Operand:
        if self.tokens.peek().kind == "value":
            return self.placeholder()
        return self._function_value() if self.is_call() else Attribute(self.path())

    def _function_value(self) -> Operand:
        name = self.tokens.take().text
        if name not in ("if_not_exists", "list_append"):
            raise self.error(f"Invalid function name; function: {name}")
        self.tokens.expect("(")
        operands = [self._value()]
        while self.tokens.accept(","):
            operands.append(self._value())
        self.tokens.expect(")")
        self.count(name, len(operands), 2)
        if any(isinstance(one, ListAppend) for one in operands):
            raise self.error("The function is not allowed to be used this way in an expression; function: list_append")
        first, second = operands
        if name == "if_not_exists":
            if not isinstance(first, Attribute):
                raise self.error(f"Operator or function requires a document path; operator or function: {name}")
            return IfNotExists(first.path, second)
        for one in operands:
            self.allow(one, _LIST, f"operator or function: {name}")
        return ListAppend(first, second)

    def _change(self, section: str) -> tuple[Path, str]:
        path = self.path()
        value: Placeholder = self.placeholder()

        def check(values: Values) -> None:
            if (kind := kind_of(values[value.name])) not in _ALLOWED[section]:
                raise self.error(
                    f"Incorrect operand type for operator or function; operator: {section}, "
                    f"operand type: {_LONG_NAMES[kind]}, typeSet: ALLOWED_FOR_{section}_OPERAND"
                )

        self.checks.append(check)
        return path, value.name
