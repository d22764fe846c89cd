"""What a person sees who runs a processor of theirs on given records."""

import asyncio
import time
from typing import Any

import pytest
import structlog

from kcl_py import (
    Checkpointer,
    ConfigError,
    LeaseTableError,
    OwnedShard,
    ProcessorError,
    Record,
    RecordBatch,
    RecordProcessor,
    Reject,
    Retry,
)
from kcl_py.testing import FakeStream, record, run_processor

pytestmark = pytest.mark.asyncio
SHARD = "shardId-000000000000"


class Shout(RecordProcessor):
    """Keeps what it has heard."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        self.heard += [each.data.upper() for each in batch]


class Fussy(Shout):
    """Cannot stand one record."""

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        await super().process_records(batch, checkpointer)
        if b"bad" in [each.data for each in batch]:
            raise ValueError("not this one")


async def test_run_shows_what_was_delivered_finished_and_acknowledged_and_that_it_ended_in_order() -> None:
    """The whole of it for a processor without faults; its instance is there to be looked at."""
    run = await run_processor(Shout, ["a", b"b", record("c", key="x")])
    assert run.delivered == run.finished == run.acknowledged == [b"a", b"b", b"c"]
    assert run.unacknowledged == run.redelivered == []
    assert run.hooks == ["initialize", "process_records", "shutdown_requested"]
    assert [processor.heard for processor in run.processors] == [[b"A", b"B", b"C"]]
    assert run.checkpoints == {SHARD: run.records[SHARD][-1].sequence_number}
    assert (run.error, run.halted) == (None, {})
    assert run.outcome is not None
    assert run.outcome.is_clean


async def test_run_hands_over_batches_of_the_size_that_is_asked_for() -> None:
    """And tells each with all that the processor was given."""
    run = await run_processor(Shout, ["a", "b", "c"], batch_size=2)
    assert [[each.data for each in batch] for batch in run.batches] == [[b"a", b"b"], [b"c"]]
    assert [batch.shard_id for batch in run.batches] == [SHARD, SHARD]
    assert run.batches[0].redelivery is None


async def test_run_without_records_takes_and_gives_up_the_shard() -> None:
    """So that the other hooks can be tested alone."""
    run = await run_processor(Shout)
    assert run.hooks == ["initialize", "shutdown_requested"]
    assert run.checkpoints == {SHARD: "TRIM_HORIZON"}


async def test_run_of_several_shards_tells_them_apart() -> None:
    """All records arrive, those of a key in one shard and in order; each shard has a processor of its own."""
    stream = FakeStream(shards=4)
    payloads = [f"{key}{number}" for number in range(10) for key in "abcdef"]
    run = await run_processor(Shout, [record(each, key=each[0]) for each in payloads], stream=stream)
    assert sorted(run.acknowledged) == sorted(each.encode() for each in payloads)
    for key in "abcdef":
        seen = [each for each in run.delivered if each.startswith(key.encode())]
        assert seen == [f"{key}{number}".encode() for number in range(10)]
    assert len(run.processors) == len(stream.shards) == 4
    for shard_id in stream.shards:
        part = run.of(shard_id)
        assert part.delivered == part.acknowledged == [each.data for each in stream.records(shard_id)]
        assert part.hooks[0] == "initialize"
        assert part.checkpoints == {shard_id: run.checkpoints[shard_id]}
        assert len(part.processors) == 1


async def test_manual_run_acknowledges_only_what_the_processor_checkpoints() -> None:
    """What is finished and not stored comes again."""

    class AllButTheLast(RecordProcessor):
        async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
            await checkpointer.checkpoint(batch.records[-2])

    run = await run_processor(AllButTheLast, ["a", "b", "c"], checkpoint="manual")
    assert run.finished == [b"a", b"b", b"c"]
    assert (run.acknowledged, run.unacknowledged) == ([b"a", b"b"], [b"c"])
    again = await run_processor(Shout, stream=run.stream)
    assert again.delivered == again.acknowledged[-1:] == [b"c"]


async def test_failing_batch_comes_again_with_its_reason_then_the_shard_halts() -> None:
    """The error is there as it was raised; no real time was spent on backoff."""
    began = time.perf_counter()
    run = await run_processor(Fussy, ["good", "bad", "never"], batch_size=1, retries=2)
    assert time.perf_counter() - began < 10
    assert run.delivered == [b"good", b"bad", b"bad", b"bad"]
    assert run.redelivered == [b"bad"]
    reasons = [batch.redelivery.reason for batch in run.batches if batch.redelivery]
    assert reasons == ["ValueError: not this one"] * 2
    assert isinstance(run.error, ValueError)
    assert (run.acknowledged, run.unacknowledged) == ([b"good"], [b"bad", b"never"])
    assert run.halted == {SHARD: run.records[SHARD][1].sequence_number}
    assert [call.has_returned for call in run.calls if call.batch] == [True, False, False, False]
    assert run.stream.clock.monotonic() - 1000 >= 0.75


async def test_halted_shard_keeps_no_other_from_being_finished() -> None:
    """The run ends when each shard is finished or stands still; what follows a shard that does stands still too."""
    stream = FakeStream(shards=2)
    [bad] = stream.put(record("bad", hash_key=0))
    stream.split(stream.shards[0])
    run = await run_processor(Fussy, [record("good", hash_key=2**128 - 1)], stream=stream, retries=0)
    assert run.acknowledged == [b"good"]
    assert run.halted == {stream.shards[0]: bad.sequence_number}
    assert run.of(stream.shards[0]).error is run.error
    assert run.of(stream.shards[1]).error is None
    assert [call.hook for call in run.calls if call.shard_id in stream.shards[2:]] == []


@pytest.mark.parametrize("where", ["constructor", "initialize"])
async def test_processor_that_cannot_be_prepared_halts_its_shard(where: str) -> None:
    """Its error is shown, and no record was handed over."""

    class Broken(Shout):
        def __init__(self) -> None:
            super().__init__()
            if where == "constructor":
                raise LookupError("no database")

        async def initialize(self, shard: OwnedShard) -> None:
            raise LookupError("no database")

    run = await run_processor(Broken, ["a"], retries=1)
    assert run.hooks[:2] == ["initialize", "initialize"]
    assert isinstance(run.error, LookupError)
    assert (run.delivered, run.halted) == ([], {SHARD: "TRIM_HORIZON"})
    assert len(run.processors) == (0 if where == "constructor" else 1)


async def test_end_calls_shard_ended_after_the_last_record_and_its_children_follow() -> None:
    """All that a resharding means to a processor."""
    run = await run_processor(Shout, ["a", "b"], end_shards=True)
    parent, *children = run.stream.shards
    assert run.of(parent).hooks == ["initialize", "process_records", "shard_ended"]
    assert [run.of(child).hooks for child in children] == [["initialize", "shutdown_requested"]] * 2
    assert run.checkpoints == {parent: "SHARD_END"} | dict.fromkeys(children, "TRIM_HORIZON")
    assert run.acknowledged == [b"a", b"b"]


async def test_options_are_those_of_the_file() -> None:
    """Sections as mappings; what has an argument of its own goes over them."""
    options = {"delivery": {"retries": 7, "batch": {"max_records": 1, "max_bytes": 2}}, "checkpoint": {"records": 1}}
    run = await run_processor(Fussy, ["good", "bad"], retries=1, options=options)
    assert run.delivered == [b"good", b"bad", b"bad"]
    with pytest.raises(ConfigError, match=r"delivery\.batch\.max_record"):
        await run_processor(Shout, options={"delivery": {"batch": {"max_record": 1}}})


async def test_class_that_is_no_processor_is_refused_as_by_kcl_run() -> None:
    """With the sentence that names what is wrong."""

    class Misspelt(RecordProcessor):
        async def process_record(self, batch: RecordBatch, checkpointer: Checkpointer) -> None: ...

    with pytest.raises(ProcessorError, match=r"Misspelt.*did you mean process_records"):
        await run_processor(Misspelt, ["a"])


async def test_incident_at_a_record_that_is_not_there_is_refused() -> None:
    """Else the test would show nothing, and pass."""
    with pytest.raises(
        ValueError, match="cannot use crash_at: expected the payload of one of the 1 records that are not"
    ):
        await run_processor(Shout, ["a"], crash_at="b")
    run = await run_processor(Shout, ["a"])
    with pytest.raises(ValueError, match="cannot use lose_lease_at: expected the payload of one of the 0 records"):
        await run_processor(Shout, stream=run.stream, lose_lease_at="a")


async def test_time_of_the_run_stands_still_while_a_hook_waits_for_something_else() -> None:
    """A hook that talks to the outside world is not cut off by a grace, nor loses its lease."""

    class Outside(RecordProcessor):
        async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
            await asyncio.to_thread(time.sleep, 0.05)

        async def shutdown_requested(self, checkpointer: Checkpointer) -> None:
            await asyncio.to_thread(time.sleep, 0.05)

    run = await run_processor(Outside, ["a"])
    assert [call.has_returned for call in run.calls] == [True, True, True]
    assert run.stream.clock.monotonic() < 1002


async def test_time_of_the_run_passes_while_a_hook_sleeps_on_its_clock() -> None:
    """Minutes of work are over at once, with the heartbeats that keep the lease meanwhile."""
    stream = FakeStream()

    class Slow(RecordProcessor):
        async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
            await stream.clock.sleep(120)
            await checkpointer.checkpoint(batch)

    run = await run_processor(Slow, ["a", "b"], stream=stream, batch_size=1)
    assert run.acknowledged == [b"a", b"b"]
    assert run.error is None
    assert stream.clock.monotonic() >= 1240


async def test_run_leaves_no_task_behind() -> None:
    """However it ended."""
    before = asyncio.all_tasks()
    await run_processor(Shout, ["a"])
    await run_processor(Shout, ["a"], crash_at="a")
    await run_processor(Fussy, ["bad"])
    assert asyncio.all_tasks() == before


async def test_same_seed_gives_the_same_run() -> None:
    """What is left to chance is decided by the stream's seed."""

    async def until_halted(seed: int) -> float:
        run = await run_processor(Fussy, ["bad"], stream=FakeStream(seed=seed))
        return run.stream.clock.monotonic()

    assert await until_halted(1) == await until_halted(1) != await until_halted(2)


