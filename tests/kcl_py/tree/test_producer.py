"""What a Producer reads, when, and from where."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest
from structlog.testing import LogCapture

from actors import Ended, Ref, TaskFailed
from kcl_py.errors import IteratorExpiredError, MissingError, RejectedError, RequestError, ThrottledError
from kcl_py.local.client import KinesisClient
from kcl_py.sources.kinesis.polling import KinesisSource
from kcl_py.sources.source import TRIM_HORIZON, Fetched, Position, PositionKind, Source
from kcl_py.tree.messages import CaughtUp, CloseReading, EndSeen, FetchedBatch, OpenReading, Room
from kcl_py.tree.producer import BACKOFF_MAX_S, BACKOFF_S, Producer
from tests.kcl_py.tree.fleet import STREAM, Fleet
from tests.kcl_py.tree.stage import SHARD, Neighbour, ScriptedSource, Stage, a_stage, some_records, some_reply, until
from tests.simloop import run, simulated

PLENTY = Room(1_000_000, 1_000_000_000)
READING = 1
EPOCH = 7


@asynccontextmanager
async def a_producer(source: Source, **options: Any) -> AsyncIterator[tuple[Stage, Ref, Neighbour]]:
    """Run a Producer with a probe for its Pipeline."""
    async with a_stage(source=source, **options) as stage:
        pipeline = await stage.neighbour("pipeline")
        account = stage.worker.budget.account(lambda: None)
        producer = await stage.play("producer", lambda: Producer(stage.worker, SHARD, pipeline.ref, account))
        yield stage, producer, pipeline


def begin(producer: Ref, *, room: Room = PLENTY, at: Position = TRIM_HORIZON) -> None:
    producer.tell(OpenReading(at, READING, EPOCH))
    producer.tell(room)


def numbers(pipeline: Neighbour) -> list[int]:
    """Return the sequence numbers that the Pipeline was given, in order."""
    return [int(record.sequence_number) for batch in pipeline.of(FetchedBatch) for record in batch.records]


class Waiting(ScriptedSource):
    """A source whose replies come when the test says."""

    reply: "asyncio.Future[Fetched] | None" = None

    async def fetch(self, shard_id: str, iterator: str, *, limit: int) -> Fetched:
        self.reply = asyncio.get_running_loop().create_future()
        return await self.reply


@pytest.mark.parametrize("seed", range(4))
def test_reply_that_comes_as_reading_is_closed_counts_for_nothing(seed: int) -> None:
    """Whichever goes first: nobody gets it, so it takes no memory from other shards."""

    async def close() -> None:
        source = Waiting()
        async with a_producer(source, fetch={"budget_bytes": 1}) as (stage, producer, pipeline):
            begin(producer)
            await until(lambda: source.reply)
            assert source.reply is not None
            source.reply.set_result(some_reply(some_records(3)))
            producer.tell(CloseReading())
            await asyncio.sleep(1)
            if not pipeline.of(FetchedBatch):
                await stage.finds_memory_free()

    run(close, seed=seed)


@simulated
async def test_producer_that_is_closed_before_its_first_step_sends_nothing() -> None:
    """A shard may be called back right after it was begun."""
    source = ScriptedSource()
    async with a_producer(source) as (stage, producer, _):
        begin(producer)
        producer.tell(CloseReading())
        await asyncio.sleep(10)
        assert not source.opened
        assert not stage.events.of(TaskFailed)


@simulated
async def test_producer_reads_nothing_before_it_is_opened_and_nothing_without_room() -> None:
    """A Producer is born stopped, and demand alone makes it read."""
    source = ScriptedSource(some_records(3))
    async with a_producer(source) as (_, producer, pipeline):
        await asyncio.sleep(10)
        producer.tell(OpenReading(TRIM_HORIZON, READING, EPOCH))
        await asyncio.sleep(10)
        assert not source.opened
        assert not source.fetched
        producer.tell(PLENTY)
        await pipeline.hears(FetchedBatch)


@simulated
async def test_producer_reads_no_further_than_there_is_room_in_records() -> None:
    """Reading stops once the window is full and goes on by as much as is freed."""
    source = ScriptedSource(*(some_records(6, first=1 + 6 * n) for n in range(4)))
    async with a_producer(source) as (_, producer, pipeline):
        begin(producer, room=Room(10, 1000))
        await asyncio.sleep(30)
        assert len(numbers(pipeline)) == 12, "one reply may go over, none begins without room"
        producer.tell(Room(3, 0))
        await asyncio.sleep(30)
        assert len(numbers(pipeline)) == 18


@simulated
async def test_producer_reads_no_further_than_there_is_room_in_bytes() -> None:
    """The window counts bytes as well as records."""
    source = ScriptedSource(*(some_records(2, first=1 + 2 * n, size_bytes=50) for n in range(4)))
    async with a_producer(source) as (_, producer, pipeline):
        begin(producer, room=Room(1000, 150))
        await asyncio.sleep(30)
        assert len(numbers(pipeline)) == 4
        producer.tell(Room(0, 100))
        await asyncio.sleep(30)
        assert len(numbers(pipeline)) == 6


@simulated
async def test_producer_asks_no_more_than_five_times_a_second_when_records_never_end() -> None:
    """A busy shard is read back to back within its quota, in any window of a second."""
    source = ScriptedSource(*(some_records(1, first=n) for n in range(1, 41)))
    async with a_producer(source) as (_, producer, pipeline):
        begin(producer)
        await pipeline.hears(FetchedBatch, times=40)
        times = [at for at, _ in source.fetched[:40]]
        assert all(sixth - first > 1.0 for first, sixth in zip(times, times[5:], strict=False))
        assert times[-1] < 8.5, "the quota is used, not undercut"


@simulated
async def test_producer_pauses_for_five_seconds_when_a_reply_held_ten_megabytes() -> None:
    """The bytes of a reply are paid for at 2 MB a second before the next call."""
    source = ScriptedSource(some_records(10, size_bytes=1_000_000), some_records(1, first=11))
    async with a_producer(source) as (_, producer, pipeline):
        begin(producer)
        await pipeline.hears(FetchedBatch, times=2)
        first, second = (at for at, _ in source.fetched[:2])
        assert 5.0 <= second - first < 5.5


@simulated
async def test_producer_goes_on_after_the_last_received_record_when_its_iterator_expires() -> None:
    """An expired iterator is opened again after what was received, never from the start-up position."""
    expired = IteratorExpiredError("GetRecords", SHARD, "ExpiredIteratorException")
    source = ScriptedSource(some_records(50), expired, some_records(5, first=51))
    async with a_producer(source) as (_, producer, pipeline):
        begin(producer)
        await pipeline.hears(FetchedBatch, times=2)
        assert source.opened == [TRIM_HORIZON, Position(PositionKind.AFTER, 50)]
        assert numbers(pipeline) == list(range(1, 56))


@simulated
async def test_producer_adopts_every_next_iterator_when_replies_are_empty(log: LogCapture) -> None:
    """Twenty silent minutes expire no iterator, and the record after them arrives."""
    fleet = Fleet(shards=1)
    source = KinesisSource(KinesisClient(fleet.model, fleet.clock), STREAM, clock=fleet.clock)
    async with a_producer(source) as (_, producer, pipeline):
        begin(producer)
        await asyncio.sleep(20 * 60)
        [payload] = fleet.put(1)
        batch = await pipeline.hears(FetchedBatch)
        assert [record.data for record in batch.records] == [payload]
        assert not [entry for entry in log.entries if entry["event"] == "kcl_py.fetch.iterator_expired"]


@simulated
async def test_producer_goes_on_at_once_when_replies_are_empty_but_behind() -> None:
    """Empty replies with a lag are no end and no reason to idle; the data behind a hundred of them arrives."""
    empty = [some_reply([], after=f"hole-{n}", lag_ms=1000 - n) for n in range(100)]
    source = ScriptedSource(*empty, some_records(2))
    async with a_producer(source) as (_, producer, pipeline):
        begin(producer)
        await pipeline.hears(FetchedBatch)
        assert source.fetched[100][0] < 100 / 5 + 0.5, "nothing but the quota holds it up"
        assert [told.lag_ms for told in pipeline.of(CaughtUp)[:100]] == [1000 - n for n in range(100)]
        assert not pipeline.of(EndSeen)


@simulated
async def test_producer_asks_once_per_idle_time_when_the_shard_is_quiet() -> None:
    """At the tip of a quiet shard there is one call each ``fetch.idle_s``."""
    source = ScriptedSource()
    async with a_producer(source, fetch={"idle_s": 2.0}) as (_, producer, _pipeline):
        begin(producer)
        await asyncio.sleep(20)
        assert 9 <= len(source.fetched) <= 11


@simulated
async def test_producer_backs_off_with_doubling_pauses_when_it_is_throttled(log: LogCapture) -> None:
    """Throttling slows reading down to a longest pause, is logged, and is forgotten after a success."""
    throttled = ThrottledError("GetRecords", SHARD, "ProvisionedThroughputExceededException")
    source = ScriptedSource(*[throttled] * 8, some_records(1), throttled, some_records(1, first=2))
    async with a_producer(source) as (_, producer, pipeline):
        begin(producer)
        await pipeline.hears(FetchedBatch, times=2, within_s=100)
        pauses = [after - before for (before, _), (after, _) in pairwise(source.fetched)]
        for index, pause in enumerate(pauses[:8]):
            ceiling = min(BACKOFF_S * 2**index, BACKOFF_MAX_S)
            assert ceiling / 2 <= pause <= ceiling + 0.1
        assert pauses[9] <= BACKOFF_S + 0.1
        assert numbers(pipeline) == [1, 2]
        throttles = [entry for entry in log.entries if entry["event"] == "kcl_py.fetch.throttled"]
        assert [(entry["shard_id"], entry["epoch"]) for entry in throttles] == [(SHARD, EPOCH)] * 9


@simulated
async def test_producer_tries_again_with_the_same_iterator_when_a_read_has_no_answer() -> None:
    """A read is repeatable: after a broken connection nothing is skipped."""
    broken = RequestError("GetRecords", SHARD, "ConnectionClosedError")
    source = ScriptedSource(some_records(2), broken, some_records(2, first=3))
    async with a_producer(source) as (_, producer, pipeline):
        begin(producer)
        await pipeline.hears(FetchedBatch, times=2)
        assert source.fetched[1][1] == source.fetched[2][1]
        assert len(source.opened) == 1
        assert numbers(pipeline) == [1, 2, 3, 4]


@simulated
async def test_producer_takes_a_shard_for_ended_when_it_has_aged_out_of_the_stream() -> None:
    """S3-55: a shard that is gone while its stream is there has nothing left to read, so its children can follow."""
    source = ScriptedSource()
    source.shards = ()
    source.on_open = MissingError("GetShardIterator", SHARD, "ResourceNotFoundException")
    async with a_producer(source) as (_, producer, pipeline):
        begin(producer)
        assert await pipeline.hears(EndSeen) == EndSeen((), READING)


@simulated
async def test_producer_never_takes_a_shard_for_ended_that_the_stream_still_lists() -> None:
    """A passing "not found" must not complete a shard with records in it: it is tried again, with pauses."""
    source = ScriptedSource(some_records(3))
    source.on_open = MissingError("GetShardIterator", SHARD, "ResourceNotFoundException")
    async with a_producer(source) as (_, producer, pipeline):
        begin(producer)
        await asyncio.sleep(20)
        assert not pipeline.heard
        assert 3 <= len(source.opened) <= 10
        source.on_open = None
        await pipeline.hears(FetchedBatch)
        assert numbers(pipeline) == [1, 2, 3]


@simulated
async def test_producer_fails_when_the_whole_stream_is_gone() -> None:
    """A deleted stream is no end of a shard: completing it would make a new stream's table wrong."""
    source = ScriptedSource()
    source.on_open = source.on_list = MissingError("any", STREAM, "ResourceNotFoundException")
    async with a_producer(source) as (stage, producer, pipeline):
        begin(producer)
        ended = await stage.events.wait_for(Ended, "producer")
        assert isinstance(ended.error, MissingError)
        assert not pipeline.of(EndSeen)


