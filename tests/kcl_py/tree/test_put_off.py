"""What is put off until a time comes neither sooner nor never, whatever happens to the shard meanwhile."""

import asyncio
from typing import ClassVar

import pytest

from kcl_py import Batched, Checkpointer, Record, RecordBatch, RecordProcessor, Reject, Retry, ToBatch
from kcl_py.batchers import Batcher
from kcl_py.dead_letters import DeadLetter, DeadLetterError
from kcl_py.leases.row import Later, LeaseRow, Native
from kcl_py.outcomes import BatchOutcome
from kcl_py.tree.messages import DropAhead, Progress
from kcl_py.tree.steering import Pause
from tests.kcl_py.tree.lanes import Desk, keyed
from tests.kcl_py.tree.pipelines import Played, a_pipeline
from tests.kcl_py.tree.stage import SHARD, some_records, until
from tests.simloop import simulated

PUT_OFF_S = 60.0


def prefix(played: Played) -> int:
    """How far the shard is finished, as the Lease has heard it."""
    heard = played.lease.of(Progress)
    return heard[-1].prefix.value if heard and heard[-1].prefix else 0


def put_off(played: Played) -> list[str]:
    """What is put off, as the Lease has heard it."""
    return [each.sequence_number for each in played.lease.of(Progress)[-1].later]


class SlowPlace:
    """Stores a letter when it comes for the second time."""

    def __init__(self) -> None:
        self.tries = 0

    async def store(self, letter: DeadLetter) -> None:
        self.tries += 1
        if self.tries == 1:
            raise DeadLetterError("not yet", retryable=True)


@pytest.mark.parametrize("form", ["process_records", "handle_batch"])
@simulated
async def test_record_that_is_put_off_waits_its_time_though_another_waits_for_its_letter(form: str) -> None:
    """Of one batch: the letter is stored after a second try, and the other record is due as it was before."""
    at: list[tuple[int, float]] = []

    def answer(records: list[Record]) -> BatchOutcome:
        at.extend((int(record.sequence_number), asyncio.get_running_loop().time()) for record in records)
        return {records[0]: Reject("no"), records[1]: Retry(after_s=PUT_OFF_S)} if len(records) == 2 else None

    class Whole(RecordProcessor):
        async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> BatchOutcome:
            return answer(batch.records)

    class Batching(RecordProcessor):
        batchers: ClassVar = {"pairs": Batcher(max_records=2)}

        async def process(self, record: Record) -> ToBatch:
            return ToBatch("pairs")

        async def handle_batch(self, batch: Batched) -> BatchOutcome:
            return answer([record for record, _ in batch])

    place = SlowPlace()
    async with a_pipeline(
        keyed("ab"),
        processor=Whole if form == "process_records" else Batching,
        dead_letters=place,
        delivery={"on_failure": "dead_letter", "dead_letter": "file:letters", "backoff_s": 0.5},
    ) as played:
        played.begin()
        await until(lambda: prefix(played) == 2, within_s=2 * PUT_OFF_S)
        assert place.tries == 2
        assert [number for number, _ in at] == [1, 2, 2]
        assert at[2][1] - at[1][1] >= PUT_OFF_S - 0.1


@simulated
async def test_batch_that_is_checkpointed_while_it_is_put_off_does_not_fail_its_shard() -> None:
    """By work that goes on behind the hook: the batch is finished then, and does not come again."""

    class Late(RecordProcessor):
        async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> BatchOutcome:
            numbers.append([int(record.sequence_number) for record in batch])
            if len(numbers) > 1:
                return None

            async def store() -> None:
                await asyncio.sleep(1)
                await checkpointer.checkpoint(batch)

            tasks.append(asyncio.ensure_future(store()))
            return Retry(after_s=PUT_OFF_S)

    numbers: list[list[int]] = []
    tasks: list[asyncio.Future[None]] = []
    async with a_pipeline(some_records(2), [], [], some_records(1, first=3), processor=Late) as played:
        played.begin()
        await asyncio.sleep(5)
        played.ref.tell(Pause(1))
        await played.lease.hears(Progress)
        played.ref.tell(Pause(None))
        await until(lambda: prefix(played) >= 2, within_s=2 * PUT_OFF_S)
        assert numbers[0] == [1, 2]
        assert all(1 not in each for each in numbers[1:])
        tasks[0].cancel()


@pytest.mark.parametrize("what", ["pause", "memory"])
@simulated
async def test_what_an_owner_before_has_put_off_stays_so_when_it_is_read_again(what: str) -> None:
    """It was never handed over, so it is dropped with what was read ahead; it is due when it was."""
    desk, records = Desk(work_s={"1": 30.0}), keyed("abc")
    replies = [records[:1], records[1:2], *[[]] * 2, records[1:]]
    async with a_pipeline(*replies, processor=desk.processor(), delivery={"concurrency": 8}) as played:
        due_ms = int((played.stage.clock.time() + PUT_OFF_S) * 1000)
        played.begin(LeaseRow(SHARD, native=Native(later=(Later("2", due_ms),))))
        await asyncio.sleep(1.5)
        for message in (Pause(1), Pause(None)) if what == "pause" else (DropAhead(),):
            played.ref.tell(message)
            await asyncio.sleep(1.5)
            assert put_off(played) == ["2"]
        await until(lambda: prefix(played) == 3, within_s=2 * PUT_OFF_S)
        assert desk.spans["2"][0][0] >= PUT_OFF_S - 0.1


@simulated
async def test_what_an_owner_before_has_put_off_stays_in_the_row_until_it_is_read() -> None:
    """A worker that dies before it has come so far leaves it to the next."""
    desk = Desk()
    async with a_pipeline(keyed("a"), processor=desk.processor()) as played:
        due_ms = int((played.stage.clock.time() + PUT_OFF_S) * 1000)
        played.begin(LeaseRow(SHARD, native=Native(later=(Later("7", due_ms),))))
        await until(lambda: prefix(played) == 1)
        assert played.lease.of(Progress)[-1].later == (Later("7", due_ms),)


@pytest.mark.parametrize("size_bytes", [-1, 2.5, "12"])
def test_size_that_is_no_number_of_bytes_is_refused_where_it_is_said(size_bytes: int) -> None:
    """Not when the record is already among those of its batch."""
    with pytest.raises(
        ValueError, match=r"cannot give a record to batcher 's3' with this size_bytes: expected a whole"
    ):
        ToBatch("s3", size_bytes=size_bytes)
