"""The policies of the page on IAM: with them everything works, and each of their actions is needed."""

import asyncio
import json
import random
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog
from botocore.exceptions import ClientError

from actors import Clock
from actors.clock import SystemClock
from kcl_py import Config, Dedup, EffectsRefusedError, KclError, Once, OwnedShard, Record, Stream
from kcl_py.cli.asking import wait_for_answers
from kcl_py.cli.control import pause_command, resume_command
from kcl_py.cli.leases import reset_command, set_command
from kcl_py.cli.status import read_status
from kcl_py.clients import Clients
from kcl_py.config import Fetch, Leases
from kcl_py.dead_letters.address import Address
from kcl_py.dead_letters.kinesis import KinesisDeadLetters
from kcl_py.dead_letters.s3 import S3DeadLetters
from kcl_py.dead_letters.sqs import SqsDeadLetters
from kcl_py.effects import ConditionCheck, Delete, Effect, Put, Update
from kcl_py.leases.dynamodb import DynamoLeaseStore
from kcl_py.leases.row import LeaseRow, Request
from kcl_py.local.client import KinesisClient
from kcl_py.local.dynamo.behaviour import Behaviour
from kcl_py.local.dynamo.client import DynamoDBClient
from kcl_py.local.dynamo.model import DynamoDB
from kcl_py.local.model import Kinesis
from kcl_py.processor import Checkpointer, RecordProcessor
from kcl_py.records import RecordBatch
from kcl_py.sources.kinesis.polling import KinesisSource
from kcl_py.tables import Tables
from kcl_py.tree.worker import Ids
from tests.docs.pages import DOCS, blocks
from tests.kcl_py.dead_letters.places import a_letter
from tests.simclock import SimClock
from tests.simloop import sim_loop, simulated

Permission = tuple[str, str]
"""An action and what it is allowed on."""
RECORDS = 40
FIRST = {"PartitionKey": "0", "Data": b"x"}


def policies() -> Iterator[frozenset[Permission]]:
    """Read the policies of the page, in their order."""
    for block in blocks(DOCS / "iam.md", "json"):
        found = set()
        for statement in json.loads(block)["Statement"]:
            resources = statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]]
            found |= {(action, arn.rpartition(":")[2]) for action in statement["Action"] for arn in resources}
        yield frozenset(found)


RUN, CREATE, LOOK, STEER, MEND, *LETTERS, EFFECTS = policies()
DESTINATIONS = ("kinesis:failures", "sqs:https://sqs.REGION.amazonaws.com/ACCOUNT/failures", "s3://failures/letters")
"""As the page has them, in its order."""
ACTIONS = {"HeadBucket": "ListBucket"}
OF_ITEMS = {"ConditionCheck": "ConditionCheckItem", "Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem"}
"""Of operations that are not called as their action is. Source: the service authorization reference."""


class Allowed:
    """A client of somebody who is allowed no more than some permissions; notes which of them he uses."""

    def __init__(self, client: Any, service: str, permissions: frozenset[Permission], used: set[Permission]) -> None:
        self._client, self._service, self._permissions, self._used = client, service, permissions, used

    def __getattr__(self, name: str) -> Any:
        method, operation = getattr(self._client, name), name.title().replace("_", "")

        async def call(**request: Any) -> Any:
            on = _resource(self._service, request)
            needed = [(ACTIONS.get(operation, operation), on)]
            if items := [pair for item in request.get("TransactItems", ()) for pair in item.items()]:
                needed = [(OF_ITEMS[kind], f"table/{said['TableName']}") for kind, said in items]
            for action, on in needed:
                permission = f"{self._service}:{action}", on
                if permission not in self._permissions:
                    message = f"somebody is not authorized to perform {permission[0]} on {on}"
                    raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": message}}, operation)
                self._used.add(permission)
            return await method(**request)

        return call


def _resource(service: str, request: dict[str, Any]) -> str:
    """Return what a request is about, as the page's ARNs end."""
    match service:
        case "kinesis":
            return f"stream/{request.get('StreamName', 'orders')}"
        case "sqs":
            return str(request["QueueUrl"]).rpartition("/")[2]
        case "s3":
            folder, slash, _ = str(request.get("Key", "")).partition("/")
            return f"{request['Bucket']}{slash}{folder}{slash}{slash and '*'}"
    return f"table/{request.get('TableName')}"


class Counting(RecordProcessor):
    """Counts records."""

    done = 0

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        type(self).done += len(batch)