@simulated
async def test_producer_fails_when_a_read_is_refused_for_good() -> None:
    """A read that cannot succeed ends the Producer, for its supervisor to see, instead of its reading alone."""
    source = ScriptedSource(some_records(1), RejectedError("GetRecords", SHARD, "AccessDeniedException"))
    async with a_producer(source) as (stage, producer, _):
        begin(producer)
        ended = await stage.events.wait_for(Ended, "producer")
        assert isinstance(ended.error, RejectedError)


@simulated
async def test_producer_passes_records_on_before_the_end_when_both_come_together() -> None:
    """The last records of a shard go first, whether the end comes with them or in a reply of its own."""
    source = ScriptedSource(some_reply(some_records(3), is_end=True))
    async with a_producer(source) as (_, producer, pipeline):
        begin(producer)
        await pipeline.hears(EndSeen)
        assert [type(message) for message in pipeline.heard] == [FetchedBatch, EndSeen]
        await asyncio.sleep(30)
        assert len(source.fetched) == 1, "nothing is read beyond the end"


@simulated
async def test_producer_drops_the_reply_when_reading_was_closed_meanwhile() -> None:
    """What was on its way when the Pipeline drained reaches nobody, and gives its bytes back."""
    source = ScriptedSource(some_records(3, size_bytes=100))
    source.latency_s = 1.0
    async with a_producer(source, fetch={"budget_bytes": 1}) as (stage, producer, pipeline):
        begin(producer)
        await until(lambda: source.fetched)
        producer.tell(CloseReading())
        await asyncio.sleep(30)
        assert not pipeline.heard
        assert len(source.fetched) == 1
        await stage.finds_memory_free()


