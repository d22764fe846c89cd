"""A user's program that names everything public. Never run: ``make lint`` checks its types, as a user's mypy would."""

import random
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import ClassVar, Literal, assert_type

from kcl_py import (
    AwsSetupError,
    Batched,
    Batcher,
    Checkpointer,
    CheckpointFailedError,
    Clients,
    Clock,
    Config,
    ConfigError,
    CredentialsError,
    Dedup,
    DuplicateInWorkError,
    EffectsRefusedError,
    EndpointError,
    Failure,
    HaltedShard,
    Identity,
    Ids,
    KclError,
    LeaseLostError,
    LeaseStore,
    LeaseTableError,
    Middleware,
    Node,
    Once,
    Outcome,
    OwnedShard,
    PositionError,
    PreparedCheckpoint,
    ProcessorError,
    Record,
    RecordBatch,
    RecordProcessor,
    Records,
    Redelivery,
    Reject,
    Retry,
    SequenceNumber,
    Source,
    Stream,
    StreamIdentityError,
    StreamNotFoundError,
    ToBatch,
    processor,
)
from kcl_py.dead_letters import DeadLetter, DeadLetterError, DeadLetters, parse
from kcl_py.effects import Delete, Update

# --- kcl_py: a processor, and a worker in code --------------------------------------------------------------------


class Lines(RecordProcessor):
    """Takes records one by one."""

    async def process(self, record: Record) -> Retry | Reject | None:
        if record.redelivery is None:
            return Retry(after_s=1.5, reason="later")
        if isinstance(record.redelivery, str):
            return Reject("no")
        assert_type((record.redelivery.attempt, record.redelivery.first_failed_s), tuple[int, float])
        return None

    async def handle_failed(self, failure: Failure) -> Literal["skip"] | None:
        assert_type((failure.record, failure.reason, failure.attempts), tuple[Record, str, int])
        assert_type((failure.first_failed_s, failure.is_rejected), tuple[float, bool])
        return "skip" if failure.is_rejected else None


class Some(RecordProcessor):
    """Names what it could not finish."""

    async def process_records(
        self, batch: RecordBatch, checkpointer: Checkpointer
    ) -> dict[Record, Retry | Reject | Exception]:
        return {batch.records[0]: Retry(), batch.records[1]: Reject("no"), batch.records[2]: ValueError("bad")}


class Effects(RecordProcessor):
    """Writes outside."""

    async def initialize(self, shard: OwnedShard) -> None:
        self.once = Once(shard, table="markers", ttl_s=60)
        self.dedup = Dedup(shard, table="messages", ttl_s=60, id=lambda record: record.partition_key)
        self.shard = shard

    async def process(self, record: Record) -> Retry | None:
        assert_type(self.shard.identity(record), Identity)
        assert_type(await self.once.apply(record, [Delete("t", {"id": 1})]), bool)
        try:
            async with self.dedup.first(record) as is_first:
                assert_type(is_first, bool)
        except DuplicateInWorkError as error:
            return Retry(error.after_s)
        return None


class Orders(RecordProcessor):
    """Uses all that a hook is given."""

    async def initialize(self, shard: OwnedShard) -> None:
        assert_type(shard.stream, str)
        assert_type(shard.shard_id, str)
        assert_type(shard.epoch, int)
        assert_type(shard.position, SequenceNumber | None)
        assert_type(shard.parents, tuple[str, ...])

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        assert_type(batch.redelivery, Redelivery | None)
        if batch.redelivery is not None:
            assert_type((batch.redelivery.attempt, batch.redelivery.reason), tuple[int, str])
        assert_type((batch.stream, batch.shard_id, batch.millis_behind_latest), tuple[str, str, int])
        assert_type(batch.first < batch.last, bool)
        assert_type(len(batch), int)
        for each in batch:
            self.look_at(each)
        try:
            await checkpointer.checkpoint(batch)
            await checkpointer.checkpoint(at=batch.records[-1])
            await checkpointer.checkpoint()
            prepared: PreparedCheckpoint = await checkpointer.prepare(batch, state=b"x")
            await prepared.commit()
            added = Update("totals", {"id": "all"}, "ADD n :n", values={":n": len(batch)})
            assert_type(await checkpointer.once([added], at=batch), bool)
        except EffectsRefusedError as refused:
            assert_type(refused.reasons, Mapping[int, str])
        except (LeaseLostError, PositionError, CheckpointFailedError) as error:
            assert_type(error.retryable, bool)

    def look_at(self, record: Record) -> None:
        assert_type((record.data, record.partition_key), tuple[bytes, str])
        assert_type((record.sequence_number, record.sub_sequence_number), tuple[str, int])
        assert_type(record.position, SequenceNumber)
        assert_type(record.arrival_time, datetime)
        assert_type(record.encryption_type, str | None)

    async def lease_lost(self) -> None: ...

    async def shard_ended(self, checkpointer: Checkpointer) -> None: ...

    async def shutdown_requested(self, checkpointer: Checkpointer) -> None: ...


