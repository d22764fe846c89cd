"""One contract for every DynamoDB, and where each is known to keep it not.

A case that holds where a deviation is on record fails as well: then the record is out of date.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from tests.contract import dynamo_items, dynamo_pages, dynamo_tables
from tests.contract.dynamo_deviations import DEVIATIONS
from tests.contract.dynamo_peers import MINISTACK, Ask, at, by_moto, in_process, ministack, over_http
from tests.contract.dynamo_steps import LIST, TREE, Case, Step
from tests.contract.moto import MotoDynamoDB

CASES = (*dynamo_items.CASES, *dynamo_pages.CASES, *dynamo_tables.CASES)
PEERS = ("model", "http", "moto", *(("ministack",) if MINISTACK.is_file() else ()))

_KEY = {"AttributeName": "k", "KeyType": "HASH"}
_OWNER = {"AttributeName": "owner", "KeyType": "HASH"}
_B, _N = {"AttributeName": "b", "KeyType": "HASH"}, {"AttributeName": "n", "KeyType": "RANGE"}
TABLES: dict[str, dict[str, Any]] = {
    LIST: {"KeySchema": [_KEY], "AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}]},
    TREE: {
        "KeySchema": [_B, _N],
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": kind} for name, kind in (("b", "S"), ("n", "N"), ("owner", "S"))
        ],
        "GlobalSecondaryIndexes": [
            {"IndexName": "owners", "KeySchema": [_OWNER], "Projection": {"ProjectionType": "KEYS_ONLY"}}
        ],
    },
}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def peers(moto: MotoDynamoDB) -> AsyncIterator[dict[str, Ask]]:
    """All of them, running."""
    async with AsyncExitStack() as stack:
        asks = {"model": await stack.enter_async_context(in_process())}
        asks["http"] = await stack.enter_async_context(over_http())
        asks["moto"] = await stack.enter_async_context(by_moto(moto))
        if MINISTACK.is_file():
            asks["ministack"] = await stack.enter_async_context(at(stack.enter_context(ministack())))
        yield asks


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("peer", PEERS)
async def test_dynamodb_answers_as_the_contract_says(peers: dict[str, Ask], peer: str, case: Case) -> None:
    """Our model keeps all of it; of the others it is known what they do not."""
    await _begin(peers[peer])
    faults = [fault for step in case.steps if (fault := await _fault(peers[peer], step)) is not None]
    if case.name in DEVIATIONS.get(peer, ()):
        assert faults, f"{peer} keeps this now: take it out of the deviations"
    else:
        assert faults == []


def test_every_deviation_is_of_a_case() -> None:
    """No record outlives what it is about, and our model has none."""
    names = {case.name for case in CASES}
    assert len(names) == len(CASES)
    assert {name for known in DEVIATIONS.values() for name in known} <= names
    assert DEVIATIONS.keys() <= {"moto", "ministack"}


async def _begin(ask: Ask) -> None:
    """Make the tables anew."""
    for name in (*TABLES, "new-table"):
        await ask("UpdateTable", {"TableName": name, "DeletionProtectionEnabled": False})
        await ask("DeleteTable", {"TableName": name})
    for name, table in TABLES.items():
        status, body = await ask("CreateTable", {"TableName": name, "BillingMode": "PAY_PER_REQUEST", **table})
        assert status == 200, body


async def _fault(ask: Ask, step: Step) -> str | None:
    """Return what is wrong with the answer to a step, None if nothing is."""
    status, body = await ask(step.operation, step.params)
    if status != (400 if step.code else 200):
        return f"{step.operation}: status {status}, {body}"
    if step.code and body.get("__type", "").rpartition("#")[2] != step.code:
        return f"{step.operation}: expected {step.code}, found {body}"
    if step.says not in str(body.get("message", body.get("Message", ""))):
        return f"{step.operation}: expected {step.says!r}, found {body}"
    if present := [name for name in step.lacks if name in body]:
        return f"{step.operation}: expected no {present[0]}, found {body}"
    expected = msgspec.json.decode(msgspec.json.encode(step.gives))
    return None if not expected or _holds(body, expected) else f"{step.operation}: expected {expected}, found {body}"


def _holds(found: Any, expected: Any) -> bool:
    """Tell whether ``found`` has all that is expected; an item has nothing else, and sets are in any order."""
    if isinstance(expected, dict):
        if not isinstance(found, dict) or ((not expected or _is_item(expected)) and found.keys() != expected.keys()):
            return False
        return all(name in found and _same(name, found[name], one) for name, one in expected.items())
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(_holds, found, expected))
    return bool(found == expected)


def _is_item(expected: dict[str, Any]) -> bool:
    return all(isinstance(one, dict) and len(one) == 1 and next(iter(one)).isupper() for one in expected.values())


def _same(name: str, found: Any, expected: Any) -> bool:
    return sorted(found) == sorted(expected) if name in ("SS", "NS", "BS") else _holds(found, expected)
