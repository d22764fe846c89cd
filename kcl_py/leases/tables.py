"""Make sure that a table can be used: look first, create it only if it is missing, never alter it.

Several workers may start at once; one creates, the others wait for it. Durations are seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from actors.clock import Clock
from kcl_py.aws import request
from kcl_py.config import Leases
from kcl_py.errors import LeaseTableError, MissingError, RejectedError, RequestError
from kcl_py.leases.client import DynamoClient

DEADLINE_S = 10.0
"""Of one request about a table. Longer than for leases: nothing waits for it but the start."""
ACTIVE_WITHIN_S = 120.0
"""How long a new table is waited for; DynamoDB takes some 5 to 20 s."""
POLL_S = 0.05
POLL_MAX_S = 1.0
"""Pauses between looks at a new table; they double."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of ours."""

    what: str
    """For errors: lease table, worker table."""
    name: str
    key: str
    """Its only key: a hash key of type S."""
    is_kept: bool = False
    """Whether what is in it must not be lost, and is protected as the options say."""


async def find(client: DynamoClient, table: Table, clock: Clock) -> None:
    """Make sure that the table is there, with the key that it should have; it need not be ACTIVE yet.

    Raises:
        MissingError: it is not there.
        LeaseTableError: another key schema; no permission.
        RequestError: AWS did not answer.
    """
    _check_schema(table, await _describe(client, table, clock))


async def find_or_create(client: DynamoClient, table: Table, leases: Leases, clock: Clock) -> bool:
    """Create the table unless it is there; True if this call created it. It need not be ACTIVE yet.

    Raises:
        LeaseTableError: another key schema; missing and not to be created; no permission.
        RequestError: AWS did not answer.
    """
    try:
        await find(client, table, clock)
    except MissingError:
        if not leases.create:
            raise LeaseTableError(
                f"cannot use {table.what} {table.name!r}: expected an existing table as leases.create is false, "
                "found none; create it or set leases.create: true"
            ) from None
        return await _create(client, table, leases, clock)
    return False


async def until_active(client: DynamoClient, table: Table, clock: Clock) -> Mapping[str, Any]:
    """Wait until the table can be used; return what DescribeTable says of it.

    Raises:
        LeaseTableError: it is being deleted, cannot be used, or is not ACTIVE in time.
        RequestError: AWS did not answer.
    """
    pause_s, waited_s, status = POLL_S, 0.0, "no table"
    while waited_s < ACTIVE_WITHIN_S:
        try:
            found = await _describe(client, table, clock)
            _check_schema(table, found)
            status = str(found["TableStatus"])
            if status in ("ACTIVE", "UPDATING"):
                return found
        except MissingError:
            status = "no table"  # DescribeTable lags behind CreateTable
        if status not in ("CREATING", "no table"):
            break
        await clock.sleep(pause_s)
        waited_s, pause_s = waited_s + pause_s, min(pause_s * 2, POLL_MAX_S)
    raise LeaseTableError(
        f"cannot use {table.what} {table.name!r}: expected it to be ACTIVE within {ACTIVE_WITHIN_S:g} s, "
        f"found {status}; look at the table in the AWS console"
    )


async def keep_backups(client: DynamoClient, table: Table, clock: Clock) -> None:
    """Switch point-in-time recovery on for a table that is new.

    Raises:
        LeaseTableError: no permission.
        RequestError: AWS did not answer, or cannot do it yet: DynamoDB may need a moment.
    """
    try:
        with request("UpdateContinuousBackups", table.name, deadline_s=DEADLINE_S, clock=clock):
            await client.update_continuous_backups(
                TableName=table.name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
            )
    except RejectedError as error:
        raise _denied("back up", table, error) from error


async def _describe(client: DynamoClient, table: Table, clock: Clock) -> Mapping[str, Any]:
    try:
        with request("DescribeTable", table.name, deadline_s=DEADLINE_S, clock=clock):
            reply = await client.describe_table(TableName=table.name)
    except RejectedError as error:
        raise _denied("look at", table, error) from error
    described: Mapping[str, Any] = reply["Table"]
    return described


async def _create(client: DynamoClient, table: Table, leases: Leases, clock: Clock) -> bool:
    billing: dict[str, Any] = {"BillingMode": "PAY_PER_REQUEST"}
    if leases.billing != "on_demand":
        units = {"ReadCapacityUnits": leases.billing.read, "WriteCapacityUnits": leases.billing.write}
        billing = {"BillingMode": "PROVISIONED", "ProvisionedThroughput": units}
    options: dict[str, Any] = {}
    if leases.tags:
        options["Tags"] = [{"Key": name, "Value": value} for name, value in leases.tags.items()]
    if leases.kms_key is not None:
        options["SSESpecification"] = {"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": leases.kms_key}
    if table.is_kept and leases.deletion_protection:
        options["DeletionProtectionEnabled"] = True
    try:
        with request("CreateTable", table.name, deadline_s=DEADLINE_S, clock=clock):
            await client.create_table(
                TableName=table.name,
                KeySchema=[{"AttributeName": table.key, "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": table.key, "AttributeType": "S"}],
                **billing,
                **options,
            )
    except RejectedError as error:
        raise _denied("create", table, error) from error
    except RequestError as error:
        if error.code != "ResourceInUseException":
            raise
        return False  # another worker was first
    return True


def _denied(what: str, table: Table, error: RequestError) -> LeaseTableError:
    return LeaseTableError(
        f"cannot {what} {table.what} {table.name!r}: expected the permission dynamodb:{error.operation}, "
        f"found {error.code}: {error.detail}; allow it"
        + {
            "create": f" or create the table with the key {table.key} (S)",
            "back up": " and switch it on for the table, which is there now, or set leases.pitr: false",
        }.get(what, "")
    )


def _check_schema(table: Table, found: Mapping[str, Any]) -> None:
    types = {one["AttributeName"]: one["AttributeType"] for one in found["AttributeDefinitions"]}
    keys = [
        f"{key['AttributeName']} ({types.get(key['AttributeName'])}) {key['KeyType'].lower()}"
        for key in found["KeySchema"]
    ]
    expected = f"{table.key} (S) hash"
    if keys != [expected]:
        raise LeaseTableError(
            f"cannot use {table.what} {table.name!r}: expected the key {expected}, found {', '.join(keys)}; "
            "name another table in leases"
        )
