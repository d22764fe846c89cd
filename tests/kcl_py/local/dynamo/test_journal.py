"""``--data`` for tables: over a restart, a crash, a full disk; compacted, and never half a transaction."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from kcl_py.local.batches import BatchFile
from kcl_py.local.dynamo.behaviour import Behaviour
from kcl_py.local.dynamo.changes import VERSION, Begin
from kcl_py.local.dynamo.journal import LEAST_BYTES, Journal
from kcl_py.local.dynamo.model import DynamoDB
from kcl_py.local.errors import ModelError
from tests.clocks import PromptClock
from tests.kcl_py.local.test_batches import disk_full_at

INDEX = {
    "IndexName": "owners",
    "KeySchema": [{"AttributeName": "o", "KeyType": "HASH"}],
    "Projection": {"ProjectionType": "ALL"},
}
VALUES: dict[str, Any] = {
    "n": {"N": "-12.5"},
    "b": {"B": b"\x00\xff"},
    "sets": {"M": {"ss": {"SS": ["a", "b"]}, "ns": {"NS": ["1", "2"]}, "bs": {"BS": [b"\x01"]}}},
    "list": {"L": [{"BOOL": True}, {"NULL": True}, {"S": "ünï"}, {"L": []}, {"M": {}}]},
}


class Tables:
    """A DynamoDB in a folder."""

    def __init__(self, folder: Path, clock: PromptClock, **behaviour: Any) -> None:
        self.clock, self.journal = clock, Journal(folder / "tables")
        self.model = DynamoDB(Behaviour(clock, random=Random(7), **behaviour), self.journal)
        self.model.adopt(self.journal.load())

    def call(self, operation: str, **params: Any) -> dict[str, Any]:
        return self.model.call(operation, params)

    def create(self, name: str = "tab", **more: Any) -> None:
        self.call(
            "CreateTable",
            TableName=name,
            KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in ("k", "o")],
            GlobalSecondaryIndexes=[INDEX],
            BillingMode="PAY_PER_REQUEST",
            **more,
        )

    def put(self, key: str, name: str = "tab", **more: Any) -> None:
        self.call("PutItem", TableName=name, Item={"k": {"S": key}, **more})

    def keys(self, name: str = "tab") -> list[str]:
        return sorted(item["k"]["S"] for item in self.call("Scan", TableName=name)["Items"])

    def state(self) -> dict[str, Any]:
        """Return all that can be asked."""
        return {name: self._state(name) for name in self.call("ListTables")["TableNames"]}

    def _state(self, name: str) -> list[Any]:
        table = self.call("DescribeTable", TableName=name)["Table"]
        return [
            table,
            self.call("DescribeTimeToLive", TableName=name),
            self.call("DescribeContinuousBackups", TableName=name),
            self.call("ListTagsOfResource", ResourceArn=table["TableArn"]),
            self.call("Scan", TableName=name)["Items"],
            [self.call("Scan", TableName=name, IndexName=one["IndexName"]) for one in table.get(INDEXES, [])],
        ]


INDEXES = "GlobalSecondaryIndexes"


@pytest.fixture
def clock() -> PromptClock:
    return PromptClock()


@pytest.fixture
def tables(tmp_path: Path, clock: PromptClock) -> Iterator[Tables]:
    """A DynamoDB with an empty table ``tab``."""
    with opened(tmp_path, clock) as first:
        first.create()
        yield first


@contextmanager
def opened(folder: Path, clock: PromptClock, **behaviour: Any) -> Iterator[Tables]:
    tables = Tables(folder, clock, **behaviour)
    try:
        yield tables
    finally:
        tables.journal.close()


def lived(tables: Tables) -> None:
    """Do most of what can be done."""
    for number in range(50):
        tables.put(f"k{number}", o={"S": f"o{number % 3}"}, **VALUES)
    tables.call("DeleteItem", TableName="tab", Key={"k": {"S": "k7"}})
    tables.call(
        "UpdateItem",
        TableName="tab",
        Key={"k": {"S": "k8"}},
        UpdateExpression="SET n = n + :one REMOVE b",
        ExpressionAttributeValues={":one": {"N": "1"}},
    )
    tables.create("gone")
    tables.put("x", "gone")
    tables.call("DeleteTable", TableName="gone")
    tables.create("again")
    tables.put("old", "again")
    tables.call("DeleteTable", TableName="again")
    tables.create("again", DeletionProtectionEnabled=True, Tags=[{"Key": "a", "Value": "b"}])
    tables.put("new", "again")
    ttl = {"Enabled": True, "AttributeName": "ttl"}
    tables.call("UpdateTimeToLive", TableName="tab", TimeToLiveSpecification=ttl)
    recovery = {"PointInTimeRecoveryEnabled": True}
    tables.call("UpdateContinuousBackups", TableName="tab", PointInTimeRecoverySpecification=recovery)
    tables.call("UpdateTable", TableName="tab", GlobalSecondaryIndexUpdates=[{"Create": INDEX | {"IndexName": "more"}}])
    tables.call("UpdateTable", TableName="tab", GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "owners"}}])
    arn = tables.call("DescribeTable", TableName="tab")["Table"]["TableArn"]
    tables.call("TagResource", ResourceArn=arn, Tags=[{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}])
    tables.call("UntagResource", ResourceArn=arn, TagKeys=["a"])


def test_tables_with_their_items_are_there_after_a_restart(tmp_path: Path, tables: Tables) -> None:
    """All that can be asked of them is answered as before, also after a second restart."""
    lived(tables)
    before = tables.state()
    for _ in range(2):
        with opened(tmp_path, tables.clock) as again:
            assert again.state() == before
            again.put("k7")
            again.call("DeleteItem", TableName="tab", Key={"k": {"S": "k7"}})


def test_what_was_on_its_way_out_is_gone_after_a_restart(tmp_path: Path, clock: PromptClock) -> None:
    """And what was on its way in is there."""
    with opened(tmp_path, clock, delay_s=1.0) as tables:
        tables.create("going")
        clock.now_s += 1
        tables.call("DeleteTable", TableName="going")
        tables.create("coming")
    with opened(tmp_path, clock, delay_s=1.0) as again:
        assert again.call("ListTables")["TableNames"] == ["coming"]
        assert again.call("DescribeTable", TableName="coming")["Table"]["TableStatus"] == "ACTIVE"


def test_expired_items_stay_gone(tmp_path: Path, tables: Tables) -> None:
    """Whoever is told that they are gone is told so later, too."""
    ttl = {"Enabled": True, "AttributeName": "ttl"}
    tables.call("UpdateTimeToLive", TableName="tab", TimeToLiveSpecification=ttl)
    tables.put("old", ttl={"N": str(int(tables.clock.now_s) + 10)})
    tables.put("young")
    tables.clock.now_s += 100
    assert tables.keys() == ["young"]
    tables.clock.now_s -= 95
    with opened(tmp_path, tables.clock) as again:
        assert again.keys() == ["young"]


def transact(tables: Tables, *keys: str, **more: Any) -> None:
    puts = [{"Put": {"TableName": "tab", "Item": {"k": {"S": key}}}} for key in keys]
    tables.call("TransactWriteItems", TransactItems=puts, **more)


@pytest.mark.parametrize("lost", [1, 40, 60])
def test_transaction_that_was_half_written_is_not_there_at_all(tmp_path: Path, tables: Tables, lost: int) -> None:
    """And what came before it is."""
    tables.put("before")
    transact(tables, "a", "b", "c")
    tables.journal.close()
    [path] = (tmp_path / "tables").iterdir()
    path.write_bytes(path.read_bytes()[:-lost])
    with opened(tmp_path, tables.clock) as again:
        assert again.keys() == ["before"]


def test_token_of_a_transaction_counts_over_a_restart(tmp_path: Path, tables: Tables) -> None:
    """A caller that saw no answer asks again and gets it; with other content it is refused; later it is free."""
    transact(tables, "a", ClientRequestToken="token")
    tables.call("DeleteItem", TableName="tab", Key={"k": {"S": "a"}})
    with opened(tmp_path, tables.clock) as again:
        transact(again, "a", ClientRequestToken="token")
        assert again.keys() == []
        with pytest.raises(ModelError, match="IdempotentParameterMismatch"):
            transact(again, "b", ClientRequestToken="token")
        again.clock.now_s += 601
        transact(again, "b", ClientRequestToken="token")
        assert again.keys() == ["b"]


def test_file_is_bounded_by_what_is_stored_not_by_how_often_it_changed(tmp_path: Path, tables: Tables) -> None:
    """Sixty megabytes of changes to one item, a few large ones beside it."""
    for number in range(5):
        tables.put(f"large{number}", data={"B": b"y" * 300_000})
    for number in range(200):
        tables.put("k", data={"B": b"x" * 300_000}, number={"N": str(number)})
    before = tables.state()
    [path] = (tmp_path / "tables").iterdir()
    assert path.stat().st_size < LEAST_BYTES + 400_000
    with opened(tmp_path, tables.clock) as again:
        assert again.state() == before
    assert [*(tmp_path / "tables").iterdir()] == [path]


def test_crash_while_a_new_file_is_begun_loses_nothing(tmp_path: Path, tables: Tables) -> None:
    """The old one counts until the new one is complete, then the new one."""
    tables.put("a")
    tables.journal.close()
    [old] = (tmp_path / "tables").iterdir()
    old.with_name("0000000002.new").write_bytes(b"half")
    with opened(tmp_path, tables.clock) as again:
        assert again.keys() == ["a"]
        again.put("b")
    newer = old.with_name("0000000003.journal")
    newer.write_bytes(old.read_bytes())
    with opened(tmp_path, tables.clock) as again:
        assert again.keys() == ["a", "b"]
        again.put("c")
    assert [*(tmp_path / "tables").iterdir()] == [newer]


def test_nothing_is_answered_while_the_disk_is_full_and_all_goes_on_afterwards(tmp_path: Path, tables: Tables) -> None:
    """Neither is what could not be kept shown to a reader, who would act on it."""
    tables.put("before")
    with disk_full_at(1000):
        for _ in range(3):
            with pytest.raises(ModelError, match="InternalServerError: cannot write to the folder of --data") as error:
                tables.put("large", data={"B": b"x" * 2000})
            assert error.value.status == 500
        with pytest.raises(ModelError, match="InternalServerError"):
            tables.keys()
        with opened(tmp_path, tables.clock) as meanwhile:
            assert meanwhile.keys() == ["before"]
    tables.put("after")
    seen = tables.keys()
    with opened(tmp_path, tables.clock) as again:
        assert again.keys() == seen == ["after", "before", "large"]


def test_full_disk_while_a_new_file_is_begun_hinders_nobody(tmp_path: Path, tables: Tables) -> None:
    """The old file has everything and goes on."""
    large = {"B": b"x" * 300_000}
    while sum(path.stat().st_size for path in (tmp_path / "tables").iterdir()) < LEAST_BYTES - 1_000_000:
        tables.put("k", data=large)
        tables.put("other", data=large)
    (tmp_path / "tables" / "0000000002.new").mkdir()
    for _ in range(8):
        tables.put("k", data=large)
    (tmp_path / "tables" / "0000000002.new").rmdir()
    before = tables.state()
    tables.journal.close()
    [path] = (tmp_path / "tables").iterdir()
    assert path.stat().st_size > LEAST_BYTES
    with opened(tmp_path, tables.clock) as again:
        assert again.state() == before


def test_file_of_a_later_version_is_refused(tmp_path: Path) -> None:
    """Rather than misread."""
    with closing(BatchFile(tmp_path / "0000000001.journal")) as file:
        file.append(msgspec.msgpack.encode([Begin(VERSION + 1)]))
    with pytest.raises(ValueError, match="cannot read the tables: expected version 1, found 2"):
        Journal(tmp_path).load()
