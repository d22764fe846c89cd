"""``Write``s as DynamoDB's condition and update expressions.

Pure. Every attribute name goes through a placeholder, since many of ours are reserved words.
Source: the expression grammar of DynamoDB's developer guide.
"""

from collections.abc import Mapping
from typing import Any

from kcl_py.leases.attributes import Attribute, encode
from kcl_py.leases.store import AnyOf, Path, Test, Write


class _Expressions:
    """Collects the placeholders of one request."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.values: dict[str, Attribute] = {}

    def path(self, path: Path) -> str:
        self.names.update({f"#{name}": name for name in path})
        return ".".join(f"#{name}" for name in path)

    def value(self, value: object) -> str:
        name = f":v{len(self.values)}"
        self.values[name] = encode(value)
        return name

    def test(self, test: Test) -> str:
        if isinstance(test, AnyOf):
            return "(" + " OR ".join(map(self.test, test.tests)) + ")"
        if test.value is None:
            return f"attribute_not_exists({self.path(test.path)})"
        return f"{self.path(test.path)} = {self.value(test.value)}"

    def condition(self, tests: tuple[Test, ...]) -> str:
        return " AND ".join([f"attribute_exists({self.path(('leaseKey',))})", *map(self.test, tests)])

    def update(self, set_: Mapping[Path, Any], remove: tuple[Path, ...], add: Mapping[Path, int]) -> str:
        clauses = {
            "SET": [f"{self.path(path)} = {self.value(value)}" for path, value in set_.items()],
            "REMOVE": [self.path(path) for path in remove],
            "ADD": [f"{self.path(path)} {self.value(amount)}" for path, amount in add.items()],
        }
        return " ".join(f"{clause} {', '.join(parts)}" for clause, parts in clauses.items() if parts)

    def request(self, **expressions: str) -> dict[str, Any]:
        values = {"ExpressionAttributeValues": self.values} if self.values else {}
        return {**expressions, "ExpressionAttributeNames": self.names, **values}


def update(write: Write) -> dict[str, Any]:
    """Return the part of an UpdateItem request that says what to test and to change."""
    parts = _Expressions()
    return parts.request(
        ConditionExpression=parts.condition(write.tests),
        UpdateExpression=parts.update(write.set, write.remove, write.add),
    )


def upsert(fields: Mapping[Path, Any], unset: tuple[Path, ...]) -> dict[str, Any]:
    """Return the part of an UpdateItem request that sets and removes attributes, whatever is there."""
    parts = _Expressions()
    return parts.request(UpdateExpression=parts.update(fields, unset, {}))


def condition(write: Write) -> dict[str, Any]:
    """Return the part of a DeleteItem or ConditionCheck request that says what to test."""
    parts = _Expressions()
    return parts.request(ConditionExpression=parts.condition(write.tests))