async def test_worker_that_fails_as_a_whole_shows_its_error() -> None:
    """A lease table that is deleted under it ends a worker, here as in ``kcl run``."""
    stream = FakeStream()

    class Vandal(RecordProcessor):
        async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
            stream.service.dynamodb.call("DeleteTable", {"TableName": stream.config().leases.table})
            await stream.clock.sleep(60)

    run = await run_processor(Vandal, ["a"], stream=stream)
    assert isinstance(run.error, LeaseTableError)
    assert run.outcome is None
    assert run.checkpoints == {}
    assert run.unacknowledged == [b"a"]


async def test_run_of_a_failing_processor_prints_no_record(capsys: pytest.CaptureFixture[str]) -> None:
    """In a project that has not set structlog up, as most tests: lines that can be read, and no variables."""
    structlog.reset_defaults()
    await run_processor(Fussy, ["secret", "bad"])
    printed = capsys.readouterr().out
    assert "kcl_py.shard.halted" in printed
    assert "secret" not in printed
    assert len(printed.splitlines()) < 50


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Reject("malformed"), "malformed"),
        (Retry(reason="busy"), "busy"),
        ("done", "expected"),
    ],
    ids=["Reject", "Retry", "nonsense"],
)
async def test_error_names_what_halted_a_shard_though_nothing_was_raised(answer: Any, said: str) -> None:
    """The record too; not an exception of another attempt."""

    class Answers(RecordProcessor):
        async def process(self, record: Record) -> Any:
            if record.redelivery is None:
                raise LookupError("not the last")
            return answer

    run = await run_processor(Answers, ["a"], retries=1)
    assert isinstance(run.error, ProcessorError)
    number = next(iter(run.halted.values()))
    assert str(run.error).startswith(f"cannot pass over {number} of shardId-000000000000, which is not done: ")
    assert said in str(run.error)
