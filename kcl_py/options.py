"""The options of ``Config`` as a flat list: for error sentences, environment variables and the documentation.

Only looks at the model; no values, no I/O.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from kcl_py.config import Config, Section
from kcl_py.option_types import Text

PREFIX = "KCL_"


@dataclass(frozen=True, slots=True)
class Option:
    """One option that can be set."""

    path: str
    """Keys joined by dots, as in ``aws.endpoint``."""
    expected: str
    """What its value must be, for people."""
    choices: tuple[str, ...]
    """The only values that it takes; empty if there are more than can be listed."""
    default: str
    """As one would write it in YAML; ``required`` if there is none."""
    meaning: str
    is_section: bool
    """Whether other options are under it."""

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return PREFIX + self.path.upper().replace(".", "__")


@cache
def options() -> dict[str, Option]:
    """Every option and section of ``Config`` by its path, in the order of the table."""
    return {option.path: option for option in _walk(Config, "")}


def _walk(section: type[Section], prefix: str) -> Iterator[Option]:
    for name, field in section.model_fields.items():
        path = prefix + name
        inner = [kind for kind in (field.annotation, *get_args(field.annotation)) if _is_section(kind)]
        yield Option(
            path=path,
            expected=_expected(field.annotation, field.metadata),
            choices=_choices(field.annotation),
            default=_default(field),
            meaning=field.description or "",
            is_section=_is_section(field.annotation),
        )
        for kind in inner:
            yield from _walk(kind, f"{path}.")


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Section)


def _choices(kind: Any) -> tuple[str, ...]:
    if get_origin(kind) is Literal:
        return get_args(kind)
    return tuple(choice for part in get_args(kind) for choice in _choices(part))


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.default
    if value is None or value == "":
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Section):
        return ""
    return f"{value:g}" if isinstance(value, float) else str(getattr(value, "kind", value)).lower()


def _expected(kind: Any, metadata: Sequence[Any]) -> str:
    metadata = [mark for item in metadata for mark in (item.metadata if isinstance(item, FieldInfo) else [item])]
    for mark in metadata:
        if isinstance(mark, Text):
            return mark.words
    if get_origin(kind) is Annotated:
        inner, *more = get_args(kind)
        return _expected(inner, more)
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(_expected(part, metadata) for part in get_args(kind) if part is not NoneType)
    if get_origin(kind) is Literal:
        *most, last = get_args(kind)
        return f"{', '.join(most)} or {last}" if most else last
    if _is_section(kind):
        return "a mapping of " + ", ".join(kind.model_fields)
    words = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}[kind]
    return words + _range(metadata)


def _range(metadata: Sequence[Any]) -> str:
    low, high, above = (
        next((getattr(mark, bound) for mark in metadata if hasattr(mark, bound)), None) for bound in ("ge", "le", "gt")
    )
    if low is not None and high is not None:
        return f" from {low} to {high}"
    if low is not None:
        return f" of at least {low}"
    return "" if above is None else f" above {above}"
