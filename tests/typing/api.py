"""A user's program that names everything public. Never run: ``make lint`` checks its types, as a user's mypy would."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import ClassVar, Literal, assert_type

import anyio
from pyspark.sql import SparkSession

from actors import (
    Actor,
    ActorError,
    ActorStoppedError,
    AskTimeoutError,
    Child,
    Down,
    Ended,
    Event,
    GraceExceeded,
    Intensity,
    KilledError,
    MailboxFullError,
    MessagesDropped,
    Observer,
    OwnedTask,
    Question,
    Ref,
    Restart,
    Restarting,
    RestartLimitError,
    Root,
    Started,
    StopHookFailed,
    Strategy,
    Supervisor,
    SystemClock,
    TaskAbandoned,
    TaskFailed,
    Timer,
    UnhandledMessageError,
    log_event,
    running,
)
from actors.testing import EventLog, ManualClock, settle
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
    EndpointError,
    Failure,
    HaltedShard,
    Ids,
    KclError,
    LeaseLostError,
    LeaseStore,
    LeaseTableError,
    Middleware,
    Node,
    Outcome,
    OwnedShard,
    PositionError,
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
from kcl_py.testing import (
    Entry,
    FakeStream,
    Fault,
    FaultKind,
    Faults,
    HookCall,
    Run,
    RunTimeoutError,
    ScriptedError,
    record,
    run_processor,
)
from spark_bridge import JavaNotFoundError, KclDataSource, ensure_java

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


async def test_orders(stream: FakeStream) -> None:
    """Run it on records, and look at all that a run tells."""
    entry = record("a", key="k", hash_key=7)
    assert_type(entry, Entry)
    try:
        run = await run_processor(
            Orders,
            ["text", b"bytes", entry],
            stream=stream,
            end_shards=True,
            batch_size=2,
            checkpoint="manual",
            retries=1,
            options={"grace_s": 5},
            crash_at="text",
            timeout_s=1.0,
        )
    except RunTimeoutError as error:
        assert_type(error.retryable, bool)
        return
    assert_type(run, Run[Orders])
    assert_type(run.processors, list[Orders])
    assert_type((run.delivered, run.finished, run.acknowledged), tuple[list[bytes], list[bytes], list[bytes]])
    assert_type((run.redelivered, run.unacknowledged, run.hooks), tuple[list[bytes], list[bytes], list[str]])
    assert_type((run.outcome, run.error), tuple[Outcome | None, BaseException | None])
    assert_type(run.batches, list[RecordBatch])
    for call in run.of(run.stream.shards[0]).calls:
        assert_type(call, HookCall[Orders])
        assert_type((call.hook, call.shard_id, call.has_returned), tuple[str, str, bool])
        assert not isinstance(call.error, ScriptedError)
    run.assert_nothing_lost({b"text"})
    run.assert_key_order([b"text", b"bytes"])


async def test_stream() -> None:
    """Have a worker on a stream of one's own, on a bad day."""
    clock = ManualClock()
    fault = Fault(kind=FaultKind.THROTTLE, service="kinesis", operation="GetRecords", times=2)
    stream = FakeStream(shards=2, faults=[fault], clock=clock, seed=7, name="orders")
    assert_type(stream.faults, Faults)
    stream.faults.add(fault)
    assert_type(stream.put("a", record("b")), list[Record])
    assert_type(stream.split(stream.shards[0]), list[str])
    assert_type(stream.merge(stream.open_shards[0], stream.open_shards[1]), str)
    assert_type((stream.end(), stream.parents("shardId-0")), tuple[list[str], list[str]])
    assert_type(stream.checkpoints, dict[str, str])
    async with clock.passing(), stream.worker(Orders, grace_s=5) as worker:
        assert_type(worker, Stream)
        stream.take_lease(stream.shards[0])
        await clock.sleep(60)
    config = stream.config(checkpoint={"mode": "manual"})
    async with Stream(config, processor=Orders, clients=stream.clients(config), clock=clock):
        await clock.advance(10)
    await stream.kinesis_client().put_record(StreamName=stream.name, Data=b"c", PartitionKey="k")


# --- actors -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HowMany(Question[int]):
    """Asks for the number of greetings."""


class Greeter(Actor):
    """Counts whom it has greeted."""

    def __init__(self) -> None:
        self.greeted = 0

    async def on_start(self) -> None:
        assert_type(self.send_after(1.0, "the clock"), Timer)
        task: OwnedTask = self.run_task(anyio.lowlevel.checkpoint, done=lambda _: "done", failed=lambda error: error)
        task.cancel()

    async def on_message(self, message: object) -> object:
        match message:
            case HowMany():
                return self.greeted
            case str():
                self.greeted += 1
            case Down(ref=ref, error=error, is_restarting=is_restarting):
                assert_type((ref, error, is_restarting), tuple[Ref, Exception | None, bool])
            case _:
                self.unhandled(message)
        return None

    def status(self) -> Mapping[str, object]:
        return {"greeted": self.greeted}


class Team(Supervisor):
    """Keeps a greeter alive."""

    strategy = Strategy.REST_FOR_ONE
    intensity = Intensity(restarts=5, within_s=10.0)

    async def on_start(self) -> None:
        self.greeter = await self.start_child(Child("greeter", Greeter, restart=Restart.TRANSIENT, grace_s=1.0))
        self.monitor(self.greeter)


def kinds_of(event: Event) -> Iterator[object]:
    """Tell the events of a tree apart."""
    match event:
        case Started():
            yield event.path
        case Ended(error=error) | Restarting(error=error):
            assert_type(error, Exception | None)
            yield error
        case StopHookFailed(error=error) | TaskFailed(error=error):
            yield error.__traceback__
        case TaskAbandoned(task=task, after_s=after_s):
            yield (task, after_s)
        case GraceExceeded(grace_s=grace_s):
            yield grace_s
        case MessagesDropped(count=count):
            yield count


async def greet(observer: Observer = log_event) -> None:
    """Run a tree, and one on a clock that a test moves."""
    team = Team()
    async with running(lambda: team, name="team", clock=SystemClock(), observer=observer, grace_s=1.0) as root:
        assert_type(root, Root)
        try:
            assert_type(team.greeter.tell("world"), bool)
            assert_type(await team.greeter.ask(HowMany(), timeout_s=1.0), int)
        except MailboxFullError as full:
            assert_type(full.capacity, int)
        except (AskTimeoutError, ActorStoppedError, UnhandledMessageError, KilledError, RestartLimitError) as error:
            assert_type(error.name, str)
        except ActorError:
            root.ref.stop()
        await root.wait()
    clock, log = ManualClock(), EventLog()
    async with running(Team, clock=clock, observer=log):
        await clock.advance(1.0)
        await settle()
        assert_type(log.of(Started), list[Started])


# --- spark_bridge -------------------------------------------------------------------------------------------------


def rows() -> None:
    """Read a stream in Spark."""
    try:
        assert_type(ensure_java(), Path)
    except JavaNotFoundError as error:
        assert_type(error.retryable, bool)
    spark = SparkSession.builder.getOrCreate()
    spark.dataSource.register(KclDataSource)
    spark.readStream.format(KclDataSource.name()).option("stream", "orders").load()
