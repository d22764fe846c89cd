"""What DynamoDB refuses, in its own words."""

from collections.abc import Mapping
from typing import Any

from kcl_py.local.errors import ModelError


class Refusal(ModelError):
    """A refusal whose body may say more than code and message.

    Args:
        code: AWS's error code.
        message: AWS's sentence about it.
        more: further fields of the body: ``Item``, ``CancellationReasons``.
    """

    def __init__(self, code: str, message: str, more: Mapping[str, Any] | None = None) -> None:
        super().__init__(code, message)
        self.more = dict(more or {})


def invalid(message: str) -> Refusal:
    """Return what DynamoDB answers to a request that makes no sense."""
    return Refusal("ValidationException", message)


def invalid_value(message: str) -> Refusal:
    """Return what it answers to a value that cannot be."""
    return invalid(f"One or more parameter values were invalid: {message}")


def condition_failed(item: Mapping[str, Any] | None = None) -> Refusal:
    """Return a failed condition; ``item`` only if the request asked for it."""
    more = {"Item": item} if item else None
    return Refusal("ConditionalCheckFailedException", "The conditional request failed", more)


def no_table(name: str | None = None) -> Refusal:
    """Return what it answers about a table that is not there; requests about tables name it."""
    which = f": Table: {name} not found" if name else ""
    return Refusal("ResourceNotFoundException", f"Requested resource not found{which}")


def in_use(message: str) -> Refusal:
    """Return what it answers while a table is in another state."""
    return Refusal("ResourceInUseException", message)
