"""What only a store with real tables can show: pages, and tables that go away."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from actors.clock import SystemClock
from kcl_py.config import Provisioned
from kcl_py.errors import LeaseTableError, MissingError
from kcl_py.leases import rules
from kcl_py.leases.capacity import Capacity
from kcl_py.leases.dynamodb import DynamoLeaseStore
from kcl_py.leases.row import LeaseRow, WorkerRow
from kcl_py.leases.store import LeaseStore
from tests.contract.conftest import dynamo_bench, some_leases
from tests.contract.lease_rows import MINE, a_row, stored

pytestmark = pytest.mark.asyncio(loop_scope="session")

LARGE = 100_000
"""Bytes of an item of which eleven fill a page of 1 MB."""

CALLS: dict[str, Callable[[LeaseStore], Awaitable[Any]]] = {
    "scan": lambda store: store.scan(),
    "read": lambda store: store.read("shardId-7"),
    "create": lambda store: store.create(a_row()),
    "create child": lambda store: store.create(a_row(), parent=rules.parent_is_mine(a_row(key="p"), **MINE)),
    "write": lambda store: store.write(rules.heartbeat(a_row(), **MINE)),
    "delete": lambda store: store.delete(rules.reset(a_row())),
    "workers": lambda store: store.workers(),
    "put worker": lambda store: store.put_worker(WorkerRow("w/0")),
    "delete worker": lambda store: store.delete_worker("w/0"),
}


async def test_scan_follows_pages_to_the_end(dynamo_client: Any) -> None:
    """A table larger than one reply is read whole."""
    bench = await dynamo_bench(dynamo_client, some_leases())
    keys = [f"shardId-{number:012}" for number in range(25)]
    for key in keys:
        await bench.put(stored(LeaseRow(key)) | {"ballast": "x" * LARGE})
    assert sorted(row.key for row in (await bench.store.scan()).rows) == keys


@pytest.mark.parametrize("consistent", [False, True])
async def test_large_table_is_read_in_segments_as_it_is_read_at_once(
    dynamo_client: Any, consistent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second look knows how large the table is: every row comes once, and what is no lease is named once."""
    monkeypatch.setattr("kcl_py.leases.segments.ROWS", 4)
    bench = await dynamo_bench(dynamo_client, some_leases())
    for number in range(15):
        await bench.put(stored(LeaseRow(f"shardId-{number:012}")))
    await bench.put({"leaseKey": "junk"})
    at_once, in_segments = [await bench.store.scan(consistent=consistent) for _ in range(2)]
    assert len(in_segments.rows) == 15
    assert sorted(in_segments.rows, key=str) == sorted(at_once.rows, key=str)
    assert in_segments.malformed == at_once.malformed
    assert "'junk'" in in_segments.malformed[0]


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_every_call_says_that_the_table_is_missing(
    dynamo_client: Any, call: Callable[[LeaseStore], Awaitable[Any]]
) -> None:
    """A table that is deleted while workers run is told apart from a row that is, and is not made anew."""
    leases = some_leases()
    bench = await dynamo_bench(dynamo_client, leases)
    for table in (leases.table, leases.workers_table):
        await dynamo_client.delete_table(TableName=table)
    with pytest.raises(MissingError, match=leases.table):
        await call(bench.store)
    assert leases.table not in (await dynamo_client.list_tables())["TableNames"]


async def test_ensure_creates_both_tables_as_billed(dynamo_client: Any) -> None:
    """New tables have the Java client's keys and the billing that was asked for."""
    leases = some_leases().model_copy(update={"billing": Provisioned(read=3, write=4)})
    store = DynamoLeaseStore(dynamo_client, leases, clock=SystemClock())
    took_s = await store.ensure()
    assert took_s is not None
    assert took_s >= 0
    for name, key in ((leases.table, "leaseKey"), (leases.workers_table, "wid")):
        table = (await dynamo_client.describe_table(TableName=name))["Table"]
        assert table["KeySchema"] == [{"AttributeName": key, "KeyType": "HASH"}]
        units = table["ProvisionedThroughput"]
        assert (units["ReadCapacityUnits"], units["WriteCapacityUnits"]) == (3, 4)
    assert store.capacity == (Capacity(3, 4), Capacity(3, 4))


async def test_ensure_refuses_a_table_with_another_key(dynamo_client: Any) -> None:
    """The error names what was expected and what is there; the table is left alone."""
    leases = some_leases()
    await dynamo_client.create_table(
        TableName=leases.table,
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}, {"AttributeName": "at", "KeyType": "RANGE"}],
        AttributeDefinitions=[
            {"AttributeName": "id", "AttributeType": "S"},
            {"AttributeName": "at", "AttributeType": "N"},
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    with pytest.raises(LeaseTableError) as caught:
        await DynamoLeaseStore(dynamo_client, leases, clock=SystemClock()).ensure()
    assert str(caught.value) == (
        f"cannot use lease table {leases.table!r}: expected the key leaseKey (S) hash, "
        "found id (S) hash, at (N) range; name another table in leases"
    )
