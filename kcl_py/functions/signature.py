"""What a decorated function takes: which of its parameters is the payload, the record, the shard. Pure.

A parameter is known by its annotation, and by its name where it has none. A function that takes the batch is called
for each batch, every other one for each record.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args, get_origin, get_type_hints

from kcl_py.executors.checkpointer import SyncCheckpointer
from kcl_py.functions.payload import Decode, decoder, name_of
from kcl_py.processor import Checkpointer, OwnedShard
from kcl_py.records import Record, RecordBatch

_KINDS: Mapping[Any, str] = {
    Record: "record",
    RecordBatch: "batch",
    OwnedShard: "shard",
    Checkpointer: "checkpointer",
    SyncCheckpointer: "checkpointer",
}
_NAMES = (*dict.fromkeys(_KINDS.values()), "payload", "payloads")
_EMPTY = inspect.Parameter.empty


Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Signature:
    """How to call a function."""

    is_async: bool
    parameters: Mapping[str, str]
    """What each parameter is: record, batch, shard, checkpointer or payload."""
    decode: Decode | None
    """None: it takes no payload."""

    @property
    def takes_batches(self) -> bool:
        return "batch" in self.parameters.values()

    def arguments(self, **values: Any) -> dict[str, Any]:
        """Return what to call the function with."""
        return {name: values[kind] for name, kind in self.parameters.items()}


def signature_of(function: Function) -> Signature:
    """Find out how to call ``function``.

    Raises:
        ValueError: it cannot be called with records or with batches; ``expected X, found Y``.
    """
    _check_kind(function)
    is_async, annotations = inspect.iscoroutinefunction(function), _annotations(function)
    _check_checkpointer(annotations, is_async=is_async)
    kinds: dict[str, str] = {}
    for parameter in inspect.signature(function).parameters.values():
        if (kind := _kind(parameter, annotations.get(parameter.name, _EMPTY))) is not None:
            kinds[parameter.name] = kind
    _check_together(kinds)
    payload = next((name for name, kind in kinds.items() if kind == "payload"), None)
    if payload is None:
        return Signature(is_async, kinds, None)
    wanted = annotations.get(payload, _EMPTY)
    wanted = _element(payload, wanted) if "batch" in kinds.values() else wanted
    return Signature(is_async, kinds, _decoder(payload, wanted))


def _check_kind(function: Function) -> None:
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        kind = "an async generator" if inspect.isasyncgenfunction(function) else "a generator"
        raise ValueError(f"expected `async def` or `def`, found {kind}; take out its yield")
    if not (inspect.iscoroutinefunction(function) or inspect.isfunction(function)):
        raise ValueError(f"expected `async def` or `def`, found {type(function).__name__}")


def _check_checkpointer(annotations: Mapping[str, Any], *, is_async: bool) -> None:
    expected, found = (Checkpointer, SyncCheckpointer) if is_async else (SyncCheckpointer, Checkpointer)
    for name, annotation in annotations.items():
        if annotation is found and name != "return":
            kind = "async def" if is_async else "def"
            raise ValueError(
                f"expected {name} of `{kind}` to be a {expected.__module__}.{expected.__name__}, found {found.__name__}"
            )


def _annotations(function: Function) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except Exception as error:
        raise ValueError(
            "expected annotations that can be read when the module is imported, found "
            f"{type(error).__name__}: {error}; define what they name above, and import it outside of `if TYPE_CHECKING`"
        ) from error


def _kind(parameter: inspect.Parameter, annotation: Any) -> str | None:
    """Return what a parameter is; None if it is left to its default."""
    name = parameter.name
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
        raise ValueError(f"expected parameters that are passed by name, found {str(parameter).partition(':')[0]!r}")
    if annotation in _KINDS:
        return _KINDS[annotation]
    if annotation is _EMPTY and name in _NAMES:
        return name.removesuffix("s")
    if parameter.default is not _EMPTY:
        return None
    if annotation is _EMPTY:
        raise ValueError(
            f"expected parameter {name!r} to be named {', '.join(_NAMES[:-1])} or {_NAMES[-1]}, or to be annotated "
            "with the type of the payload, found neither"
        )
    return "payload"


def _check_together(kinds: Mapping[str, str]) -> None:
    found = list(kinds.values())
    for kind in dict.fromkeys(found):
        if found.count(kind) > 1:
            names = " and ".join(name for name in kinds if kinds[name] == kind)
            raise ValueError(f"expected one {kind} at most, found {names}")
    if "batch" in found and "record" in found:
        raise ValueError("expected a record or a batch, found both; take out one")
    if "checkpointer" in found and "batch" not in found:
        raise ValueError("expected a batch beside the checkpointer, found none; only batches are checkpointed by hand")
    if not {"payload", "record", "batch"} & set(found):
        raise ValueError("expected a payload, a record or a batch among the parameters, found none")


def _element(name: str, wanted: Any) -> Any:
    """Return the type of each payload of a batch."""
    if wanted is _EMPTY:
        return _EMPTY
    if wanted is list or (get_origin(wanted) is list):
        return (get_args(wanted) or (_EMPTY,))[0]
    raise ValueError(f"expected {name} to be a list beside a batch, such as list[{name_of(wanted)}], found it is none")


def _decoder(name: str, wanted: Any) -> Decode:
    try:
        return decoder(wanted)
    except Exception as error:
        raise ValueError(f"expected {name} to be of a type that a payload can be decoded to, found {error}") from error
