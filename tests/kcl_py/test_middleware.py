"""What middlewares hear, and that they change nothing."""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar

import pytest
import structlog
from structlog.testing import LogCapture

from kcl_py import (
    Batched,
    Batcher,
    Middleware,
    OwnedShard,
    ProcessorError,
    Record,
    RecordBatch,
    RecordProcessor,
    Reject,
    processor,
)
from kcl_py.acceptance import check_processor
from kcl_py.chain import surrounded
from kcl_py.middleware import Listed
from kcl_py.outcomes import BatchOutcome, RecordOutcome, ToBatch
from kcl_py.processor import Checkpointer
from kcl_py.testing import FakeStream, run_processor

pytestmark = pytest.mark.asyncio
SHARD = OwnedShard("orders", "shardId-0", 1, None, ())
RECORD = Record("1", b"payload", "key")


@pytest.fixture
def log() -> Iterator[LogCapture]:
    """Keep what is logged."""
    capture = LogCapture()
    structlog.configure(processors=[capture])
    yield capture
    structlog.reset_defaults()


class Notes(Middleware):
    """Notes what it hears."""

    def __init__(self, heard: list[Any], name: str = "") -> None:
        self.heard, self.name = heard, name

    def before_record(self, record: Record) -> None:
        self.heard.append((self.name, "before", record.data))

    def after_record(self, record: Record, outcome: RecordOutcome | BaseException, took_s: float) -> None:
        assert took_s >= 0
        self.heard.append((self.name, "after", outcome))

    def before_batch(self, batch: RecordBatch) -> None:
        self.heard.append((self.name, "before", [each.data for each in batch]))

    def after_batch(self, batch: RecordBatch, outcome: BatchOutcome | BaseException, took_s: float) -> None:
        assert took_s >= 0
        self.heard.append((self.name, "after", outcome, len(batch)))

    def before_batched(self, batch: Batched) -> None:
        self.heard.append((self.name, "before", batch.batcher, [record.data for record, _ in batch]))

    def after_batched(self, batch: Batched, outcome: BatchOutcome | BaseException, took_s: float) -> None:
        assert took_s >= 0
        self.heard.append((self.name, "after", outcome, len(batch)))


class Broken(Middleware):
    """Raises wherever it can."""

    def __init__(self) -> None:
        self.calls = 0

    def before_record(self, record: Record) -> None:
        self.calls += 1
        raise ValueError("before")

    def after_record(self, record: Record, outcome: RecordOutcome | BaseException, took_s: float) -> None:
        raise SystemExit(3)


def of_records(answer: RecordOutcome | BaseException, *middlewares: Listed) -> type[RecordProcessor]:
    class Records(RecordProcessor):
        """Answers."""

        async def process(self, record: Record) -> RecordOutcome:
            if isinstance(answer, BaseException):
                raise answer
            return answer

    Records.middlewares = middlewares
    return Records


async def made(kind: type[RecordProcessor]) -> RecordProcessor:
    instance = surrounded(kind)()
    await instance.initialize(SHARD)
    return instance


async def test_middlewares_are_called_in_order_before_and_in_reverse_after() -> None:
    """As if each was around the next."""
    heard: list[Any] = []
    instance = await made(of_records(None, Notes(heard, "outer"), Notes(heard, "inner")))
    assert await instance.process(RECORD) is None
    assert heard == [
        ("outer", "before", b"payload"),
        ("inner", "before", b"payload"),
        ("inner", "after", None),
        ("outer", "after", None),
    ]


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(1), asyncio.CancelledError()], ids=repr)
async def test_middleware_hears_what_was_raised_and_it_is_raised_on(error: BaseException) -> None:
    """A cancellation too: what was begun must end."""
    heard: list[Any] = []
    instance = await made(of_records(error, Notes(heard)))
    with pytest.raises(type(error)):
        await instance.process(RECORD)
    assert heard[1] == ("", "after", error)


async def test_middleware_hears_what_was_returned_and_it_is_returned_on() -> None:
    """Whatever it is."""
    heard: list[Any] = []
    no = Reject("no")
    instance = await made(of_records(no, Notes(heard)))
    assert await instance.process(RECORD) is no
    assert heard[1] == ("", "after", no)


async def test_middleware_of_a_batch_sees_all_of_it_though_the_processor_has_changed_its_list() -> None:
    """The list is the processor's own."""
    heard: list[Any] = []

    class Empties(RecordProcessor):
        middlewares = (Notes(heard),)

        async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
            batch.records.clear()

    await run_processor(Empties, ["a", "b"])
    assert heard == [("", "before", [b"a", b"b"]), ("", "after", None, 2)]


async def test_middleware_hears_of_records_that_are_given_away_and_of_their_batch() -> None:
    """All of it, though the processor has changed its list."""
    heard: list[Any] = []

    class Gathers(RecordProcessor):
        middlewares = (Notes(heard),)
        batchers: ClassVar[dict[str, Batcher]] = {"both": Batcher(max_records=2)}

        async def process(self, record: Record) -> ToBatch:
            return ToBatch("both")

        async def handle_batch(self, batch: Batched) -> None:
            batch.items.clear()

    await run_processor(Gathers, ["a", "b"])
    away = ("", "after", ToBatch("both"))
    assert sorted(heard[:4], key=repr) == sorted([("", "before", b"a"), ("", "before", b"b"), away, away], key=repr)
    assert heard[4:] == [("", "before", "both", [b"a", b"b"]), ("", "after", None, 2)]


