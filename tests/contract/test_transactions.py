"""Effects and a lease row in one transaction, and effects alone, against every DynamoDB that the leases are held to."""

from decimal import Decimal
from itertools import count
from typing import Any

import pytest
import pytest_asyncio

from kcl_py.effects import ConditionCheck, Delete, Effect, Put, Update
from kcl_py.errors import ConditionFailedError, EffectsRefusedError
from kcl_py.leases import commits, transactions
from kcl_py.leases.attributes import decode_item, encode
from kcl_py.leases.memory import MemoryLeaseStore
from kcl_py.leases.settling import decide
from kcl_py.leases.store import Write
from kcl_py.records import SequenceNumber
from tests.contract.conftest import Bench, dynamo_bench, some_leases
from tests.contract.lease_rows import KEY, MINE, a_row, stored

pytestmark = pytest.mark.asyncio(loop_scope="session")

AT = SequenceNumber(1500)
_tables = count(1)


class Tabled:
    """A lease table with one row, and an empty table beside it."""

    def __init__(self, client: Any, bench: Bench, table: str) -> None:
        self._client, self.bench, self.store, self.table = client, bench, bench.store, table

    async def item(self, key: str) -> dict[str, Any] | None:
        reply = await self._client.get_item(TableName=self.table, Key={"k": encode(key)}, ConsistentRead=True)
        return decode_item(reply["Item"]) if "Item" in reply else None

    @property
    def write(self) -> Write:
        """The checkpoint that goes with the effects of a test."""
        return commits.transact(a_row(), **MINE, position=AT, effects=(), transaction=self.table)

    async def transact(self, *effects: Effect, write: Write | None = None) -> None:
        request_token = write.request_token if write else f"token-{next(_tables)}"
        await self.store.transact(transactions.wire(effects, most=99), request_token=request_token, write=write)


@pytest_asyncio.fixture(loop_scope="session")
async def tabled(dynamo_client: Any) -> Tabled:
    """One DynamoDB at a time."""
    bench = await dynamo_bench(dynamo_client, some_leases())
    await bench.put(stored(a_row()))
    table = f"effects-{next(_tables)}"
    await dynamo_client.create_table(
        TableName=table,
        KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return Tabled(dynamo_client, bench, table)


async def test_effects_and_checkpoint_are_written_together(tabled: Tabled) -> None:
    """And the row tells that it was this transaction; attributes that nobody knows stay."""
    await tabled.transact(Update(tabled.table, {"k": "a"}, "ADD n :n", values={":n": 3}), write=tabled.write)
    row = await tabled.store.read(KEY)
    assert row is not None
    assert (row.position, row.counter, row.native.transaction) == (AT, 42, tabled.table)
    assert await tabled.item("a") == {"k": "a", "n": 3}
    assert decide(tabled.write, row) == "succeeded"
    assert await tabled.bench.get(KEY) == stored(row)


async def test_effects_of_every_kind_take_plain_values(tabled: Tabled) -> None:
    """Sets, maps, Decimals and nothing."""
    table = tabled.table
    item = {
        "k": "a",
        "set": {"x"},
        "nums": {1, 2},
        "bins": {b"x"},
        "d": Decimal("1.5"),
        "none": None,
        "m": {"l": [True]},
    }
    await tabled.transact(Put(table, item), Put(table, {"k": "gone"}))
    await tabled.transact(
        Put(table, {"k": "b"}, "attribute_not_exists(#k)", names={"#k": "k"}),
        Delete(table, {"k": "gone"}, "attribute_exists(k)"),
        ConditionCheck(table, {"k": "a"}, "d = :d", values={":d": Decimal("1.5")}),
    )
    assert await tabled.item("a") == item | {"d": 1.5}
    assert (await tabled.item("b"), await tabled.item("gone")) == ({"k": "b"}, None)


async def test_condition_of_an_effect_that_does_not_hold_is_named_and_nothing_is_written(tabled: Tabled) -> None:
    """By its number and DynamoDB's reason, without a value."""
    effects = [
        Put(tabled.table, {"k": "a"}),
        Put(tabled.table, {"k": "secret"}, "attribute_exists(k)"),
    ]
    with pytest.raises(EffectsRefusedError) as caught:
        await tabled.transact(*effects, write=tabled.write)
    assert str(caught.value) == (
        "cannot apply 2 effects in one transaction: expected DynamoDB to take them all, found ConditionalCheckFailed "
        f"for the Put in table {tabled.table!r}, number 1; nothing was written, and the lease is still held"
    )
    assert caught.value.reasons == {1: "ConditionalCheckFailed"}
    assert (await tabled.item("a"), await tabled.bench.get(KEY)) == (None, stored(a_row()))


@pytest.mark.parametrize("changes", [{"counter": 40}, {"native": {"token": "theirs"}}], ids=["counter", "token"])
async def test_row_that_is_not_as_tested_outweighs_the_effects(tabled: Tabled, changes: dict[str, Any]) -> None:
    """A consistent read decides then, as for each write."""
    await tabled.bench.put(stored(a_row(**changes)))
    with pytest.raises(ConditionFailedError):
        await tabled.transact(Put(tabled.table, {"k": "a"}, "attribute_exists(k)"), write=tabled.write)
    assert await tabled.item("a") is None


async def test_table_that_is_not_there_is_the_fault_of_the_effects(tabled: Tabled) -> None:
    """It says nothing of the lease table, which the worker could not do without."""
    with pytest.raises(EffectsRefusedError, match="ResourceNotFoundException"):
        await tabled.transact(Put("no-such-table", {"k": "a"}), write=tabled.write)
    assert await tabled.bench.get(KEY) == stored(a_row())


async def test_effects_that_make_no_sense_are_refused(tabled: Tabled) -> None:
    """Two on one item."""
    with pytest.raises(EffectsRefusedError, match="ValidationException"):
        await tabled.transact(*[Put(tabled.table, {"k": "a"})] * 2, write=tabled.write)
    assert await tabled.bench.get(KEY) == stored(a_row())


async def test_transaction_that_is_sent_twice_is_applied_once(tabled: Tabled) -> None:
    """A DynamoDB that knows the token says so; one that does not finds that the row has moved on."""
    effects = [Update(tabled.table, {"k": "a"}, "ADD n :n", values={":n": 3})]
    await tabled.transact(*effects, write=tabled.write)
    try:
        await tabled.transact(*effects, write=tabled.write)
    except ConditionFailedError:
        assert decide(tabled.write, await tabled.store.read(KEY)) == "succeeded"
    assert await tabled.item("a") == {"k": "a", "n": 3}


async def test_memory_has_no_tables() -> None:
    """And says so."""
    with pytest.raises(EffectsRefusedError, match=r"expected leases\.store dynamodb, found memory"):
        await MemoryLeaseStore([a_row()]).transact((), request_token="x")
