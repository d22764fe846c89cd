"""AWS is not as the configuration says: one ``error:`` line that names the thing, and exit 3; later, exit 1."""

import signal
from typing import Any

import pytest

from tests.processes.fleet import REGION, Fleet
from tests.processes.process import the_error

ON_DEMAND = {"BillingMode": "PAY_PER_REQUEST"}
PROVISIONED = {"BillingMode": "PROVISIONED", "ProvisionedThroughput": {"ReadCapacityUnits": 7, "WriteCapacityUnits": 3}}


def failing(fleet: Fleet, command: str = "run", **options: object) -> str:
    """Run a command that must end with exit 3; return its error."""
    done = fleet.run(command, "worker.yaml", **options)
    assert done.returncode == 3, done.stderr
    assert done.stdout == ""
    return the_error(done.stderr.splitlines())


def create_table(fleet: Fleet, name: str, key: str, billing: dict[str, Any], *, kind: str = "S") -> dict[str, Any]:
    """Create a table as somebody else would; return what is told of it once it is there."""
    fleet.dynamodb.create_table(
        TableName=name,
        KeySchema=[{"AttributeName": key, "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": kind}],
        **billing,
    )
    while (told := describe(fleet, name))["TableStatus"] != "ACTIVE":
        pass
    return told


def describe(fleet: Fleet, name: str) -> dict[str, Any]:
    """Return what is told of a table, but for what grows with its rows."""
    found = fleet.dynamodb.describe_table(TableName=name)["Table"].items()
    return {key: value for key, value in found if key not in ("ItemCount", "TableSizeBytes")}


@pytest.mark.parametrize("command", ["run", "status"])
def test_unknown_stream_is_named_with_its_region_and_endpoint(fleet: Fleet, url: str, command: str) -> None:
    """A wrong name, region or account is seen from the line, also where there is a lease table."""
    create_table(fleet, fleet.app, "leaseKey", ON_DEMAND)
    error = failing(fleet, command)
    assert error.startswith(f"cannot read stream '{fleet.app}' in {REGION} at {url}: there is no such stream")


def test_missing_destination_of_dead_letters_is_named(fleet: Fleet, url: str) -> None:
    """With its region and endpoint, before a lease table is made."""
    fleet.create(1)
    error = failing(fleet, delivery__on_failure="dead_letter", delivery__dead_letter="s3://nowhere/letters")
    assert error.startswith(f"cannot keep dead letters in s3://nowhere/letters, in {REGION} at {url}: there is no such")
    assert fleet.app not in fleet.dynamodb.list_tables()["TableNames"]


@pytest.mark.parametrize("command", ["run", "status"])
def test_no_credentials_says_where_they_can_come_from(fleet: Fleet, command: str) -> None:
    """Nothing is asked for in vain until a timeout."""
    error = failing(fleet, command, AWS_ACCESS_KEY_ID=None, AWS_SECRET_ACCESS_KEY=None)
    assert fleet.app in error
    assert "no credentials were found; set aws.profile, or AWS_ACCESS_KEY_ID" in error


@pytest.mark.parametrize("command", ["run", "status"])
def test_no_region_says_what_to_set(fleet: Fleet, command: str) -> None:
    """The option and the variable."""
    assert "no region is set; set aws.region or AWS_DEFAULT_REGION" in failing(fleet, command, aws__region="")


@pytest.mark.parametrize("command", ["run", "status"])
def test_unreachable_endpoint_is_named(fleet: Fleet, nowhere: str, command: str) -> None:
    """After ``aws.start_timeout_s`` at the latest."""
    assert nowhere in failing(fleet, command, aws__endpoint=nowhere, aws__start_timeout_s=0.5)


@pytest.mark.parametrize("command", [["status"], ["status", "--watch", "--json"], ["leases", "show"]])
def test_who_looks_at_an_endpoint_that_is_not_there_gets_one_line(
    fleet: Fleet, nowhere: str, command: list[str]
) -> None:
    """Not a worker's log."""
    looked = fleet.run(*command, "worker.yaml", aws__endpoint=nowhere, aws__start_timeout_s=0.5)
    assert (looked.returncode, looked.stdout) == (3, "")
    assert [line[:26] for line in looked.stderr.splitlines()] == ["error: cannot read stream "]


