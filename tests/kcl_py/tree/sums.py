"""A fleet whose leases are in DynamoDB, and whose processors count their records there, each batch with its checkpoint.

After any life the count of a shard is how many records its checkpoint covers, or effects were lost or doubled.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from kcl_py import Checkpointer, RecordBatch
from kcl_py.config import Leases
from kcl_py.effects import Effect, Update
from kcl_py.leases.attributes import decode_item
from kcl_py.leases.dynamodb import DynamoLeaseStore
from kcl_py.leases.row import SENTINELS
from kcl_py.local.dynamo.behaviour import Behaviour
from kcl_py.local.dynamo.client import DynamoDBClient
from kcl_py.local.dynamo.model import DynamoDB
from tests.kcl_py.tree.fleet import FAILOVER_S, STREAM, Fleet
from tests.simclock import SimClock
from tests.simloop import sim_loop

LEASES, SUMS, MARKS = "leases", "sums", "marks"
BATCH = 4


class TabledStore(DynamoLeaseStore):
    """The lease store of a fleet, with two tables beside it."""

    def __init__(self) -> None:
        clock = SimClock(sim_loop())
        self.model = DynamoDB(Behaviour(clock))
        leases = Leases(table=LEASES, workers_table=f"{LEASES}-workers", failover_s=FAILOVER_S)
        super().__init__(DynamoDBClient(self.model, clock), leases, clock=clock)
        for table in (SUMS, MARKS):
            self.model.call(
                "CreateTable",
                {
                    "TableName": table,
                    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
                    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
                    "BillingMode": "PAY_PER_REQUEST",
                },
            )

    def rows_of(self, table: str) -> list[dict[str, Any]]:
        """Return the items of a table."""
        return [decode_item(item) for item in self.model.call("Scan", {"TableName": table})["Items"]]

    @property
    def items(self) -> Mapping[str, Any]:
        """The lease table."""
        return {item["leaseKey"]: item for item in self.rows_of(LEASES)}

    def sums(self) -> dict[str, int]:
        """Return what was counted of each shard."""
        return {item["id"]: item["n"] for item in self.rows_of(SUMS)}


def count(shard_id: str, records: int) -> list[Effect]:
    """Return the effect of so many records of a shard."""
    return [Update(SUMS, {"id": shard_id}, "ADD n :n", values={":n": records})]


async def count_once(batch: RecordBatch, checkpointer: Checkpointer) -> None:
    """Count a batch together with its checkpoint."""
    await checkpointer.once(count(batch.shard_id, len(batch)), at=batch)


async def count_in_two(batch: RecordBatch, checkpointer: Checkpointer) -> None:
    """Count a batch in two transactions."""
    middle = len(batch) // 2
    if middle:
        await checkpointer.once(count(batch.shard_id, middle), at=batch.records[middle - 1])
    await checkpointer.once(count(batch.shard_id, len(batch) - middle), at=batch)


def a_counting_fleet(*, shards: int = 2, seed: int = 0, **config: Any) -> tuple[Fleet, TabledStore]:
    """Return a fleet without workers, and its store."""
    store = TabledStore()
    options: dict[str, Any] = {
        "delivery": {"batch": {"max_records": BATCH}, "backoff_s": 0.05},
        "fetch": {"idle_s": 0.3},
    }
    return Fleet(shards=shards, seed=seed, store=store, **options | config), store


def check_sums(fleet: Fleet, store: TabledStore) -> None:
    """Check that exactly what the checkpoints cover was counted."""
    sums = store.sums()
    for shard_id, row in fleet.rows().items():
        assert sums.get(shard_id, 0) == len(covered(fleet, shard_id)), f"{shard_id} at {row.checkpoint}"


def covered(fleet: Fleet, shard_id: str) -> Sequence[str]:
    """Return the sequence numbers of a shard that its checkpoint covers."""
    row = fleet.row(shard_id)
    asked = {"StreamName": STREAM, "ShardId": shard_id, "ShardIteratorType": "TRIM_HORIZON"}
    iterator = fleet.model.call("GetShardIterator", asked)["ShardIterator"]
    numbers: list[str] = []
    while iterator is not None:
        reply = fleet.model.call("GetRecords", {"ShardIterator": iterator})
        numbers += [record.sequence_number for record in reply["Records"]]
        iterator = reply.get("NextShardIterator") if reply["Records"] else None
    if row.checkpoint in SENTINELS:
        return numbers if row.has_ended else []
    return [number for number in numbers if int(number) <= int(row.checkpoint)]


def all_counted(fleet: Fleet, store: TabledStore) -> bool:
    """Tell whether nothing is left to be counted."""
    return sum(store.sums().values()) >= len(fleet.put_data)
