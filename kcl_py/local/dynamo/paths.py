"""Document paths: where a value lies in an item, and items with a value put, removed or picked there.

Items are copied along the path and shared elsewhere; none is changed in place.
"""

from collections.abc import Iterable
from typing import Any, TypeAlias

from kcl_py.local.dynamo.errors import Refusal, invalid
from kcl_py.local.dynamo.values import Item, Value

Path: TypeAlias = tuple[str | int, ...]
"""Names of attributes and indexes of lists, from the top: ``a.b[1]`` is ``("a", "b", 1)``."""


def path_text(path: Path) -> str:
    """Return the path as AWS's sentences have it."""
    return "[" + ", ".join(f"[{step}]" if isinstance(step, int) else step for step in path) + "]"


def find(item: Item, path: Path) -> Value | None:
    """Return the value at ``path``, None if there is none."""
    value: Value | None = item.get(path[0])  # type: ignore[arg-type]  # the first step is a name
    for step in path[1:]:
        if value is None:
            return None
        value = _member(value, step)
    return value


def _member(value: Value, step: str | int) -> Value | None:
    if isinstance(step, str):
        found: Value | None = value["M"].get(step) if "M" in value else None
        return found
    members = value.get("L", ())
    return members[step] if step < len(members) else None


def assign(item: Item, path: Path, value: Value) -> Item:
    """Return ``item`` with ``value`` at ``path``; beyond a list's end it is appended. Raises Refusal."""
    result: Item = _changed({"M": item}, path, value)["M"]
    return result


def remove(item: Item, path: Path) -> Item:
    """Return ``item`` without what is at ``path``. Raises Refusal if nothing could be there."""
    result: Item = _changed({"M": item}, path, None)["M"]
    return result


def _changed(value: Value | None, path: Path, new: Value | None) -> Value:
    """Return ``value`` with what is at ``path`` replaced, or taken out."""
    step, kind = path[0], "M" if isinstance(path[0], str) else "L"
    if value is None or kind not in value:
        raise _bad_path()
    members: Any = value[kind].copy()
    if len(path) > 1:
        members[step] = _changed(_member(value, step), path[1:], new)
    elif kind == "L" and step >= len(members):  # type: ignore[operator]  # a list's step is an index
        members += [] if new is None else [new]
    elif new is not None:
        members[step] = new
    elif kind == "L":
        del members[step]
    else:
        members.pop(step, None)
    return {kind: members}


def _bad_path() -> Refusal:
    return invalid("The document path provided in the update expression is invalid for update")


def pick(item: Item, paths: Iterable[Path]) -> Item:
    """Return only what lies at ``paths``, each inside what it lies in; lists close their gaps."""
    wanted: dict[str | int, Any] = {}
    for path in paths:
        node = wanted
        for step in path[:-1]:
            node = node.setdefault(step, {})
        node[path[-1]] = None
    picked: Item = _picked({"M": item}, wanted).get("M", {})
    return picked


def _picked(value: Value, wanted: dict[str | int, Any]) -> Value:
    """Return the wanted members of ``value``, or nothing."""
    found: list[tuple[str | int, Value]] = []
    for step in sorted(wanted, key=lambda step: step if isinstance(step, int) else 0):
        member, inner = _member(value, step), wanted[step]
        if member is not None and inner is not None:
            member = _picked(member, inner)
        if member:
            found.append((step, member))
    if not found:
        return {}
    return {"M": dict(found)} if isinstance(found[0][0], str) else {"L": [member for _, member in found]}


def overlap(paths: list[Path]) -> tuple[str, Path, Path] | None:
    """Return the first two paths that cannot stand together, and why: they ``overlap`` or ``conflict``."""
    for number, later in enumerate(paths):
        for earlier in paths[:number]:
            for one, other in zip(earlier, later, strict=False):
                if type(one) is not type(other):
                    return "conflict", earlier, later
                if one != other:
                    break
            else:
                return "overlap", earlier, later
    return None
