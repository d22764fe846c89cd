"""The DynamoDB store where AWS is in the way: permissions, tables still being made, empty pages, silence."""

from typing import Any

import anyio
import pytest
import structlog.testing

from kcl_py.clients import until_answered
from kcl_py.config import Leases
from kcl_py.errors import LeaseTableError, RejectedError, RequestError, ThrottledError
from kcl_py.leases import rules
from kcl_py.leases.attributes import encode_item
from kcl_py.leases.dynamodb import DynamoLeaseStore
from kcl_py.leases.items import item_from_row
from kcl_py.leases.row import LeaseRow
from tests.clocks import PromptClock
from tests.contract.lease_rows import MINE, a_row
from tests.kcl_py.leases.fake_tables import FakeTables

pytestmark = pytest.mark.asyncio

LEASES = Leases(table="app", workers_table="app-workers")


def a_store(client: FakeTables, **changes: Any) -> DynamoLeaseStore:
    """Return a store that waits in no real time."""
    return DynamoLeaseStore(client, LEASES.model_copy(update=changes), clock=PromptClock())


async def test_existing_table_is_used_without_permission_to_create() -> None:
    """CreateTable is not called where it is not needed."""
    client = FakeTables(denied=("CreateTable",))
    client.add("app", "leaseKey")
    client.add("app-workers", "wid")
    store = a_store(client)
    assert await store.ensure() is None
    assert store.has_workers
    assert client.calls["CreateTable"] == 0


async def test_missing_table_is_an_error_that_names_the_permission_when_creating_is_denied() -> None:
    """The sentence says which table and what to allow."""
    client = FakeTables(denied=("CreateTable",))
    with pytest.raises(LeaseTableError) as caught:
        await a_store(client).ensure()
    assert str(caught.value) == (
        "cannot create lease table 'app': expected the permission dynamodb:CreateTable, found AccessDeniedException: "
        "CreateTable says AccessDeniedException; allow it or create the table with the key leaseKey (S)"
    )


async def test_missing_table_is_an_error_when_creating_is_switched_off() -> None:
    """leases.create: false never creates."""
    client = FakeTables()
    with pytest.raises(LeaseTableError, match=r"expected an existing table as leases\.create is false, found none"):
        await a_store(client, create=False).ensure()
    assert client.calls["CreateTable"] == 0


async def test_table_that_may_not_be_looked_at_is_an_error() -> None:
    """Without DescribeTable nothing is known about the table."""
    with pytest.raises(
        LeaseTableError, match="cannot look at lease table 'app': expected the permission dynamodb:Desc"
    ):
        await a_store(FakeTables(denied=("DescribeTable",))).ensure()


async def test_workers_that_start_at_once_all_find_the_one_table_active() -> None:
    """In use is tolerated and each waits for ACTIVE."""
    client = FakeTables(looks=7)
    took_s: list[float | None] = []

    async def start() -> None:
        store = a_store(client)
        took_s.append(await store.ensure())
        assert [table["TableStatus"] for table in client.tables.values()] == ["ACTIVE", "ACTIVE"]
        assert store.has_workers

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(start)
    assert len([one for one in took_s if one is not None]) == 1
    assert set(client.tables) == {"app", "app-workers"}


@pytest.mark.parametrize("status", ["DELETING", "ARCHIVED", "INACCESSIBLE_ENCRYPTION_CREDENTIALS"])
async def test_table_that_will_not_be_active_is_an_error(status: str) -> None:
    """A table on its way out is not waited for."""
    client = FakeTables()
    client.add("app", "leaseKey", status)
    client.add("app-workers", "wid")
    with pytest.raises(LeaseTableError, match=f"expected it to be ACTIVE within 120 s, found {status}"):
        await a_store(client).ensure()


async def test_table_that_stays_in_creation_is_an_error() -> None:
    """Waiting for ACTIVE ends."""
    client = FakeTables(looks=10**9)
    with pytest.raises(LeaseTableError, match="found CREATING"):
        await a_store(client).ensure()


async def test_worker_table_is_done_without_when_it_cannot_be_created() -> None:
    """One warning says so, and leases work."""
    client = FakeTables(denied=("CreateTable app-workers",))
    client.add("app", "leaseKey")
    store = a_store(client)
    with structlog.testing.capture_logs() as logs:
        assert await store.ensure() is None
    assert not store.has_workers
    assert [log["event"] for log in logs] == ["kcl_py.table.workers_unavailable"]
    assert logs[0]["table"] == "app-workers"
    assert "dynamodb:CreateTable" in logs[0]["error"]


