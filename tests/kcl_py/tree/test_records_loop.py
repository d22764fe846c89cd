"""Loops over records in a program of one's own: what counts as done, and what comes again."""

from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import pairwise
from typing import Any

import anyio
import pytest
from structlog.testing import LogCapture

from actors.testing import settle
from kcl_py import KclError, Record, RecordProcessor, Records, Reject, Retry, Stream
from kcl_py.config import Config
from kcl_py.offers import Offers
from kcl_py.outcomes import Verdict
from kcl_py.testing import FakeStream, record

pytestmark = pytest.mark.asyncio
GRACE_S = 20.0


def a_stream(count: int, *, keys: int = 5, shards: int = 1) -> FakeStream:
    """Return a stream with records that tell their number."""
    stream = FakeStream(shards=shards)
    stream.put(*[record(str(number), key=f"k{number % keys}") for number in range(count)])
    return stream


async def some(records: AsyncIterator[Record], count: int) -> list[Record]:
    """Take some and leave the loop."""
    taken: list[Record] = []
    async for each in records:
        taken.append(each)
        if len(taken) == count:
            break
    return taken


async def rest(stream: FakeStream, count: int) -> list[str]:
    """Return what the next worker gets, which stops after ``count``; its last record is done, too."""
    async with stream.clock.passing(), stream.worker(Records) as worker:
        records = await some(worker.records(), count)
        assert worker.ack(records[-1])
    return sorted((each.data.decode() for each in records), key=int)


def data(records: list[Record]) -> list[str]:
    return [each.data.decode() for each in records]


async def test_asking_for_the_next_record_says_that_the_one_before_is_done() -> None:
    """So the one at which the loop is left comes again, and what was never taken."""
    stream = a_stream(10)
    async with stream.clock.passing(), stream.worker(Records) as worker:
        assert data(await some(worker.records(), 4)) == ["0", "1", "2", "3"]
    assert await rest(stream, 7) == ["3", "4", "5", "6", "7", "8", "9"]
    assert stream.checkpoints == {"shardId-000000000000": stream.records("shardId-000000000000")[-1].sequence_number}


async def test_exception_in_the_loop_leaves_its_record_to_come_again() -> None:
    """It was not done."""
    stream = a_stream(3)

    async def fail() -> None:
        async with stream.clock.passing(), stream.worker(Records) as worker:
            async for each in worker.records():
                if each.data == b"1":
                    raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert await rest(stream, 2) == ["1", "2"]


async def test_record_at_which_a_loop_was_left_comes_again_in_the_next_one() -> None:
    """As after a failure: neither it, nor what is behind it, waits for a loop that is no more."""
    stream = a_stream(9, keys=3)
    seen: list[Record] = []
    async with stream.clock.passing(), stream.worker(Records) as worker:
        for wrong in (b"0", b"1", b"2", None):
            with suppress(ZeroDivisionError):
                async for each in worker.records():
                    seen.append(each)
                    if each.data == wrong and each.redelivery is None:
                        raise ZeroDivisionError
                    if len(seen) == 12:
                        break
    assert sorted(int(each.data) for each in seen) == [0, 0, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8]
    again = [each for each in seen if each.redelivery is not None]
    assert sorted(data(again)) == ["0", "1", "2"]


async def test_record_at_which_a_loop_was_left_can_be_acknowledged_before_the_next_one() -> None:
    """It is done then, and does not come again."""
    stream = a_stream(2, keys=1)
    async with stream.clock.passing(), stream.worker(Records) as worker:
        [first] = await some(worker.records(), 1)
        assert worker.ack(first)
        assert data(await some(worker.records(), 1)) == ["1"]


@pytest.mark.parametrize("has_stopped_before", [False, True])
async def test_leaving_the_loop_takes_none_of_the_grace(has_stopped_before: bool, log: LogCapture) -> None:
    """Nobody will be done with what waits, also where a stop has begun before and waits for it."""
    stream = a_stream(3)
    async with stream.clock.passing():
        async with stream.worker(Records, grace_s=GRACE_S) as worker:
            await some(worker.records(), 1)
            if has_stopped_before:
                worker.stop(GRACE_S)
                await stream.clock.sleep(1)
            left_at = stream.clock.monotonic()
        assert stream.clock.monotonic() - left_at < 1
    assert [entry["event"] for entry in log.entries].count("kcl_py.lease.released") == 1
    assert await rest(stream, 3) == ["0", "1", "2"]


async def test_explicit_loop_is_done_only_with_what_it_acknowledges() -> None:
    """In any order; the checkpoint is the end of the unbroken run."""
    stream = a_stream(5)
    async with stream.clock.passing(), stream.worker(Records) as worker:
        taken = await some(worker.records(ack="explicit"), 5)
        assert [worker.ack(each) for each in (taken[3], taken[0], taken[1])] == [True, True, True]
        await stream.clock.sleep(GRACE_S)
        assert stream.checkpoints == {"shardId-000000000000": taken[1].sequence_number}
    assert await rest(stream, 3) == ["2", "3", "4"]


async def test_acknowledging_twice_says_that_it_is_not_in_hand() -> None:
    """Nor is a record that the loop was never given."""
    stream = a_stream(1)
    async with stream.clock.passing(), stream.worker(Records) as worker:
        [taken] = await some(worker.records(ack="explicit"), 1)
        assert worker.ack(taken)
        assert not worker.ack(taken)
        assert not worker.nack(taken)
        assert not worker.ack(Record("1", b"", "k"))


