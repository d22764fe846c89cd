"""The second half of ``api.py``: what users write in tests, with actors and with Spark."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import assert_type

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
    Outcome,
    Record,
    RecordBatch,
    Stream,
)
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
from tests.typing.api import Orders


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
