"""Words for requests to a DynamoDB and for what it must answer.

``LIST`` has a partition key only, ``TREE`` a sort key and an index by owner. A case begins with empty tables.
Source: DynamoDB's API reference and developer guide; sentences as the service answers them.
"""

from dataclasses import dataclass, field
from typing import Any

LIST, TREE = "list", "tree"
"""What stands for the tables of a case."""


@dataclass(frozen=True)
class Step:
    """A request, and either what its answer holds or the error code and what its sentence holds."""

    operation: str
    params: dict[str, Any]
    gives: dict[str, Any] = field(default_factory=dict)
    lacks: tuple[str, ...] = ()
    code: str | None = None
    says: str = ""


@dataclass(frozen=True)
class Case:
    """A law and the requests that show it."""

    name: str
    steps: tuple[Step, ...]


def s(text: str) -> dict[str, Any]:
    return {"S": text}


def n(number: object) -> dict[str, Any]:
    return {"N": str(number)}


def put(item: dict[str, Any], *, table: str = LIST, **more: Any) -> Step:
    """Return a PutItem that is to succeed, unless ``more`` of the step says otherwise."""
    return step("PutItem", {"TableName": table, "Item": item}, **more)


def update(expression: str, values: dict[str, Any] | None = None, *, key: str = "a", **more: Any) -> Step:
    """Return an UpdateItem of the list's row ``key``."""
    params = {"TableName": LIST, "Key": {"k": s(key)}, "UpdateExpression": expression}
    return step("UpdateItem", params | ({"ExpressionAttributeValues": values} if values else {}), **more)


def asked(condition: str, values: dict[str, Any] | None = None, **more: Any) -> Step:
    """Return an UpdateItem of row ``a`` that changes nothing, if a condition holds."""
    params = {"TableName": LIST, "Key": {"k": s("a")}, "UpdateExpression": "REMOVE t"}
    params |= {"ConditionExpression": condition} | ({"ExpressionAttributeValues": values} if values else {})
    return step("UpdateItem", params, **more)


def row(item: dict[str, Any] | None, *, key: str = "a") -> Step:
    """Return a consistent GetItem that finds exactly this."""
    params = {"TableName": LIST, "Key": {"k": s(key)}, "ConsistentRead": True}
    return Step("GetItem", params, {"Item": item}) if item else Step("GetItem", params, lacks=("Item",))


def step(operation: str, params: dict[str, Any], **more: Any) -> Step:
    """Return a step; capitalised names go into the request."""
    asked = {name: value for name, value in more.items() if name[0].isupper()}
    return Step(operation, params | asked, **{name: value for name, value in more.items() if name not in asked})


def failing(condition: str, values: dict[str, Any] | None = None) -> Step:
    """Return a condition that does not hold."""
    return asked(condition, values, code=FAILED, says="The conditional request failed")


def refused_type(condition: str, value: dict[str, Any], what: str) -> Step:
    """Return a condition with a value that its operator cannot take."""
    return asked(condition, {":v": value}, code=BAD, says=f"Incorrect operand type for operator or function; {what}")


def delete(condition: str, value: dict[str, Any], **more: Any) -> Step:
    """Return a conditional DeleteItem of row ``a``."""
    values = {"ExpressionAttributeValues": {":n": value}, "ConditionExpression": condition}
    return step("DeleteItem", {"TableName": LIST, "Key": {"k": s("a")}} | values, **more)


FAILED, BAD = "ConditionalCheckFailedException", "ValidationException"
RICH = {
    "k": s("a"),
    "text": s("hello"),
    "num": n(5),
    "bin": {"B": b"\x01\x02\x03"},
    "yes": {"BOOL": True},
    "nil": {"NULL": True},
    "tags": {"SS": ["x", "y"]},
    "nums": {"NS": ["1", "2", "10"]},
    "seq": {"L": [n(1), s("two"), {"M": {"deep": n(3)}}]},
    "doc": {"M": {"word": s("t"), "inner": {"M": {"n": n(1)}}}},
}