@pytest.mark.parametrize("command", ["run", "status"])
@pytest.mark.parametrize(("key", "kind", "found"), [("id", "S", "id (S) hash"), ("leaseKey", "N", "leaseKey (N) hash")])
def test_table_with_another_key_is_named_with_both_keys(
    fleet: Fleet, command: str, key: str, kind: str, found: str
) -> None:
    """It is somebody else's: nothing is written to it, and nothing altered."""
    fleet.create(1)
    before = create_table(fleet, fleet.app, key, ON_DEMAND, kind=kind)
    error = failing(fleet, command)
    assert error.startswith(
        f"cannot use lease table '{fleet.app}': expected the key leaseKey (S) hash, found {found}; "
    )
    assert describe(fleet, fleet.app) == before
    assert fleet.dynamodb.scan(TableName=fleet.app)["Count"] == 0


def test_missing_table_that_is_not_to_be_created_is_named(fleet: Fleet) -> None:
    """And stays missing."""
    fleet.create(1)
    error = failing(fleet, leases__create="false")
    assert error.startswith(
        f"cannot use lease table '{fleet.app}': expected an existing table as leases.create is false"
    )
    assert fleet.app not in fleet.dynamodb.list_tables()["TableNames"]


def test_status_of_an_app_that_has_never_run_names_the_table(fleet: Fleet) -> None:
    """It makes none."""
    fleet.create(1)
    assert failing(fleet, "status").startswith(f"cannot read lease table '{fleet.app}': expected the table of a worker")
    assert fleet.app not in fleet.dynamodb.list_tables()["TableNames"]


def test_another_stream_under_the_same_app_is_named_with_the_first(fleet: Fleet) -> None:
    """Its shards have the same names, so its checkpoints would be taken for those of the other."""
    fleet.create(1)
    fleet.put(10)
    first = fleet.start()
    fleet.until_delivered(10)
    first.kill()
    rows = fleet.rows()
    other = f"{fleet.app}-other"
    fleet.kinesis.create_stream(StreamName=other, ShardCount=1)
    for command in ("run", "status"):
        error = failing(fleet, command, stream=other)
        assert error.startswith(f"cannot use lease table '{fleet.app}': expected rows of stream '{other}:")
        assert f"of '{fleet.app}:" in error
        assert "give each stream an app of its own" in error
    assert fleet.rows() == rows


@pytest.mark.parametrize(("kind", "suffix"), [("lease", ""), ("worker", "-WorkerMetricStats")])
def test_table_deleted_under_a_running_worker_ends_it_with_one_error(fleet: Fleet, kind: str, suffix: str) -> None:
    """Exit 1: the worker failed. A lease table is not made anew, since all would be read again from the start."""
    fleet.create(1)
    fleet.put(10)
    worker = fleet.start()
    fleet.until_delivered(10)
    table = fleet.app + suffix
    fleet.dynamodb.delete_table(TableName=table)
    assert worker.wait() == 1
    error = the_error(worker.err.lines)
    assert error.startswith(f"cannot go on without {kind} table '{table}': ")
    assert "deleted while this worker ran" in error
    assert table not in fleet.dynamodb.list_tables()["TableNames"]


@pytest.mark.parametrize("billing", [ON_DEMAND, PROVISIONED], ids=["on_demand", "provisioned"])
def test_existing_tables_are_used_as_they_are(fleet: Fleet, billing: dict[str, Any]) -> None:
    """Whatever the options say of billing: a table that is there is never altered."""
    fleet.create(1)
    fleet.put(10)
    tables = {fleet.app: "leaseKey", f"{fleet.app}-WorkerMetricStats": "wid"}
    before = {name: create_table(fleet, name, key, billing) for name, key in tables.items()}
    worker = fleet.start(leases__billing="on_demand")
    fleet.until_delivered(10)
    assert worker.logged("table.created") == []
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    assert {name: describe(fleet, name) for name in tables} == before
    assert len(fleet.rows()) == 1