class Account:
    """An AWS account with a stream, and what somebody in it may do."""

    def __init__(self, permissions: frozenset[Permission], clock: Clock | None = None) -> None:
        self.clock = clock or SimClock(sim_loop())
        self.permissions, self.used = permissions, set[Permission]()
        self.kinesis = Kinesis(self.clock, delay_s=0.05)
        self.kinesis.add_stream("orders", 2)
        self.tables = DynamoDB(Behaviour(self.clock, random.Random(0)))
        self.config = Config(
            app="orders",
            stream="orders",
            processor="m:C",
            leases=Leases(failover_s=3, pitr=True),
            fetch=Fetch(idle_s=0.5),
        )

    def clients(self) -> Clients:
        kinesis, dynamodb = KinesisClient(self.kinesis, self.clock), DynamoDBClient(self.tables, self.clock)
        source: Any = Allowed(kinesis, "kinesis", self.permissions, self.used)
        tables: Any = Allowed(dynamodb, "dynamodb", self.permissions, self.used)
        return Clients(
            KinesisSource(source, "orders", clock=self.clock),
            DynamoLeaseStore(tables, self.config.leases, clock=self.clock),
        )

    def put(self) -> None:
        records = [{"PartitionKey": str(number), "Data": b"x"} for number in range(RECORDS)]
        self.kinesis.call("PutRecords", {"StreamName": "orders", "Records": records})

    def stream(self, seed: int) -> Stream:
        ids = Ids(random.Random(seed))
        return Stream(self.config, processor=Counting, clients=self.clients(), clock=self.clock, ids=ids)

    def _split(self) -> None:
        """Split the open shard with the lowest keys."""
        shards = self.kinesis.call("ListShards", {"StreamName": "orders"})["Shards"]
        ranges = {
            shard["ShardId"]: sorted(map(int, shard["HashKeyRange"].values()))
            for shard in shards
            if "EndingSequenceNumber" not in shard["SequenceNumberRange"]
        }
        shard, (first, last) = min(ranges.items(), key=lambda item: item[1])
        middle = str((first + last) // 2)
        self.kinesis.call("SplitShard", {"StreamName": "orders", "ShardToSplit": shard, "NewStartingHashKey": middle})

    async def live(self) -> None:
        """Have two workers share the stream over a split until the row of its parent is deleted, and stop."""
        Counting.done = 0
        self.put()
        async with self.stream(1):
            await self.clock.sleep(8)
            self._split()
            async with self.stream(2):
                await self.clock.sleep(10)
                self.put()
                await self.clock.sleep(40)


@simulated
async def test_a_worker_needs_what_its_policies_say_and_no_more() -> None:
    """From creating the tables to the last release."""
    account = Account(RUN | CREATE)
    await account.live()
    assert Counting.done == 2 * RECORDS
    assert account.used == RUN | CREATE


@simulated
async def test_a_worker_whose_tables_are_there_need_not_create_any() -> None:
    """With all tables there the shorter policy is enough."""
    account = Account(RUN | CREATE)
    await account.live()
    account.permissions, account.used = RUN, set()
    await account.live()
    assert Counting.done == RECORDS * 2
    assert account.used <= RUN


@pytest.mark.parametrize("missing", sorted(RUN | CREATE), ids=" on ".join)
def test_each_permission_that_is_missing_is_named(missing: Permission) -> None:
    """In the error that ends the worker, or in what it logs while it goes on."""
    said: list[str] = []

    def hear(logger: object, method: str, event: Any) -> Any:
        said.append(str(event))
        raise structlog.DropEvent

    @simulated
    async def live() -> None:
        try:
            await Account((RUN | CREATE) - {missing}).live()
        except Exception as error:
            said.append(f"{error} {error.__cause__}")

    structlog.configure(processors=[hear])
    try:
        live()
    finally:
        structlog.reset_defaults()
    action, on = missing
    assert any(f"{action} on {on}" in sentence for sentence in said)


@simulated
async def test_looking_needs_what_its_policy_says() -> None:
    """As ``kcl status`` does."""
    account = Account(RUN | CREATE)
    await account.live()
    account.permissions, account.used = LOOK, set()
    clients = account.clients()
    assert isinstance(clients.leases, DynamoLeaseStore)
    await clients.source.describe()
    await clients.leases.find()
    assert len((await read_status(clients.leases, account.config, now_s=0.0))["shards"]) == 3
    assert account.used == LOOK


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Account:
    """Return an account with two lease rows, to which ``kcl`` connects."""
    account = Account(RUN | CREATE, SystemClock())

    @asynccontextmanager
    async def connected(config: Config) -> AsyncIterator[Clients]:
        clients = account.clients()
        assert isinstance(clients.leases, DynamoLeaseStore)
        info = await clients.source.describe()
        await clients.leases.find()
        yield Clients(clients.source, clients.leases, info)

    async def prepare() -> None:
        store = account.clients().leases
        await store.ensure()
        for key in ("shardId-000000000000", "shardId-000000000009"):
            await store.create(LeaseRow(key))

    asyncio.run(prepare())
    for module in ("leases", "control"):
        monkeypatch.setattr(f"kcl_py.cli.{module}.looking", connected)
    return account


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the options of a worker of that account."""
    file = tmp_path / "orders.yaml"
    file.write_text("{app: orders, stream: orders, processor: m:C, aws: {region: eu-west-1}}")
    return file


def test_pausing_needs_what_its_policy_says(account: Account, file: Path) -> None:
    """As ``kcl pause`` and ``kcl resume`` do; the answer of a holder is read as for ``kcl leases``."""
    account.permissions, account.used = LOOK | STEER, set()
    assert pause_command(file, (), None) == 0
    assert resume_command(file, ()) == 0
    assert account.used == (LOOK | STEER) - {("dynamodb:GetItem", "table/orders")}


def test_mending_needs_what_its_policy_says(account: Account, file: Path) -> None:
    """As ``kcl leases`` does: a row is made, one is moved, one goes, and an answer is waited for."""

    async def wait() -> None:
        store = account.clients().leases
        [row] = [row for row in (await store.scan()).rows if row.key == "shardId-000000000000"]
        assert (
            await wait_for_answers(
                store, {row.key: (Request("r1", "release"), replace(row, owner="somebody"))}, patience_s=10
            )
            == 0
        )

    account.permissions, account.used = LOOK | STEER | MEND, set()
    assert reset_command(file, None, is_sure=True) == 0
    [record] = account.kinesis.call("PutRecords", {"StreamName": "orders", "Records": [FIRST]})["Records"]
    assert set_command(file, [record["ShardId"]], record["SequenceNumber"], is_sure=True) == 0
    asyncio.run(wait())
    assert account.used == LOOK | STEER | MEND


class Taking:
    """Takes whatever dead letters are stored by."""

    async def describe_stream_summary(self, **_: Any) -> dict[str, Any]:
        return {"StreamDescriptionSummary": {"StreamStatus": "ACTIVE"}}

    async def get_queue_attributes(self, **_: Any) -> dict[str, Any]:
        return {"Attributes": {"MaximumMessageSize": "1048576"}}

    async def put_record(self, **_: Any) -> None: ...
    async def send_message(self, **_: Any) -> None: ...
    async def head_bucket(self, **_: Any) -> None: ...
    async def put_object(self, **_: Any) -> None: ...


async def keep_a_letter(text: str, permissions: frozenset[Permission], used: set[Permission]) -> None:
    """Look at a destination and store a letter there, as a worker does."""
    address = Address.of(text)
    client: Any = Allowed(Taking(), address.kind, permissions, used)
    destination = {"kinesis": KinesisDeadLetters, "sqs": SqsDeadLetters, "s3": S3DeadLetters}[address.kind]
    letters: Any = destination(client, address, clock=SystemClock())
    await letters.look()
    await letters.store(a_letter())


@pytest.mark.parametrize(("text", "policy"), list(zip(DESTINATIONS, LETTERS, strict=True)))
def test_dead_letters_need_what_their_policy_says(text: str, policy: frozenset[Permission]) -> None:
    """No more than that; and what is missing is named."""
    used: set[Permission] = set()
    asyncio.run(keep_a_letter(text, policy, used))
    assert used == policy
    for missing in policy:
        with pytest.raises(KclError, match=re.escape(f"{missing[0]} on {missing[1]}")):
            asyncio.run(keep_a_letter(text, policy - {missing}, set()))


async def have_effects(permissions: frozenset[Permission], used: set[Permission]) -> None:
    """Use each kind of effect, a marker and a message id, as processors do."""
    clock = SystemClock()
    model = DynamoDB(Behaviour(clock))
    for table in ("totals", "markers", "messages"):
        key = {"KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}], "BillingMode": "PAY_PER_REQUEST"}
        named = {"TableName": table, "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}]}
        model.call("CreateTable", key | named)
    client: Any = Allowed(DynamoDBClient(model, clock), "dynamodb", permissions, used)
    tables = Tables(DynamoLeaseStore(client, Leases(table="orders"), clock=clock), clock, Ids(), timeout_s=1)
    shard, record = OwnedShard("orders", "shard", 1, None, (), tables=tables), Record("1", b"", "a")
    effects: list[Effect] = [
        Put("totals", {"id": "a"}),
        Update("totals", {"id": "b"}, "ADD n :n", values={":n": 1}),
        Delete("totals", {"id": "c"}),
        ConditionCheck("totals", {"id": "d"}, "attribute_not_exists(id)"),
    ]
    await Once(shard, table="markers", ttl_s=60).apply(record, effects)
    dedup = Dedup(shard, table="messages", ttl_s=60, id=lambda record: record.partition_key)
    for _ in range(2):
        async with dedup.first(record):
            pass


def test_effects_need_what_their_policy_says() -> None:
    """No more than that; and what is missing is named."""
    used: set[Permission] = set()
    asyncio.run(have_effects(EFFECTS, used))
    assert used == EFFECTS
    for missing in EFFECTS:
        with pytest.raises(EffectsRefusedError, match=re.escape(f"{missing[0]} on {missing[1]}")):
            asyncio.run(have_effects(EFFECTS - {missing}, set()))
