"""Whether a request has the shape that AWS's own model of an API gives an operation.

Types, nesting, what is required and the model's own limits are looked at; all else is the service's business.
botocore, which has the models, is imported with the first ``Api``.
"""

from base64 import b64decode
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import msgspec

from kcl_py.local.errors import ModelError
from kcl_py.local.requests import UNREADABLE, unreadable

MOST_LEVELS = 100
"""Of shapes in each other: DynamoDB's 32 levels of maps and lists are two each, below a few of the request's own."""

_SERIALIZATION = "SerializationException"
_UNKNOWN = ModelError("", "a member that the shape has not")
"""No fault: AWS passes over it."""
_TYPES: dict[str, tuple[type, ...]] = {
    "structure": (dict,),
    "map": (dict,),
    "list": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "timestamp": (int, float),
}
"""What each type of the model is in JSON. Source: AWS's JSON 1.0 and 1.1 protocols."""


class Api:
    """One service's API, such as ``dynamodb``."""

    def __init__(self, service: str) -> None:
        from botocore.loaders import Loader
        from botocore.model import ServiceModel

        self.model: Any = ServiceModel(Loader().load_service_model(service, "service-2"), service)
        """botocore's, which has no types."""
        self.operations = frozenset(map(str, self.model.operation_names))

    def read(self, operation: str, body: bytes) -> dict[str, Any]:
        """Return the request in ``body``; binaries stay base64. Raises ModelError as ``check`` does."""
        try:
            params: dict[str, Any] = msgspec.json.decode(body)
        except UNREADABLE as error:
            raise unreadable(error) from None
        return self.check(operation, params)

    def check(self, operation: str, params: Any) -> dict[str, Any]:
        """Return ``params`` as a request, without members that AWS does not know; binaries may be bytes or base64.

        Raises:
            ModelError: UnknownOperationException, SerializationException (of another type) or ValidationException
                (something is missing, nested too deep, or outside the limits of AWS's model).
        """
        if operation not in self.operations:
            raise ModelError("UnknownOperationException", f"there is no operation {operation!r}")
        shape = self.model.operation_model(operation).input_shape
        found = [_wrong_type(params, shape, "")] if params is None else list(_faults(params, shape, "", 0))
        faults = [fault for fault in found if fault is not _UNKNOWN]
        for fault in sorted(faults, key=lambda fault: fault.code != _SERIALIZATION):  # AWS reads all before it looks
            raise fault
        known: dict[str, Any] = _known(params, shape) if found else params
        return known


@cache
def api(service: str) -> Api:
    """Return a service's API, loaded once."""
    return Api(service)


def _faults(value: Any, shape: Any, path: str, level: int) -> Iterator[ModelError]:
    """Yield what keeps ``value`` from being a ``shape``; null is as good as nothing."""
    if value is None:
        return
    kind = shape.type_name
    if level > MOST_LEVELS:
        yield ModelError("ValidationException", "Nesting Levels have exceeded supported limits")
    elif not _is_of(value, kind):
        yield _wrong_type(value, shape, path)
    else:
        if limits := shape.metadata:
            yield from _beyond(value, limits, path)
        if kind == "structure":
            yield from _member_faults(value, shape, path, level)
        elif kind == "map":
            for name, inner in value.items():
                yield from _inner_faults(inner, shape.value, f"{path}.{name}.member", level + 1)
        elif kind == "list":
            for number, inner in enumerate(value, 1):
                yield from _inner_faults(inner, shape.member, f"{path}.{number}.member", level + 1)


def _inner_faults(value: Any, shape: Any, path: str, level: int) -> Iterator[ModelError]:
    """Yield those of a value in a list or a map, where null is no value."""
    if value is None:
        yield _beyond_limits(None, path, "Member must not be null")
    yield from _faults(value, shape, path, level)


def _member_faults(value: Any, shape: Any, path: str, level: int) -> Iterator[ModelError]:
    for name in shape.required_members:
        if value.get(name) is None:
            yield _beyond_limits(None, _inside(path, name), "Member must not be null")
    members = shape.members
    for name, inner in value.items():
        if name in members:
            yield from _faults(inner, members[name], _inside(path, name), level + 1)
        else:
            yield _UNKNOWN


def _known(value: Any, shape: Any) -> Any:
    """Return a value without the members that are none of its shape's."""
    if value is None:
        return None
    match shape.type_name:
        case "structure":
            members = shape.members
            return {name: _known(inner, members[name]) for name, inner in value.items() if name in members}
        case "map":
            return {name: _known(inner, shape.value) for name, inner in value.items()}
        case "list":
            return [_known(inner, shape.member) for inner in value]
    return value


def _inside(path: str, name: str) -> str:
    """Return the path of a member, as AWS's sentences have it."""
    inner = name[:1].lower() + name[1:]
    return f"{path}.{inner}" if path else inner


def _beyond(value: Any, limits: Mapping[str, Any], path: str) -> Iterator[ModelError]:
    """Yield what is outside the limits of AWS's model."""
    if "enum" in limits and value not in limits["enum"]:
        yield _beyond_limits(value, path, f"Member must satisfy enum value set: [{', '.join(limits['enum'])}]")
    is_number = isinstance(value, int | float)
    size, what = (value, "value") if is_number else (len(value), "length")
    if "min" in limits and size < limits["min"]:
        yield _beyond_limits(value, path, f"Member must have {what} greater than or equal to {limits['min']}")
    if "max" in limits and size > limits["max"]:
        yield _beyond_limits(value, path, f"Member must have {what} less than or equal to {limits['max']}")


def _is_of(value: object, kind: str) -> bool:
    if kind == "blob":
        return isinstance(value, bytes | bytearray) or (isinstance(value, str) and _is_base64(value))
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _is_base64(text: str) -> bool:
    try:
        b64decode(text, validate=True)
    except ValueError:
        return False
    return True


def _beyond_limits(value: Any, path: str, constraint: str) -> ModelError:
    shown = "null" if value is None else "'[...]'" if isinstance(value, dict | list) else f"'{value}'"
    return ModelError(
        "ValidationException",
        f"1 validation error detected: Value {shown} at '{path}' failed to satisfy constraint: {constraint}",
    )


def _wrong_type(value: object, shape: Any, path: str) -> ModelError:
    return ModelError(
        _SERIALIZATION, f"expected {shape.type_name} at {path or 'the top'}, found {type(value).__name__}"
    )
