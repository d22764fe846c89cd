"""A bad day as a file, for ``kcl local --faults FILE``: a seed and a list of rules.

Reading it says everything that is wrong with it at once: file, rule, field, what was expected and what was found.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from kcl_py.document import read_document
from kcl_py.errors import ConfigError
from kcl_py.faults import describe, did_you_mean
from kcl_py.local.faults.fault import Fault, Kind

MOST_DIGITS = 18
"""Of a whole number."""
MOST_SHOWN = 5
"""Values of a list."""


@dataclass(frozen=True, slots=True)
class Script:
    """What a file says."""

    seed: int | None
    """Decides where a rule leaves it to chance; None: any."""
    faults: tuple[Fault, ...]


def read_script(where: str) -> Script:
    """Return what stands in the file.

    Raises:
        ConfigError: it cannot be read, or something in it makes no sense.
    """
    values, wrong = read_document(where)
    if not isinstance(values, dict):
        raise ConfigError(f"{where}: expected a mapping of seed and faults, found {describe(values)}")
    wrong += _unknown(values, ("seed", "faults"))
    seed, faults = None, []
    try:
        seed = _field("seed", values.get("seed"))
    except ConfigError as error:
        wrong += error.faults
    for number, rule in enumerate(_rules(values.get("faults"), wrong), 1):
        try:
            faults.append(_fault(rule))
        except ConfigError as error:
            wrong += [f"rule {number}: {sentence}" for sentence in error.faults]
    if wrong:
        raise ConfigError(f"{where}: {wrong[0]}", *wrong[1:])
    return Script(seed, tuple(faults))


def _rules(value: Any, wrong: list[str]) -> list[Any]:
    if isinstance(value, list) and value:
        return value
    wrong.append(f"faults: expected a list of rules, found {'an empty one' if value == [] else describe(value)}")
    return []


def _fault(rule: Any) -> Fault:
    """Return one rule. Raises ConfigError with a sentence for each field that is wrong."""
    if not isinstance(rule, dict):
        raise ConfigError(f"expected a mapping such as {{kind: error, operation: PutItem}}, found {describe(rule)}")
    wrong = list(_unknown(rule, FIELDS))
    fields: dict[str, Any] = {}
    for name, value in rule.items():
        if name in FIELDS and value is not None:
            try:
                fields[name] = _field(name, value)
            except ConfigError as error:
                wrong += error.faults
    if rule.get("kind") is None:
        wrong.append(f"kind: expected {_KINDS}, found nothing")
    if wrong:
        raise ConfigError(*wrong)
    return Fault(**fields)


def _field(name: str, value: Any) -> Any:
    if value is None:
        return None
    expected, read = _SEED if name == "seed" else FIELDS[name]
    try:
        return read(value)
    except ValueError:
        near = get_close_matches(value.lower(), Kind, n=1) if name == "kind" and isinstance(value, str) else []
        meant = did_you_mean(near[0] if near else None)
        raise ConfigError(f"{name}: expected {expected}, found {_found(value)}{meant}") from None


def _found(value: Any) -> str:
    """Describe a value; of a short list, what it holds."""
    is_short = isinstance(value, list) and len(value) <= MOST_SHOWN
    return f"[{', '.join(map(describe, value))}]" if is_short else describe(value)


def _unknown(values: Mapping[str, Any], known: "Mapping[str, Any] | tuple[str, ...]") -> Iterator[str]:
    for key in values:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            yield f"{describe(key)}: expected {_either(list(known))}" + did_you_mean(near[0] if near else None)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise ValueError(value)


def _whole(value: Any) -> int:
    if isinstance(value, str) and len(value) <= MOST_DIGITS:
        return int(value)
    raise ValueError(value)


def _number(value: Any) -> float:
    return float(_text(value))


def _wholes(value: Any) -> tuple[int, ...]:
    if isinstance(value, list) and value:
        return tuple(_whole(one) for one in value)
    raise ValueError(value)


def _either(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


_KINDS = _either(list(Kind))
_SEED: tuple[str, Callable[[Any], Any]] = ("a whole number", _whole)
FIELDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "kind": (_KINDS, Kind),
    "service": ("the name of a service", _text),
    "operation": ("AWS's name of an operation", _text),
    "calls": ("a list of the numbers of calls, such as [3, 4]", _wholes),
    "probability": ("a number from 0 to 1", _number),
    "times": ("a whole number", _whole),
    "code": ("an error code of AWS's", _text),
    "delay_s": ("a number of seconds", _number),
}
"""What a rule may say: each field of a ``Fault``, with what is expected and how it is read."""
