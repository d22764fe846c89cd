"""Why a payload could not be decoded, in words that show where and what was expected, and nothing of what it holds.

The sentences of msgspec and pydantic quote values, keys of mappings and what a user's own validators say; so only what
is known to speak of the expected type goes through. Pure.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

_PLACE = re.compile(r" - at `(?P<place>[^`]*)`$")
_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]*)`")
_FORM = re.compile(
    r"Invalid (?P<form>UUID|decimal string|ISO8601 duration|RFC3339 encoded \w+|base64 encoded string|epoch timestamp)"
)
_SPOKEN_OF_TYPES = re.compile(
    r"(bool|bytes|dataclass|date|datetime|decimal|dict|float|frozen_set|int|list|model|model_attributes|set|string)_type"
    r"|(time|time_delta|tuple|url|uuid)_type|(bool|decimal|float|int)_parsing|int_from_float|int_parsing_size"
    r"|(bytes_|string_)?too_(long|short)|(greater|less)_than(_equal)?|multiple_of|finite_number|(date|datetime)_(past|future)"
    r"|decimal_(max_digits|max_places|whole_digits)|date_from_datetime_inexact|timezone_(aware|naive)"
    r"|enum|literal_error|none_required|string_pattern_mismatch|union_tag_not_found|url_scheme|uuid_version"
)
"""The kinds of pydantic's errors whose sentence is made of the schema alone. Source: the templates in pydantic-core."""


def of_msgspec(error: Exception) -> str:
    """Say ``at $.place: expected X, found Y`` of what ``msgspec.json`` has raised."""
    found = _PLACE.search(text := str(error))
    place = f"at {found['place']}: " if found else ""
    return place + _said_by_msgspec(error, text[: found.start()] if found else text)


def _said_by_msgspec(error: Exception, text: str) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "expected UTF-8, found other bytes"
    if error.__cause__ is not None:  # of a __post_init__, in the words of whoever wrote it
        return f"expected what its __post_init__ accepts, found it raise {type(error.__cause__).__name__}"
    if missing := _MISSING.fullmatch(text):
        return f"expected field {missing['name']}, found none"
    if form := _FORM.fullmatch(text):
        return f"expected {form['form']}, found something else"
    if text.startswith("Expected "):
        return text.replace("Expected", "expected", 1).replace(", got ", ", found ").replace("`", "")
    if text.startswith(("JSON is malformed", "Input data was truncated")):
        return f"expected JSON, found {'it malformed' + text[17:] if text.startswith('JSON') else 'its end too early'}"
    if text.startswith("Object contains unknown field"):
        return "expected no field that is unknown, found one"
    return "expected a value of its type, found another"


def of_pydantic(errors: Sequence[Mapping[str, Any]], names: Collection[str]) -> str:
    """Say the same of the ``errors()`` of a ``ValidationError``: of the first one, and how many more there are.

    Args:
        errors: at least one.
        names: those of the model's own fields; other parts of a place come from the payload.
    """
    first, more = errors[0], len(errors) - 1
    place = "".join(_step(part, names) for part in first["loc"])
    return (f"at ${place}: " if place else "") + _said_by_pydantic(first) + (f" (and {more} more)" if more else "")


def _said_by_pydantic(error: Mapping[str, Any]) -> str:
    kind, text = error["type"], str(error["msg"])
    if kind == "json_invalid":
        return f"expected JSON, found it malformed: {text.removeprefix('Invalid JSON: ')}"
    if kind == "missing":
        return "expected a field, found none"
    if kind == "extra_forbidden":
        return "expected no field that is unknown, found one"
    if _SPOKEN_OF_TYPES.fullmatch(kind):
        return text.replace("Input should be", "expected") if text.startswith("Input") else f"expected: {text}"
    return f"expected a value that its type accepts ({kind})"


def _step(part: str | int, names: Collection[str]) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    return f".{part}" if part in names else "[...]"


def not_utf8(error: UnicodeDecodeError) -> str:
    """Say the same of bytes that are no text."""
    return f"expected UTF-8, found other bytes (byte {error.start})"


def names_in(schema: object) -> Iterable[str]:
    """Yield the names and aliases of all fields in a core schema of pydantic's."""
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key == "fields" and isinstance(value, Mapping):
                yield from map(str, value)
            elif key == "name" and schema.get("type") == "dataclass-field":
                yield str(value)
            elif key == "validation_alias":
                yield from _texts(value)
            yield from names_in(value)
    elif isinstance(schema, list | tuple):
        for value in schema:
            yield from names_in(value)


def _texts(value: object) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)
