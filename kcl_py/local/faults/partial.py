"""Batches of which some fail: what is still asked of the service, and the answer to the whole. Pure.

Each part fails with even chance, at least one does. The answer of the service to the rest is told as it is.
"""

from collections.abc import Mapping
from random import Random
from typing import Any, Protocol

from kcl_py.local.errors import ModelError
from kcl_py.local.faults.fault import PARTIAL_CODES, Fault
from kcl_py.local.faults.operations import BATCH_GET, PUT_RECORDS
from kcl_py.local.shape import api

Params = Mapping[str, Any]


class Part(Protocol):
    """A batch without those that fail."""

    @property
    def params(self) -> Params | None:
        """What is asked of the service; None: nothing."""
        ...

    def answer(self, to_the_rest: Params) -> dict[str, Any]:
        """Return the answer to the whole batch, given that to the rest, or an empty one."""
        ...


def part_of(fault: Fault, service: str, operation: str, params: Params, random: Random) -> Part | None:
    """Choose which of a batch fail; None if the request has not the API's shape, so that the service says so."""
    try:
        api(service).check(operation, params)
    except ModelError:
        return None
    if operation == PUT_RECORDS:
        return _PutRecordsPart(params, random, fault.code or PARTIAL_CODES[0])
    return _BatchReadPart(params, random) if operation == BATCH_GET else _BatchWritePart(params, random)


class _PutRecordsPart:
    def __init__(self, params: Params, random: Random, code: str) -> None:
        self._failing, self._code = _failing(len(params["Records"]), random), code
        rest = [record for record, is_failing in zip(params["Records"], self._failing, strict=True) if not is_failing]
        self.params = {**params, "Records": rest} if rest else None

    def answer(self, to_the_rest: Params) -> dict[str, Any]:
        failed = {"ErrorCode": self._code, "ErrorMessage": "This record failed (injected fault)"}
        answers = iter(to_the_rest.get("Records", ()))
        records = [dict(failed) if is_failing else next(answers) for is_failing in self._failing]
        count = sum("ErrorCode" in record for record in records)
        return {**to_the_rest, "Records": records, "FailedRecordCount": count}


class _BatchWritePart:
    def __init__(self, params: Params, random: Random) -> None:
        asked: dict[str, list[Any]] = params["RequestItems"]
        self._unprocessed, rest = _divided(asked, random)
        self.params = {**params, "RequestItems": rest} if rest else None

    def answer(self, to_the_rest: Params) -> dict[str, Any]:
        more = to_the_rest.get("UnprocessedItems", {})
        tables = sorted({**self._unprocessed, **more})
        together = {table: self._unprocessed.get(table, []) + more.get(table, []) for table in tables}
        return {**to_the_rest, "UnprocessedItems": together}


class _BatchReadPart:
    def __init__(self, params: Params, random: Random) -> None:
        self._asked: dict[str, Any] = params["RequestItems"]
        self._unprocessed, rest = _divided({table: ask["Keys"] for table, ask in self._asked.items()}, random)
        self.params = {**params, "RequestItems": self._with(rest)} if rest else None

    def answer(self, to_the_rest: Params) -> dict[str, Any]:
        more = to_the_rest.get("UnprocessedKeys", {})
        tables = sorted({**self._unprocessed, **more})
        keys = {table: self._unprocessed.get(table, []) + more.get(table, {}).get("Keys", []) for table in tables}
        return {"Responses": {}, **to_the_rest, "UnprocessedKeys": self._with(keys)}

    def _with(self, keys: Mapping[str, list[Any]]) -> dict[str, Any]:
        return {table: {**self._asked[table], "Keys": some} for table, some in keys.items()}


def _divided(asked: Mapping[str, list[Any]], random: Random) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Return what fails and what is left, by table; tables without any are not there."""
    failing = iter(_failing(sum(map(len, asked.values())), random))
    gone: dict[str, list[Any]] = {}
    left: dict[str, list[Any]] = {}
    for table, some in asked.items():
        for one in some:
            (gone if next(failing) else left).setdefault(table, []).append(one)
    return gone, left


def _failing(count: int, random: Random) -> list[bool]:
    failing = [random.random() < 0.5 for _ in range(count)]
    if not any(failing):
        failing[random.randrange(count)] = True
    return failing
