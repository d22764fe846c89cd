"""Workers of one application on one stream of ``kcl local``, and what came of the records that were put."""

import json
import shutil
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from threading import Condition
from typing import Any

from tests.processes.deliveries import Delivery
from tests.processes.process import KCL, PATIENCE_S, Process, clean_env, ended

REGION = "us-east-1"
KEYS = 40
"""Partition keys; records go round them, so each shard gets its share of every batch put."""


class Fleet:
    """A stream, its workers and what they have done; ``close`` ends them all.

    Args:
        folder: where the workers run.
        url: of ``kcl local``.
        app: name of the application and the stream, of its own for each test.
        kinesis: boto3's client.
        dynamodb: boto3's client.
    """

    def __init__(self, folder: Path, url: str, app: str, *, kinesis: Any, dynamodb: Any) -> None:
        self.folder, self.app = folder, app
        self.kinesis, self.dynamodb = kinesis, dynamodb
        self.put_to: dict[str, list[int]] = {}
        """The numbers of the records in each shard, in their order."""
        self.workers: list[Process] = []
        self.put_count = 0
        self._heard = Condition()
        self._read: dict[int, int] = {}
        self._deliveries: list[Delivery] = []
        self._numbers: dict[str, set[int]] = defaultdict(set)
        self._latest: dict[str, float] = {}
        shutil.copy(Path(__file__).with_name("processors.py"), folder)
        aws = f"{{region: {REGION}, endpoint: '{url}'}}"
        text = f"app: {app}\nstream: {app}\nprocessor: processors:Recorder\naws: {aws}\nleases: {{failover_s: 3}}\n"
        (folder / "worker.yaml").write_text(text, encoding="utf-8")

    # --- the stream --------------------------------------------------------------------------------------------

    def create(self, shards: int) -> None:
        self.kinesis.create_stream(StreamName=self.app, ShardCount=shards)
        self.until_active()

    def until_active(self) -> None:
        """Ask until the stream is no longer being changed; each question takes a while."""
        while self.summary()["StreamStatus"] != "ACTIVE":
            pass

    def summary(self) -> dict[str, Any]:
        summary: dict[str, Any] = self.kinesis.describe_stream_summary(StreamName=self.app)["StreamDescriptionSummary"]
        return summary

    def shards(self) -> dict[str, dict[str, Any]]:
        """Return all shards by id, as AWS lists them."""
        return {shard["ShardId"]: shard for shard in self.kinesis.list_shards(StreamName=self.app)["Shards"]}

    def put(self, count: int) -> None:
        """Put records with the next ``count`` numbers; those of one key go to one shard, in their order."""
        numbers = range(self.put_count, self.put_count + count)
        for start in range(numbers.start, numbers.stop, 500):
            part = numbers[start - numbers.start :][:500]
            entries = [{"PartitionKey": f"key-{number % KEYS}", "Data": str(number).encode()} for number in part]
            answer = self.kinesis.put_records(StreamName=self.app, Records=entries)
            for number, result in zip(part, answer["Records"], strict=True):
                self.put_to.setdefault(result["ShardId"], []).append(number)
        self.put_count += count

    def neighbours(self, shard_id: str) -> list[str]:
        """Return an open shard and one beside it, the lower one first, as they are merged."""
        opened = self.kinesis.list_shards(StreamName=self.app, ShardFilter={"Type": "AT_LATEST"})["Shards"]
        ids = [shard["ShardId"] for shard in sorted(opened, key=lambda s: int(s["HashKeyRange"]["StartingHashKey"]))]
        place = max(ids.index(shard_id), 1)
        return ids[place - 1 : place + 1]

    def split(self, shard_id: str) -> None:
        """Split a shard in the middle."""
        hashes = self.shards()[shard_id]["HashKeyRange"]
        middle = (int(hashes["StartingHashKey"]) + int(hashes["EndingHashKey"])) // 2
        self.kinesis.split_shard(StreamName=self.app, ShardToSplit=shard_id, NewStartingHashKey=str(middle))
        self.until_active()

    def merge(self, lower_id: str, upper_id: str) -> None:
        self.kinesis.merge_shards(StreamName=self.app, ShardToMerge=lower_id, AdjacentShardToMerge=upper_id)
        self.until_active()

    # --- the workers -------------------------------------------------------------------------------------------

    def env(self, **options: object) -> dict[str, str]:
        """Return an environment with options as in ``leases__failover_s=3``; None takes a variable out."""
        named = {key if key.isupper() else f"KCL_{key.upper()}": value for key, value in options.items()}
        variables = {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"} | named
        return clean_env(**{key: str(value) for key, value in variables.items() if value is not None})

    def start(self, processor: str = "Recorder", *flags: str, **options: object) -> Process:
        """Start ``kcl run``."""
        env = self.env(processor=f"processors:{processor}", **options)
        worker = Process(KCL, "run", *flags, "worker.yaml", cwd=self.folder, env=env, heard=self._heard)
        self.workers.append(worker)
        return worker

    def run(self, *arguments: str, **options: object) -> CompletedProcess[str]:
        """Run another ``kcl`` command on the workers' file to its end."""
        return ended(KCL, *arguments, cwd=self.folder, env=self.env(**options))

    def status(self) -> dict[str, Any]:
        """Return what ``kcl status --json`` says."""
        done = self.run("status", "worker.yaml", "--json")
        assert (done.returncode, done.stderr) == (0, "")
        status: dict[str, Any] = json.loads(done.stdout)
        return status

    def until_status(self, look: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Ask for the status until ``look`` likes it; each question takes a while."""
        ends_at = time.monotonic() + PATIENCE_S
        while not look(status := self.status()):
            assert time.monotonic() < ends_at, status
        return status

    def rows(self) -> dict[str, dict[str, Any]]:
        """Return the lease rows by shard, as DynamoDB has them."""
        items = self.dynamodb.scan(TableName=self.app, ConsistentRead=True)["Items"]
        return {item["leaseKey"]["S"]: item for item in items}

    def checkpoints(self) -> dict[str, int]:
        """Return the sequence number stored for each shard; -1 where none is."""
        texts = {shard: row["checkpoint"]["S"] for shard, row in self.rows().items()}
        return {shard: int(text) if text.isdigit() else -1 for shard, text in texts.items()}

    def close(self) -> None:
        for worker in self.workers:
            worker.close()

    # --- what came of it ---------------------------------------------------------------------------------------

    def deliveries(self) -> list[Delivery]:
        """Return all that the workers got so far, in the order of time; they share one clock."""
        self._collect()
        return sorted(self._deliveries, key=lambda delivery: delivery.at)

    def until_delivered(self, count: int, shard: str | None = None) -> None:
        """Wait until ``count`` different records were delivered, of one shard or of all together."""
        self._until(lambda: self._count(shard) >= count, f"{count} records")

    def until_delivered_times(self, count: int, shard: str | None = None) -> None:
        """Wait until there were so many deliveries, repetitions too, of one shard or of all together."""
        self._until(
            lambda: sum(shard in (None, each.shard) for each in self._deliveries) >= count, f"{count} deliveries"
        )

    def until_all_go_on(self, after: float) -> None:
        """Wait until there were deliveries of every shard after an instant, in Unix seconds."""
        self._until(lambda: min(self._latest.values()) > after, "deliveries of every shard")

    def _count(self, shard: str | None) -> int:
        return len(self._numbers[shard]) if shard is not None else sum(map(len, self._numbers.values()))

    def _until(self, look: Callable[[], bool], what: str) -> None:
        def collect_and_look() -> bool:
            self._collect()
            return look()

        with self._heard:
            assert self._heard.wait_for(collect_and_look, PATIENCE_S), f"no {what} in time"

    def _collect(self) -> None:
        """Read what the workers have said since."""
        for worker in self.workers:
            begin = self._read.get(worker.pid, 0)
            new = [Delivery.parse(worker.pid, line) for line in worker.out.lines[begin:]]
            self._read[worker.pid] = begin + len(new)
            self._deliveries += new
            for delivery in new:
                self._numbers[delivery.shard].add(delivery.number)
                self._latest[delivery.shard] = max(delivery.at, self._latest.get(delivery.shard, 0.0))
