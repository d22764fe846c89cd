"""Payloads as a function wants them: decoded as the annotation of its parameter says."""

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Annotated, Any, get_args, get_origin

import msgspec
from msgspec.inspect import CustomType, type_info

from kcl_py.functions.refusal import names_in, not_utf8, of_msgspec, of_pydantic
from kcl_py.outcomes import Reject

_MODULES = re.compile(r"(\w+|<locals>)\.")

Decode = Callable[[bytes], Any]


def decoder(wanted: Any) -> Decode:
    """Make the function that decodes payloads as ``wanted``; for others it returns a ``Reject`` that says why.

    ``bytes``, or no annotation: as it was put. ``str``: UTF-8. A model or dataclass of pydantic's, or a type with one
    in it: JSON, by pydantic. All other types: JSON, by msgspec.

    Raises:
        TypeError: neither msgspec nor pydantic can make such a value.
    """
    if wanted in (bytes, inspect.Parameter.empty):
        return lambda data: data
    if wanted is str:
        return _refusing(bytes.decode, "str", UnicodeDecodeError, not_utf8)
    if any(hasattr(part, "__pydantic_core_schema__") for part in _parts(wanted)):
        return _of_pydantic(wanted)
    if any(isinstance(type_info(part), CustomType) for part in (wanted, *_parts(wanted))):
        raise TypeError(f"{name_of(wanted)} is none that msgspec or pydantic can make")
    return _refusing(msgspec.json.Decoder(wanted).decode, name_of(wanted), Exception, of_msgspec)


def name_of(wanted: Any) -> str:
    """Return what a type is called, without its modules and what is annotated to it."""
    if get_origin(wanted) is Annotated:
        return name_of(get_args(wanted)[0])
    return wanted.__name__ if isinstance(wanted, type) and not get_args(wanted) else _MODULES.sub("", str(wanted))


def _of_pydantic(wanted: Any) -> Decode:
    from pydantic import TypeAdapter, ValidationError  # who has such a type has loaded it

    adapter: TypeAdapter[Any] = TypeAdapter(wanted)
    names = frozenset(names_in(adapter.core_schema))

    def reason(error: Exception) -> str:
        if not isinstance(error, ValidationError):  # of a validator, in the words of whoever wrote it
            return f"expected what its validators accept, found one raise {type(error).__name__}"
        shown = error.errors(include_url=False, include_input=False, include_context=False)
        return of_pydantic([dict(each) for each in shown], names)

    return _refusing(adapter.validate_json, name_of(wanted), Exception, reason)


def _refusing(decode: Decode, name: str, failure: type[Exception], reason: Callable[[Any], str]) -> Decode:
    def attempt(data: bytes) -> Any:
        try:
            return decode(data)
        except failure as error:
            said = "expected less nesting" if isinstance(error, RecursionError) else reason(error)
        return Reject(f"cannot decode payload as {name}: {said}")

    return attempt


def _parts(wanted: Any) -> Iterator[Any]:
    """Yield a type and, where it is made of others, those."""
    arguments = [each for each in get_args(wanted) if isinstance(each, type) or get_args(each)]
    yield from (part for each in arguments for part in _parts(each))
    if not arguments:
        yield wanted