async def test_new_tables_are_tagged_encrypted_and_protected_as_the_options_say() -> None:
    """Both are tagged and encrypted; that which must not be lost is protected and backed up, once DynamoDB can."""
    client = FakeTables(looks=3)
    store = a_store(client, tags={"team": "data"}, kms_key="alias/leases", pitr=True, deletion_protection=True)
    assert await until_answered(store.ensure, "cannot start", timeout_s=30.0, clock=PromptClock()) is not None
    for request in client.created.values():
        assert request["Tags"] == [{"Key": "team", "Value": "data"}]
        assert request["SSESpecification"] == {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": "alias/leases"}
    protected = [name for name, request in client.created.items() if request.get("DeletionProtectionEnabled")]
    assert (protected, client.backed_up) == (["app"], ["app"])
    await a_store(client, pitr=True).ensure()
    assert client.backed_up == ["app"], "a table that is there is used as it is"


async def test_backups_are_switched_on_by_another_try_when_aws_was_not_ready() -> None:
    """The first try has created the table; what it could not do is not forgotten."""
    client = FakeTables(throttled=("UpdateContinuousBackups",))
    store = a_store(client, pitr=True)
    with pytest.raises(ThrottledError):
        await store.ensure()
    client.throttled = ()
    assert await store.ensure() is not None
    assert client.backed_up == ["app"]


async def test_new_table_that_may_not_be_backed_up_is_an_error_that_names_the_permission() -> None:
    """Whoever asks for backups and has none finds out at once."""
    client = FakeTables(denied=("UpdateContinuousBackups",))
    with pytest.raises(LeaseTableError) as caught:
        await a_store(client, pitr=True).ensure()
    assert str(caught.value).startswith(
        "cannot back up lease table 'app': expected the permission dynamodb:UpdateContinuousBackups, found AccessDenied"
    )
    assert str(caught.value).endswith(
        "allow it and switch it on for the table, which is there now, or set leases.pitr: false"
    )


async def test_scan_goes_on_over_empty_pages() -> None:
    """Only a missing continuation key ends a scan."""
    client = FakeTables()
    rows = [LeaseRow("shardId-1"), LeaseRow("shardId-2")]
    items = [encode_item(item_from_row(row)) for row in rows]
    client.pages = [{"Items": items[:1], "LastEvaluatedKey": {"page": 1}}]
    client.pages += [{"Items": [], "LastEvaluatedKey": {"page": page}} for page in range(2, 12)]
    client.pages += [{"Items": items[1:]}]
    assert (await a_store(client).scan()).rows == tuple(rows)


@pytest.mark.parametrize("consistent", [False, True])
async def test_scan_is_as_consistent_as_it_is_asked_to_be(consistent: bool) -> None:
    """The last look of a worker that leaves must not miss what was just written; all others take the cheaper read."""
    client = FakeTables()
    client.pages = [{"Items": []}]
    await a_store(client).scan(consistent=consistent)
    assert client.scans[-1]["ConsistentRead"] is consistent


async def test_call_ends_at_its_deadline_when_nothing_answers() -> None:
    """A hanging connection is an unknown outcome after a sixth of the failover time."""
    store = a_store(FakeTables(), failover_s=0.06)
    with pytest.raises(RequestError, match="cannot GetItem on 'app/shardId-1': TimeoutError"):
        await store.read("shardId-1")


async def test_errors_of_aws_become_ours() -> None:
    """Throttled means no effect, refused is not repeated, and all else is an unknown outcome."""
    store = a_store(FakeTables())
    with pytest.raises(ThrottledError, match="cannot create on 'app/"):
        await store.create(a_row())
    with pytest.raises(RejectedError, match="cannot reset on 'app/"):
        await store.delete(rules.reset(a_row()))
    for call in (
        store.write(rules.heartbeat(a_row(), **MINE)),
        store.create(a_row(), parent=rules.parent_is_mine(a_row(), **MINE)),
    ):
        with pytest.raises(RequestError) as caught:
            await call
        assert type(caught.value) is RequestError
        assert caught.value.retryable