@simulated
async def test_producer_waits_with_its_request_when_the_memory_of_the_worker_is_used_up() -> None:
    """A fetch is sent when there is room for it in what all shards share."""
    source = ScriptedSource(some_records(1))
    async with a_producer(source, fetch={"budget_bytes": 2_000_000}) as (stage, producer, pipeline):
        other = stage.worker.budget.account(lambda: None)
        await other.turn()
        begin(producer)
        await asyncio.sleep(30)
        assert not source.fetched
        other.settle(1_999_999)
        await pipeline.hears(FetchedBatch)


@simulated
async def test_producer_takes_no_memory_while_its_quota_makes_it_wait() -> None:
    """The five seconds after a reply of 10 MB are no reason for other shards to wait, too."""
    source = ScriptedSource(some_records(10, size_bytes=1_000_000), some_records(1, first=11))
    async with a_stage(source=source, fetch={"budget_bytes": 1}) as stage:
        pipeline = await stage.neighbour("pipeline")
        account = stage.worker.budget.account(lambda: None)
        producer = await stage.play("producer", lambda: Producer(stage.worker, SHARD, pipeline.ref, account))
        begin(producer)
        await pipeline.hears(FetchedBatch)
        account.reset()
        await asyncio.sleep(1)
        await stage.finds_memory_free()
        await pipeline.hears(FetchedBatch, times=2)


@simulated
async def test_producer_asks_for_no_more_records_than_are_configured() -> None:
    """``fetch.max_records`` bounds one read; the rest comes with the next ones."""
    fleet = Fleet(shards=1)
    fleet.put(25)
    source = KinesisSource(KinesisClient(fleet.model, fleet.clock), STREAM, clock=fleet.clock)
    async with a_producer(source, fetch={"max_records": 10}) as (_, producer, pipeline):
        begin(producer)
        await pipeline.hears(FetchedBatch, times=3)
        assert [len(batch.records) for batch in pipeline.of(FetchedBatch)] == [10, 10, 5]


@simulated
async def test_producer_stops_reading_when_the_oldest_record_is_unfinished_for_too_long() -> None:
    """``delivery.max_ahead.seconds``: reading ahead of one slow record has an end in time, too."""
    source = ScriptedSource(*(some_records(1, first=n) for n in range(1, 1000)))
    async with a_producer(source, delivery={"max_ahead": {"seconds": 10}}) as (_, producer, pipeline):
        begin(producer)
        await asyncio.sleep(60)
        before = len(numbers(pipeline))
        assert before <= 52
        producer.tell(Room(before, before))
        await asyncio.sleep(5)
        assert len(numbers(pipeline)) > before