@pytest.mark.parametrize("batchers", [{}, {"both": Batcher()}])
async def test_middleware_hears_that_a_batcher_does_not_exist(batchers: dict[str, Batcher]) -> None:
    """The record has failed: it was given to nobody."""
    heard: list[Any] = []

    class Misspells(RecordProcessor):
        middlewares = (Notes(heard),)

        async def process(self, record: Record) -> ToBatch:
            return ToBatch("bith")

    async def handle_batch(self: RecordProcessor, batch: Batched) -> None: ...

    kind = type(
        "Misspells", (Misspells,), {"batchers": batchers} | ({"handle_batch": handle_batch} if batchers else {})
    )
    await run_processor(kind, ["a"], retries=0)
    assert isinstance(heard[1][2], ProcessorError)
    assert "found 'bith'" in str(heard[1][2])


async def test_middleware_that_raises_is_told_of_once_and_changes_nothing(log: LogCapture) -> None:
    """Over all shards, once for each method and kind of error."""
    broken = Broken()
    heard: list[Any] = []
    stream = FakeStream(shards=2)
    kind = of_records(None, broken, Notes(heard))
    run = await run_processor(kind, ["a", "b", "c", "d"], stream=stream)
    assert len(run.acknowledged) == 4
    assert broken.calls == 4
    assert len(heard) == 8
    failures = [entry for entry in log.entries if entry["event"] == "kcl_py.middleware.failed"]
    assert [(entry["middleware"], entry["method"], entry["error"]) for entry in failures] == [
        ("Broken", "before_record", "ValueError: before"),
        ("Broken", "after_record", "SystemExit: 3"),
    ]


async def test_class_is_made_for_each_ownership_and_an_instance_is_shared() -> None:
    """So a class may keep something of its shard."""
    shards: list[str] = []

    class OfShard(Middleware):
        def initialize(self, shard: OwnedShard) -> None:
            self.shard = shard

        def before_record(self, record: Record) -> None:
            shards.append(self.shard.shard_id)

    heard: list[Any] = []
    stream = FakeStream(shards=2)
    kind = of_records(None, OfShard, partial(OfShard), Notes(heard))
    await run_processor(kind, ["a", "b", "c", "d", "e", "f"], stream=stream)
    assert set(shards) == set(stream.shards)
    assert len(shards) == 12
    assert len(heard) == 12


async def test_middleware_that_cannot_be_made_is_left_out_and_told_of(log: LogCapture) -> None:
    """The work goes on."""

    class Unmakeable(Middleware):
        def __init__(self) -> None:
            raise ValueError("no")

    run = await run_processor(of_records(None, Unmakeable), ["a"])
    assert run.acknowledged == [b"a"]
    [failure] = [entry for entry in log.entries if entry["event"] == "kcl_py.middleware.failed"]
    assert (failure["middleware"], failure["method"]) == ("Unmakeable", "__init__")


async def test_processor_with_middlewares_stays_what_it_is() -> None:
    """By name and class, with its attributes; one without middlewares is not touched."""

    class Mine(RecordProcessor):
        """Mine."""

        middlewares: ClassVar[Any] = (Middleware(),)

        def __init__(self) -> None:
            self.seen: list[bytes] = []

        async def process(self, record: Record) -> None:
            self.seen.append(record.data)

    run = await run_processor(Mine, ["a"])
    assert run.processors[0].seen == [b"a"]
    assert isinstance(run.processors[0], Mine)
    kind = surrounded(Mine)
    assert (kind.__qualname__, kind.__module__, kind.__doc__) == (Mine.__qualname__, __name__, "Mine.")
    Mine.middlewares = ()
    assert surrounded(Mine) is Mine


async def test_function_is_given_middlewares_by_its_decorator() -> None:
    """The same as the attribute of a class."""
    heard: list[Any] = []

    @processor(middlewares=[Notes(heard)])
    async def handle(payload: bytes) -> None: ...

    await run_processor(handle, ["a"])
    assert heard == [("", "before", b"a"), ("", "after", None)]


class Waits(Middleware):
    """Would wait."""

    async def before_record(self, record: Record) -> None:  # type: ignore[override]
        ...


class WaitsAfter(Middleware):
    """Would wait."""

    async def after_batched(self, *_: Any) -> None:  # type: ignore[override]
        ...


class OneShards(Middleware):
    """Is told its shard."""

    def initialize(self, shard: OwnedShard) -> None: ...


@pytest.mark.parametrize(
    ("listed", "fault"),
    [
        (5, "expected middlewares to be a sequence, found int"),
        ([5], "expected a kcl_py.Middleware in middlewares, found int that is none"),
        ([dict], "expected a kcl_py.Middleware in middlewares, found class 'dict' that is none"),
        ([Waits], "expected `def before_record` in middleware 'Waits', found `async def`"),
        ([WaitsAfter], "expected `def after_batched` in middleware 'WaitsAfter', found `async def`"),
        ([Waits()], "expected `def before_record` in middleware 'Waits', found `async def`"),
        (
            [OneShards()],
            "expected the class 'OneShards' in middlewares, or a function that makes one, since it has an `initialize` "
            "and so is one shard's, found an instance",
        ),
    ],
)
async def test_middleware_that_cannot_be_called_is_one_error(listed: Any, fault: str) -> None:
    """Before the worker starts."""
    make: Callable[..., type[RecordProcessor]] = of_records
    kind = make(None)
    kind.middlewares = listed
    with pytest.raises(ProcessorError) as caught:
        check_processor(kind, "mine:Kind")
    assert str(caught.value) == f"cannot use processor 'mine:Kind': {fault}"
