"""Sentences about configuration that cannot be used: ``key.path: expected X, found Y; did you mean Z?``.

Pure. Never shows a value under a key that we do not know, nor a password in an address.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from kcl_py.options import Option, options
from kcl_py.printable import printable

_SHOWN_CHARS = 60


def faults_of(invalid: ValidationError, values: Mapping[str, Any]) -> list[str]:
    """Make one sentence for each option that is wrong, in the order of the table; then the keys that are none.

    A key that was probably meant for an option which is wrong stands before it: it is the cause.
    Of a section that may also be a word nothing is said where what is in it says more.
    """
    faults = dict(_fault(error["type"], error["loc"], error["msg"], values) for error in invalid.errors())
    order = list(options())

    def place(path: str) -> tuple[int, bool]:
        option = path if path in order else nearest_option(path)
        return (order.index(option) if option in faults else len(order)), path in order

    return [
        faults[path] for path in sorted(faults, key=place) if not any(other.startswith(f"{path}.") for other in faults)
    ]


def describe(value: object) -> str:
    """Say what was found, short enough for one line."""
    if value is None or value == "":
        return "nothing"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    return repr(_short(re.sub(r"//[^/]*@", "//***@", str(value))))


def unknown_key(parent: str, key: str) -> tuple[str, str]:
    """Return the path of a key that is no option, and the sentence that says so and which one is nearest."""
    path = f"{parent}.{printable(_short(key)) or repr(key)}".lstrip(".")
    expected = f"a known key of {parent}" if parent else "a known key"
    section, _, leaf = key.rpartition(".")
    meant = f"{leaf} under {section}" if key in options() and section else nearest_option(path)
    return path, f"{path}: expected {expected}, found {_short(key)!r}" + did_you_mean(meant)


def nearest_option(path: str) -> str | None:
    """Find the option that was probably meant: nearly the same path, or the same last key elsewhere."""
    known = options()
    near = get_close_matches(path, known, n=1, cutoff=0.8)
    leaf = path.rpartition(".")[2]
    leaves = {option.rpartition(".")[2]: option for option in reversed(known)}
    same = get_close_matches(leaf, leaves, n=1, cutoff=0.8)
    return near[0] if near else leaves[same[0]] if same else None


def did_you_mean(near: str | None) -> str:
    """The last part of a fault, or nothing."""
    return f"; did you mean {near}?" if near else ""


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"


def _fault(kind: str, loc: Sequence[str | int], message: str, values: Mapping[str, Any]) -> tuple[str, str]:
    if kind == "extra_forbidden":
        return unknown_key(_known_path(loc[:-1]), str(loc[-1]))
    path = _known_path(loc)
    option = options().get(path)
    if option is None or (kind == "value_error" and option.is_section):  # a rule about several options
        sentence = f"{path}.{message}".lstrip(".").replace("Value error, ", "")
        return sentence.partition(":")[0], sentence
    value = _value_at(path, values)
    return path, f"{path}: expected {option.expected}, found {describe(value)}" + did_you_mean(
        _nearest_value(option, value)
    )


def _known_path(loc: Sequence[str | int]) -> str:
    """The option that ``loc`` is about: in between may be names that pydantic gives to the parts of a union."""
    path = ""
    for part in loc:
        longer = f"{path}.{part}".lstrip(".")
        path = longer if longer in options() else path
    return path


def _value_at(path: str, values: Any) -> Any:
    for key in path.split("."):
        values = values.get(key) if isinstance(values, Mapping) else getattr(values, key, None)
    return values


def _nearest_value(option: Option, value: object) -> str | None:
    if not isinstance(value, str):
        return None
    if option.path == "start":
        return _nearest_start(value)
    near = get_close_matches(value.lower(), option.choices, n=1)
    return near[0] if near else None


def _nearest_start(value: str) -> str | None:
    near = get_close_matches(value.lower(), ("trim_horizon", "latest"), n=1)
    if near:
        return near[0]
    try:
        meant = datetime.fromisoformat(value)
    except ValueError:
        return None
    return None if meant.tzinfo else f"{meant.isoformat()}Z"
