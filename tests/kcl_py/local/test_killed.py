"""``kcl local --data`` is killed in the middle of writes, again and again: it loses and invents nothing."""

import http.client
import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Semaphore
from typing import Any

from tests.kcl_py.local.test_cli import running
from tests.kcl_py.local.test_server import send

KILLS, ANSWERS = 4, 120
TABLE = {
    "TableName": "tab",
    "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}


def ask(url: str, target: str, **params: Any) -> dict[str, Any]:
    headers = {"X_Amz_Target": target, "Content_Type": "application/x-amz-json-1.1"}
    status, _, answer = send(url, "POST", "/", json.dumps(params).encode(), **headers)
    assert status in (200, 400), answer
    found: dict[str, Any] = answer
    return found


def kinesis(url: str, operation: str, **params: Any) -> dict[str, Any]:
    return ask(url, f"Kinesis_20131202.{operation}", **params)


def dynamodb(url: str, operation: str, **params: Any) -> dict[str, Any]:
    return ask(url, f"DynamoDB_20120810.{operation}", **params)


class Life:
    """What was asked for and what was answered, over all lives of the process."""

    def __init__(self) -> None:
        self._payloads = count()
        self.answered: dict[str, str] = {}
        """Payloads that were put, with their sequence numbers."""
        self.rows = dict.fromkeys(("a", "b", "c"), (0, 0))
        """Numbers of the last write to a row, and to its twin in the same transaction: answered, and asked for."""

    def put(self, url: str) -> None:
        payloads = [f"{next(self._payloads)}:{'x' * 5000}" for _ in range(3)]
        records = [{"Data": b64encode(one.encode()).decode(), "PartitionKey": one[:9]} for one in payloads]
        answer = kinesis(url, "PutRecords", StreamName="s", Records=records)
        self.answered |= {one: put["SequenceNumber"] for one, put in zip(payloads, answer["Records"], strict=True)}

    def split(self, url: str) -> None:
        shard = kinesis(url, "ListShards", StreamName="s", ShardFilter={"Type": "AT_LATEST"})["Shards"][0]
        first, last = (int(shard["HashKeyRange"][f"{end}HashKey"]) for end in ("Starting", "Ending"))
        cut = {"ShardToSplit": shard["ShardId"], "NewStartingHashKey": str((first + last) // 2)}
        kinesis(url, "SplitShard", StreamName="s", **cut)

    def write(self, url: str, row: str) -> None:
        _, asked = self.rows[row]
        self.rows[row] = self.rows[row][0], asked + 1
        items = [{"k": {"S": key}, "n": {"N": str(asked + 1)}} for key in (row, f"{row}-twin")]
        puts = [{"Put": {"TableName": "tab", "Item": item}} for item in items]
        dynamodb(url, "TransactWriteItems", TransactItems=puts)
        self.rows[row] = asked + 1, asked + 1

    def check(self, url: str) -> None:
        """Compare all that is there with what was answered."""
        found = dict(stored(url))
        assert {payload: found.get(payload) for payload in self.answered} == self.answered
        assert len(set(found.values())) == len(found)
        items = {item["k"]["S"]: int(item["n"]["N"]) for item in dynamodb(url, "Scan", TableName="tab")["Items"]}
        for row, (answered, asked) in self.rows.items():
            assert items.get(row, 0) == items.get(f"{row}-twin", 0)
            assert answered <= items.get(row, 0) <= asked
            self.rows[row] = items.get(row, 0), asked


def stored(url: str) -> Iterator[tuple[str, str]]:
    """Yield all payloads with their sequence numbers."""
    for shard in kinesis(url, "ListShards", StreamName="s")["Shards"]:
        start = {"ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        iterator = kinesis(url, "GetShardIterator", StreamName="s", **start)["ShardIterator"]
        for record in kinesis(url, "GetRecords", ShardIterator=iterator)["Records"]:
            yield b64decode(record["Data"]).decode(), record["SequenceNumber"]


def test_nothing_that_was_answered_is_lost_and_nothing_is_half_there_over_many_kills(tmp_path: Path) -> None:
    """Records, splits and transactions, written from several sides."""
    life = Life()
    for number in range(KILLS + 1):
        with running("--port", "0", "--stream", "s:1", "--data", str(tmp_path)) as (process, line):
            url = line.split()[1]
            if number == 0:
                dynamodb(url, "CreateTable", **TABLE)
                while dynamodb(url, "DescribeTable", TableName="tab")["Table"]["TableStatus"] != "ACTIVE":
                    pass
            life.check(url)
            answers = Semaphore(0)

            def go_on(step: Callable[[str], None], url: str = url, answers: Semaphore = answers) -> None:
                with suppress(OSError, http.client.HTTPException):  # it was killed
                    while True:
                        step(url)
                        answers.release()

            steps = [life.put, life.split, *[lambda url, row=row: life.write(url, row) for row in life.rows]]
            with ThreadPoolExecutor(len(steps)) as pool:
                sides = [pool.submit(go_on, step) for step in steps]
                for _ in range(ANSWERS):
                    answers.acquire(timeout=10)
                process.kill()
                for side in sides:
                    side.result()
    assert len(life.answered) > KILLS
