"""What a fleet works on: the stream with its producer, and the lease table. Each can be changed while it is read."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from kcl_py.local.client import KinesisClient
from kcl_py.local.dynamo.behaviour import Behaviour
from kcl_py.local.dynamo.client import DynamoDBClient
from kcl_py.local.dynamo.model import DynamoDB
from kcl_py.local.errors import ModelError
from kcl_py.local.model import EndShape, Kinesis
from kcl_py.records import Record
from tests.sim.history import History
from tests.sim.numbers import renumbered, shorter
from tests.sim.operator import Operator
from tests.sim.plan import Event, Plan
from tests.sim.rows import Rows
from tests.simclock import SimClock
from tests.simloop import SimLoop

APP, STREAM = "app", "stream"
EFFECTS, MARKERS = "effects", "markers"
"""Tables of the processors' own."""
DELAY_S = 0.05
"""How long the services take for a change of a stream or table."""
READ_BYTES_PER_S = 2_000_000
"""Of one shard. Source: the GetRecords API reference."""
SIZES_BYTES = (0, 0, 50_000)
"""How large records are, beside their number."""


class Services:
    """The models of Kinesis and DynamoDB that one fleet has, and what is done to them from outside.

    Args:
        draw: for the records that are put.
    """

    def __init__(self, plan: Plan, history: History, loop: SimLoop, draw: random.Random) -> None:
        self._plan, self._history, self._draw = plan, history, draw
        self._size_bytes = plan.drawn("sizes").choice(SIZES_BYTES)
        clock = SimClock(loop)
        self._kinesis = Kinesis(clock, delay_s=DELAY_S, end_shape=EndShape(plan.end_shape))
        self._kinesis.add_stream(STREAM, plan.shards)
        self._tables = DynamoDB(Behaviour(clock, plan.drawn("tables"), delay_s=DELAY_S, stale_s=plan.stale_s))
        self.answers: dict[str, Callable[[str, Any], Any]] = {
            "kinesis": renumbered(KinesisClient(self._kinesis, clock).answer),
            "dynamodb": DynamoDBClient(self._tables, clock).answer,
        }
        self.rows = Rows(APP, history, self._row)
        self.operator = Operator(APP, self._tables, self.rows, history, loop.time)
        if plan.form.has_effects:
            for table in (EFFECTS, MARKERS):
                self._tables.call("CreateTable", _table(table))
        self.put_records = 0
        self.done: Counter[str] = Counter()
        """How often what was done to the stream and the table."""

    @property
    def read_s(self) -> float:
        """How long one shard would take to be read, if all records were in it."""
        return self.put_records * self._size_bytes / READ_BYTES_PER_S

    async def put_on(self) -> None:
        """Put records now and then, for ever."""
        while True:
            self.put(self._draw.randint(1, 12))
            await asyncio.sleep(self._draw.expovariate(1 / self._plan.put_every_s))

    def put(self, records: int) -> None:
        numbers = range(self.put_records, self.put_records + records)
        self.put_records += records
        keys = [f"k{self._draw.randrange(self._plan.keys)}" for _ in numbers]
        entries = [
            {"PartitionKey": key, "Data": str(n).encode().ljust(self._size_bytes)}
            for n, key in zip(numbers, keys, strict=True)
        ]
        reply = self._kinesis.call("PutRecords", {"StreamName": STREAM, "Records": entries})
        for number, key, entry in zip(numbers, keys, reply["Records"], strict=True):
            shard, sequence = entry["ShardId"], shorter(entry["SequenceNumber"])
            self._history.note("put", n=number, key=key, shard=shard, seq=sequence)
            self.operator.note_put(shard, number, sequence)

    def reshard(self, event: Event) -> None:
        """Split, merge or recount, if the stream lets us."""
        ends = {shard["HashKeyRange"]["StartingHashKey"]: shard for shard in self._open_shards()}
        shards = sorted(ends.values(), key=lambda shard: int(shard["HashKeyRange"]["StartingHashKey"]))
        chosen = int(event.share * len(shards))
        first, last = (int(shards[chosen]["HashKeyRange"][end]) for end in ("StartingHashKey", "EndingHashKey"))
        match event.kind:
            case "split":
                asked = {"ShardToSplit": shards[chosen]["ShardId"], "NewStartingHashKey": str((first + last) // 2)}
                operation = "SplitShard"
            case "merge":
                neighbour = shards[min(chosen + 1, len(shards) - 1)]["ShardId"]
                asked = {"ShardToMerge": shards[chosen]["ShardId"], "AdjacentShardToMerge": neighbour}
                operation = "MergeShards"
            case _:
                target = max(1, round(len(shards) * (0.5 + 1.5 * event.share)))
                asked = {"TargetShardCount": target, "ScalingType": "UNIFORM_SCALING"}
                operation = "UpdateShardCount"
        try:
            self._kinesis.call(operation, {"StreamName": STREAM, **asked})
        except ModelError as refusal:
            self._history.note("refused", what=event.kind, code=refusal.code)
        else:
            self.done[event.kind] += 1
            self._history.note("reshard", what=event.kind, shards=len(shards))

    def _open_shards(self) -> list[dict[str, Any]]:
        return [one for one in self._shards() if "EndingSequenceNumber" not in one["SequenceNumberRange"]]

    def _shards(self) -> list[dict[str, Any]]:
        asked: dict[str, Any] = {"StreamName": STREAM}
        found: list[dict[str, Any]] = []
        while asked:
            page = self._kinesis.call("ListShards", asked)
            found += page["Shards"]
            asked = {"NextToken": page["NextToken"]} if page.get("NextToken") else {}
        return found

    def note_effects(self) -> None:
        """Note how often the effect of each record has been applied."""
        if self._plan.form.has_effects:
            items = [row.item for _, row in self._tables.table(EFFECTS).rows]
            times = sorted((int(item["n"]["N"]), int(item["times"]["N"])) for item in items)
            self._history.note("effects", times=times)

    def note_shards(self) -> None:
        for shard in self._shards():
            parents = [shard[name] for name in ("ParentShardId", "AdjacentParentShardId") if name in shard]
            self._history.note("shard", shard=shard["ShardId"], parents=parents)

    def _row(self, key: str) -> dict[str, Any]:
        asked = {"TableName": APP, "Key": {"leaseKey": {"S": key}}, "ConsistentRead": True}
        found: dict[str, Any] = self._tables.call("GetItem", asked).get("Item", {})
        return found

    def delete_row(self, share: float) -> None:
        """Delete a row of the lease table, as an operator can."""
        try:
            keys = [row.item["leaseKey"]["S"] for _, row in self._tables.table(APP).rows]
        except ModelError:
            return
        if keys:
            key = keys[int(share * len(keys))]
            self._tables.call("DeleteItem", {"TableName": APP, "Key": {"leaseKey": {"S": key}}})
            self.done["row deleted"] += 1
            self.rows.forget(key)


def _table(name: str) -> dict[str, Any]:
    key, kind = ("n", "N") if name == EFFECTS else ("id", "S")
    return {
        "TableName": name,
        "AttributeDefinitions": [{"AttributeName": key, "AttributeType": kind}],
        "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
        "BillingMode": "PAY_PER_REQUEST",
    }


def number_of(record: Record) -> int:
    """Return the number that a record was put with."""
    return int(record.data[:12])  # what follows, if anything, makes it large