async def test_loop_can_say_what_a_processor_can() -> None:
    """Retry, Reject or an exception; what comes again says so."""
    stream = a_stream(3)
    said: dict[bytes, Verdict] = {b"0": Retry(after_s=5, reason="later"), b"1": Reject("no"), b"2": ValueError("no")}
    again: dict[bytes, object] = {}
    async with stream.clock.passing(), stream.worker(Records, delivery={"on_failure": "skip"}) as worker:
        async for each in worker.records(ack="explicit"):
            if (verdict := said.pop(each.data, None)) is not None:
                assert worker.nack(each, verdict)
                continue
            again[each.data] = each.redelivery
            assert worker.ack(each)
            if len(again) == 2:
                break
    assert {data: getattr(each, "reason", None) for data, each in again.items()} == {
        b"0": "later",
        b"2": "ValueError: no",
    }


async def test_loop_holds_no_more_than_may_be_in_work() -> None:
    """Two of three, until one is acknowledged."""
    stream = a_stream(3)
    async with stream.worker(Records, delivery={"concurrency": 2}) as worker:
        records = worker.records(ack="explicit")
        taken: list[Record] = []

        async def take() -> None:
            while True:
                taken.append(await anext(records))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(take)
            for _ in range(5):
                await stream.clock.advance(1)
            assert data(taken) == ["0", "1"]
            worker.ack(taken[0])
            await stream.clock.advance(1)
            await settle()
            assert data(taken) == ["0", "1", "2"]
            tasks.cancel_scope.cancel()


async def test_records_of_a_key_come_in_order_from_shards_that_take_turns() -> None:
    """Whatever is asked for at once."""
    stream = a_stream(60, keys=7, shards=3)
    async with stream.clock.passing(), stream.worker(Records) as worker:
        taken = await some(worker.records(), 60)
    for key in {each.partition_key for each in taken}:
        numbers = [int(each.data) for each in taken if each.partition_key == key]
        assert all(before < after for before, after in pairwise(numbers))


async def test_two_loops_share_the_records_and_go_on_when_the_other_was_faster() -> None:
    """Each record goes to one of them."""
    stream = FakeStream()
    taken: list[str] = []

    async def take(worker: Stream) -> None:
        taken.extend([each.data.decode() async for each in worker.records()])

    async with stream.clock.passing(), stream.worker(Records) as worker, anyio.create_task_group() as tasks:
        tasks.start_soon(take, worker)
        tasks.start_soon(take, worker)
        for number in range(4):
            await stream.clock.sleep(5)
            stream.put(str(number))
        await stream.clock.sleep(5)
        worker.stop(GRACE_S)
    assert sorted(taken) == ["0", "1", "2", "3"]


async def test_record_that_is_gone_before_the_loop_takes_it_does_not_end_the_loop() -> None:
    """Its shard was lost; others go on."""
    offers = Offers()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(offers.arrived)
        await settle()
        with anyio.move_on_after(0):
            await offers.offer(Record("1", b"", "k"))
    assert offers.take() is None


async def test_stop_ends_the_loop_when_what_was_handed_over_is_done() -> None:
    """As it lets every processor finish."""
    stream = a_stream(10)
    taken: list[Record] = []
    async with stream.clock.passing(), stream.worker(Records) as worker:
        async for each in worker.records():
            taken.append(each)
            if len(taken) == 3:
                worker.stop(GRACE_S)
        outcome = await worker.wait()
    assert outcome.is_clean
    left = sorted(set(map(str, range(10))) - set(data(taken)), key=int)
    assert not left or await rest(stream, len(left)) == left


async def test_record_of_a_shard_that_was_lost_is_not_in_hand_any_more() -> None:
    """It is another worker's to be done with."""
    stream = a_stream(1)
    async with stream.clock.passing(), stream.worker(Records) as worker:
        [taken] = await some(worker.records(ack="explicit"), 1)
        stream.take_lease("shardId-000000000000")
        await stream.clock.sleep(30)
        assert not worker.ack(taken)


async def test_worker_that_fails_ends_the_loop_with_its_error() -> None:
    """As ``wait`` raises it."""
    stream = a_stream(0)
    async with stream.clock.passing(), stream.worker(Records) as worker:
        await stream.clock.sleep(1)
        stream.service.dynamodb.call("DeleteTable", {"TableName": "test-app"})
        with pytest.raises(KclError, match="lease table"):
            await some(worker.records(), 1)


class Fine(RecordProcessor):
    """Finds nothing wrong with records."""

    async def process(self, record: Record) -> None: ...


async def test_loop_over_a_stream_that_has_a_processor_or_is_closed_is_an_error() -> None:
    """It would never get a record."""
    stream = a_stream(1)
    closed: Any = Stream(stream.config(), processor=Records, clients=stream.clients())
    for call in (closed.records, lambda: closed.ack(Record("1", b"", "k"))):
        with pytest.raises(KclError, match="expected the Stream to be open, found it closed"):
            call()
    async with stream.worker(Fine) as worker:
        with pytest.raises(KclError, match=r"expected a Stream with processor=kcl_py\.Records, found another"):
            worker.records()
    wrong: Any = "later"
    async with stream.worker(Records) as worker:
        with pytest.raises(ValueError, match="expected ack to be implicit or explicit, found 'later'"):
            worker.records(ack=wrong)


async def test_records_can_be_named_where_a_processor_is() -> None:
    """In code and in files."""
    stream = a_stream(1)
    config: Config = stream.config(processor="kcl_py:Records")
    async with (
        stream.clock.passing(),
        Stream(config, clients=stream.clients(config), clock=stream.clock) as worker,
    ):
        assert data(await some(worker.records(), 1)) == ["0"]
