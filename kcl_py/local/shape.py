"""Whether a JSON body has the shape that AWS's own model of an API gives an operation.

For a service behind us that fails where AWS refuses. Only types, nesting and what is required are looked at; values are
the service's own business. botocore, which has the models, is imported with the first ``Api``.
"""

from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import msgspec

from kcl_py.local.errors import ModelError
from kcl_py.local.requests import UNREADABLE, unreadable

MOST_LEVELS = 100
"""Of shapes in each other: DynamoDB's 32 levels of maps and lists are two each, below a few of the request's own."""

_SERIALIZATION = "SerializationException"
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

        self._model: Any = ServiceModel(Loader().load_service_model(service, "service-2"), service)

    def check(self, operation: str, body: bytes) -> None:
        """Return if ``body`` can be taken for a request.

        Raises:
            ModelError: UnknownOperationException, SerializationException (not JSON, or of another type) or
                ValidationException (something is missing, or nested too deep).
        """
        if operation not in self._model.operation_names:
            raise ModelError("UnknownOperationException", f"there is no operation {operation!r}")
        try:
            params = msgspec.json.decode(body)
        except UNREADABLE as error:
            raise unreadable(error) from None
        shape = self._model.operation_model(operation).input_shape
        faults = [_wrong_type(params, shape, "$")] if params is None else list(_faults(params, shape, "$", 0))
        for fault in sorted(faults, key=lambda fault: fault.code != _SERIALIZATION):  # AWS reads all before it looks
            raise fault


def _faults(value: Any, shape: Any, path: str, level: int) -> Iterator[ModelError]:
    """Yield what keeps ``value`` from being a ``shape``; null is as good as nothing."""
    if value is None:
        return
    if level > MOST_LEVELS:
        yield ModelError("ValidationException", "Nesting Levels have exceeded supported limits")
    elif not _is_of(value, shape.type_name):
        yield _wrong_type(value, shape, path)
    elif shape.type_name == "structure":
        for name in shape.required_members:
            if value.get(name) is None:
                yield _missing(f"{path}.{name}")
        for name, inner in shape.members.items():
            yield from _faults(value.get(name), inner, f"{path}.{name}", level + 1)
    elif shape.type_name == "map":
        for inner in value.values():
            yield from _faults(inner, shape.value, f"{path}.*", level + 1)
    elif shape.type_name == "list":
        for inner in value:
            yield from _faults(inner, shape.member, f"{path}[]", level + 1)


def _is_of(value: object, kind: str) -> bool:
    if kind == "blob":
        return isinstance(value, str) and _is_base64(value)
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _is_base64(text: str) -> bool:
    try:
        b64decode(text, validate=True)
    except ValueError:
        return False
    return True


def _missing(path: str) -> ModelError:
    return ModelError(
        "ValidationException",
        f"1 validation error detected: Value null at '{path}' failed to satisfy constraint: Member must not be null",
    )


def _wrong_type(value: object, shape: Any, path: str) -> ModelError:
    return ModelError(_SERIALIZATION, f"expected {shape.type_name} at {path}, found {type(value).__name__}")
