"""The places where dead letters may go, each in a local AWS over loopback or on the disk, and what is found in them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from actors.clock import Clock, SystemClock
from kcl_py.config import Config, Service
from kcl_py.dead_letters import DeadLetter, DeadLetters, parse
from kcl_py.dead_letters.opening import opened
from kcl_py.local.dynamo.behaviour import Behaviour
from kcl_py.local.dynamo.model import DynamoDB
from kcl_py.local.dynamodb import LocalDynamoDB
from kcl_py.local.faults.fault import Fault
from kcl_py.local.faults.faults import Faults
from kcl_py.local.model import Kinesis
from kcl_py.local.s3 import MotoS3
from kcl_py.local.server import Server, serve
from kcl_py.local.sqs import MotoSqs
from kcl_py.records import Record
from kcl_py.sessions import Sessions

REGION = "us-east-1"
KINDS = ("kinesis", "sqs", "sqs fifo", "s3", "file")
AWS = KINDS[:-1]
NUMBER = "49590338271490256608559692538361571095921575989136588898"


def a_letter(data: bytes = b"payload", **changes: Any) -> DeadLetter:
    """Return a letter about a record with this payload; ``changes`` are fields of the record."""
    fields: dict[str, Any] = {
        "sequence_number": NUMBER,
        "partition_key": "key",
        "arrived_s": 1_700_000_000.123,
    } | changes
    return DeadLetter(
        record=Record(data=data, **fields),
        stream="orders",
        shard_id="shardId-000000000003",
        attempts=4,
        reason="ValueError: no such user",
        first_failed_s=1_700_000_001.5,
        failed_s=1_700_000_009.25,
        app="shop",
        worker="host-1",
    )


@dataclass
class Place:
    """One destination that is there, and empty."""

    text: str
    """As in ``delivery.dead_letter``."""
    store_operation: str
    url: str
    faults: Faults
    read: Callable[[], Awaitable[list[bytes]]]
    client: Any = None
    """aiobotocore's."""

    def config(self, **more: Any) -> Config:
        """Return a configuration that names the place, or another one: ``dead_letter``."""
        aws: Any = {"region": REGION, "endpoint": self.url or None, "start_timeout_s": 5}
        delivery: Any = {"on_failure": "dead_letter", "dead_letter": self.text} | more
        return Config(app="shop", stream="orders", processor="m:C", aws=aws, delivery=delivery)

    @asynccontextmanager
    async def letters(self, clock: Clock | None = None) -> AsyncIterator[DeadLetters]:
        """Open the destination as a worker does."""
        async with opened(self.config(), clock=clock or SystemClock()) as letters:
            assert letters is not None
            yield letters

    async def found(self) -> list[DeadLetter]:
        return [parse(text) for text in await self.read()]


@asynccontextmanager
async def a_place(kind: str, folder: Path) -> AsyncIterator[Place]:
    """Yield a place of one of ``KINDS``."""
    if kind == "file":
        path = folder / "letters.jsonl"

        async def lines() -> list[bytes]:
            return path.read_bytes().splitlines()

        yield Place(f"file:{path}", "", "", Faults([], random=Random(0)), lines)
        return
    clock, faults = SystemClock(), Faults([], random=Random(0))
    kinesis, tables = Kinesis(clock, delay_s=0.0), LocalDynamoDB(DynamoDB(Behaviour(clock)))
    async with AsyncExitStack() as stack:
        s3, sqs = stack.enter_context(closing(MotoS3())), stack.enter_context(closing(MotoSqs()))
        url = await stack.enter_async_context(
            serve(Server(kinesis, tables, clock=clock, s3=s3, sqs=sqs, faults=faults))
        )
        service: Any = kind.partition(" ")[0]
        client = await stack.enter_async_context(Sessions().client(service, Service(region=REGION, endpoint=url)))
        text, operation, read = await _MADE[service](client, ".fifo" if kind == "sqs fifo" else "")
        yield Place(text, operation, url, faults, read, client)


Made = tuple[str, str, Callable[[], Awaitable[list[bytes]]]]


async def _a_stream(client: Any, _: str) -> Made:
    await client.create_stream(StreamName="failures", ShardCount=1)
    arn = (await client.describe_stream_summary(StreamName="failures"))["StreamDescriptionSummary"]["StreamARN"]
    await client.update_max_record_size(StreamARN=arn, MaxRecordSizeInKiB=10_240)

    async def read() -> list[bytes]:
        shard, kind = "shardId-000000000000", "TRIM_HORIZON"
        reply = await client.get_shard_iterator(StreamName="failures", ShardId=shard, ShardIteratorType=kind)
        records = (await client.get_records(ShardIterator=reply["ShardIterator"]))["Records"]
        return [record["Data"] for record in records]

    return "kinesis:failures", "PutRecord", read


async def _a_queue(client: Any, suffix: str) -> Made:
    attributes = {"FifoQueue": "true"} if suffix else {}
    url = (await client.create_queue(QueueName=f"failures{suffix}", Attributes=attributes))["QueueUrl"]

    async def read() -> list[bytes]:
        found: list[bytes] = []
        while messages := (await client.receive_message(QueueUrl=url, MaxNumberOfMessages=10)).get("Messages"):
            found += [message["Body"].encode() for message in messages]
            for message in messages:
                await client.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return found

    return f"sqs:{url}", "SendMessage", read


async def _a_bucket(client: Any, _: str) -> Made:
    await client.create_bucket(Bucket="failures")

    async def read() -> list[bytes]:
        keys = [one["Key"] for one in (await client.list_objects_v2(Bucket="failures")).get("Contents", ())]
        return [await (await client.get_object(Bucket="failures", Key=key))["Body"].read() for key in keys]

    return "s3://failures/letters", "PutObject", read


_MADE = {"kinesis": _a_stream, "sqs": _a_queue, "s3": _a_bucket}


def add_fault(place: Place, **fields: Any) -> None:
    """Let something go wrong in the requests that store, until the faults are cleared."""
    place.faults.add(Fault(operation=place.store_operation, **fields))