class Objects(RecordProcessor):
    """Gives records to a batcher."""

    batchers: ClassVar[Mapping[str, Batcher]] = {
        "s3": Batcher(max_records=500, max_bytes=1_000_000, max_age_s=1.0, concurrency=2, max_keys=10)
    }

    async def process(self, record: Record) -> ToBatch | None:
        if not record.data:
            return None
        return ToBatch("s3", value=record.data, key=record.partition_key, flush=False, size_bytes=len(record.data))

    async def handle_batch(self, batch: Batched) -> Mapping[Record, Exception]:
        assert_type((batch.batcher, len(batch)), tuple[str, int])
        hash(batch.key)
        assert batch.trigger in ("size", "bytes", "age", "flush", "keys", "drain", "end")
        assert list(batch) == batch.items
        return {record: ValueError("no") for record, value in batch if value is None}


class Kept:
    """A destination of dead letters of one's own."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    async def store(self, letter: DeadLetter) -> None:
        if len(self.lines) == 1000:
            raise DeadLetterError("cannot store any more", retryable=False)
        self.lines.append(letter.encoded())

    def replay(self) -> Iterator[Record]:
        for line in self.lines:
            letter = parse(line)
            assert_type((letter.stream, letter.shard_id, letter.name), tuple[str, str, str])
            assert_type((letter.attempts, letter.reason, letter.failed_s), tuple[int, str, float])
            yield letter.record


async def work(source: Source, leases: LeaseStore, clock: Clock) -> Outcome:
    """Run a worker on a stream and a table of its own."""
    config = Config.load(Path("orders.yaml"), env={"KCL_APP": "orders"})
    again = Config.model_validate({"app": "orders", "stream": "orders", "processor": "orders:Orders"})
    assert_type(config, Config)
    assert_type(again.leases.failover_s, float)
    kept: DeadLetters = Kept()
    clients, ids = Clients(source, leases, dead_letters=kept), Ids(random.Random(7))
    async with Stream(config, processor=Orders, clients=clients, clock=clock, ids=ids) as stream:
        assert_type(stream.tree(), Node)
        show(stream.tree())
        stream.set_rate(records=100, bytes=None)
        assert_type((stream.rate.records, stream.rate.bytes), tuple[int | None, int | None])
        assert_type(await stream.halted(), HaltedShard)
        stream.stop(grace_s=5)
        outcome = await stream.wait()
    assert_type((outcome.unfinished, outcome.has_let_go, outcome.is_clean), tuple[int, bool, bool])
    return outcome


def show(node: Node) -> str:
    assert_type((node.name, node.state, node.mailbox, node.restarts), tuple[str, str, int, int])
    for child in node.children:
        show(child)
    return str(node)


async def exit_code() -> int:
    """Tell the errors of a start apart."""
    try:
        async with Stream(Config.load("orders.yaml")) as stream:
            await stream.wait()
    except ConfigError as error:
        assert_type(error.faults, tuple[str, ...])
        return 2
    except ProcessorError:
        return 2
    except (StreamNotFoundError, CredentialsError, EndpointError, LeaseTableError, StreamIdentityError):
        return 3
    except AwsSetupError:
        return 3
    except KclError:
        return 1
    return 0


# --- kcl_py: functions, loops and middlewares ----------------------------------------------------------------------


class Slow(Middleware):
    """Looks at what a middleware is told."""

    def initialize(self, shard: OwnedShard) -> None:
        assert_type(shard.epoch, int)

    def after_record(self, record: Record, outcome: object, took_s: float) -> None:
        assert_type((record.partition_key, took_s), tuple[str, float])


@processor
async def look_at_one(payload: bytes) -> None:
    """Take a payload."""


@processor(middlewares=[Slow, Middleware()])
async def look_at_all(payloads: list[dict[str, int]], batch: RecordBatch, checkpointer: Checkpointer) -> None:
    """Take payloads."""
    await checkpointer.checkpoint(batch)


async def loop(config: Config) -> None:
    """Take records in a loop; give functions to a worker."""
    async with Stream(config, processor=Records) as stream:
        async for each in stream.records():
            assert_type(each, Record)
        async for each in stream.records(ack="explicit"):
            assert_type((stream.ack(each), stream.nack(each)), tuple[bool, bool])
    assert_type(look_at_one, type[RecordProcessor])
    assert_type(look_at_all, type[RecordProcessor])
    Stream(config, processor=look_at_one)


# --- kcl_py.testing: the processor in tests -----------------------------------------------------------------------
