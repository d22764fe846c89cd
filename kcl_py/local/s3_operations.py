"""Which of S3's operations a request is: S3 says it by method, path, query and headers, and nowhere by name.

Pure, after AWS's own model of S3 was read once. Buckets are in the path, as clients put them for an address in digits.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

from kcl_py.local.shape import api

_BUCKET, _OBJECT = "/{Bucket}", "/{Bucket}/{Key+}"


@dataclass(frozen=True, slots=True)
class _Route:
    """What a request of one operation has, at least."""

    operation: str
    literals: frozenset[tuple[str, str]]
    """Parts of the query; an empty value stands for any."""
    headers: frozenset[str]

    def fits(self, query: Mapping[str, str], headers: Collection[str]) -> bool:
        return self.headers <= set(headers) and all(
            name in query and value in ("", query[name]) for name, value in self.literals
        )


def operation_of(method: str, path: str, query: str, headers: Collection[str]) -> str:
    """Return AWS's name of the operation: of those that fit, the one that asks for most; empty if none does.

    Args:
        method: such as ``GET``.
        path: from the first slash on.
        query: as it was sent.
        headers: their names, in small letters.
    """
    bucket, _, key = path.removeprefix("/").partition("/")
    place = _OBJECT if key else _BUCKET if bucket else "/"
    asked = dict(parse_qsl(query, keep_blank_values=True))
    return next((route.operation for route in _routes().get((method, place), ()) if route.fits(asked, headers)), "")


@cache
def _routes() -> Mapping[tuple[str, str], list[_Route]]:
    """Return all operations by method and place, those that ask for most first."""
    routes: dict[tuple[str, str], list[_Route]] = {}
    for name in sorted(api("s3").operations):
        operation = api("s3").model.operation_model(name)
        if operation.deprecated:  # another has its address
            continue
        place, _, literals = operation.http["requestUri"].partition("?")
        asked = dict(parse_qsl(literals, keep_blank_values=True)) | _required(operation, "querystring")
        route = _Route(name, frozenset(asked.items()), frozenset(_required(operation, "header")))
        routes.setdefault((operation.http["method"], place), []).append(route)
    for found in routes.values():
        found.sort(key=lambda route: -len(route.literals) - len(route.headers))
    return routes


def _required(operation: Any, location: str) -> dict[str, str]:
    """Return the names of what must be in the query or among the headers, with empty values."""
    shape = operation.input_shape
    required = [shape.members[name].serialization for name in shape.required_members] if shape else []
    names = [str(where["name"]) for where in required if where.get("location") == location]
    return {name.lower() if location == "header" else name: "" for name in names}
