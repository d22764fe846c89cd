"""What a Pipeline does with records that become dead letters: finished only once they are stored."""

import asyncio
from dataclasses import dataclass, field

import pytest
from structlog.testing import LogCapture

from kcl_py import RecordProcessor, Reject, Retry
from kcl_py.dead_letters import DeadLetter, DeadLetterError
from kcl_py.outcomes import BatchOutcome
from kcl_py.processor import Checkpointer
from kcl_py.records import RecordBatch
from kcl_py.tree.messages import Drain, Drained, Halted, Progress, Why
from tests.kcl_py.tree.lanes import Desk, at, keyed
from tests.kcl_py.tree.pipelines import Failing, Played, a_pipeline
from tests.kcl_py.tree.stage import ME, SHARD, some_records, until
from tests.simloop import simulated

LETTERS = {"on_failure": "dead_letter", "dead_letter": "file:letters", "retries": 0}


@dataclass
class Letterbox:
    """Keeps letters, after as many failures as it is told to have."""

    failures: list[Exception] = field(default_factory=list)
    takes_s: float = 0.0
    stored: list[DeadLetter] = field(default_factory=list)

    async def store(self, letter: DeadLetter) -> None:
        await asyncio.sleep(self.takes_s)
        if self.failures:
            raise self.failures.pop(0)
        self.stored.append(letter)


def prefix(played: Played) -> int:
    """How far the shard is finished."""
    heard = played.lease.of(Progress)
    return heard[-1].prefix.value if heard and heard[-1].prefix else 0


@simulated
async def test_record_is_finished_once_its_letter_is_stored(log: LogCapture) -> None:
    """S2-15: with the record, where it was, why and how often it was tried."""
    desk, box = Desk(answers={"1": [ValueError("no")] * 2}), Letterbox(takes_s=5.0)
    delivery = LETTERS | {"retries": 1, "backoff_s": 0.01}
    async with a_pipeline(keyed("aab"), processor=desk.processor(), dead_letters=box, delivery=delivery) as played:
        played.begin()
        await asyncio.sleep(3.0)
        assert (prefix(played), desk.done) == (0, ["3"])
        await until(lambda: prefix(played) == 3)
        (letter,) = box.stored
        assert (letter.record.sequence_number, letter.record.redelivery) == ("1", None)
        assert (letter.shard_id, letter.attempts, letter.reason, letter.worker) == (SHARD, 2, "ValueError: no", ME)
        assert [entry["position"] for entry in log.entries if entry["event"] == "kcl_py.record.dead_lettered"] == ["1"]


@pytest.mark.parametrize("error", [DeadLetterError("no answer", True), ConnectionError("of the user's own")])
@simulated
async def test_letter_is_tried_again_until_it_is_stored(error: Exception, log: LogCapture) -> None:
    """An outage of the destination holds up the record; nobody has to resume anything afterwards."""
    desk, box = Desk(answers={"1": [Reject("bad")]}), Letterbox(failures=[error] * 10)
    async with a_pipeline(keyed("aa"), processor=desk.processor(), dead_letters=box, delivery=LETTERS) as played:
        played.begin()
        await until(lambda: prefix(played) == 2, within_s=300.0)
        failed = [entry for entry in log.entries if entry["event"] == "kcl_py.record.dead_letter_failed"]
        assert len(failed) == 10
        assert max(entry["retry_in_s"] for entry in failed) <= 30.0
        assert len(box.stored) == 1


@simulated
async def test_letter_that_can_never_be_stored_halts_the_shard() -> None:
    """The record stays where it is."""
    desk, box = Desk(answers={"1": [Reject("bad")]}), Letterbox(failures=[DeadLetterError("too large")])
    async with a_pipeline(keyed("aa"), processor=desk.processor(), dead_letters=box, delivery=LETTERS) as played:
        played.begin()
        halted = await played.lease.hears(Halted)
        assert (halted.halt.position, halted.halt.error) == ("1", "DeadLetterError: too large")
        assert prefix(played) == 0


@simulated
async def test_letter_without_a_destination_halts_the_shard() -> None:
    """``handle_failed`` may ask for what is not configured."""
    desk = Desk(answers={"1": [Reject("bad")]}, policy="dead_letter")
    async with a_pipeline(keyed("a"), processor=desk.processor()) as played:
        played.begin()
        halted = await played.lease.hears(Halted)
        assert halted.halt.error == "no delivery.dead_letter is set for what handle_failed sends there: bad"


@simulated
async def test_every_record_of_a_batch_that_raised_becomes_a_letter() -> None:
    """And the batch is finished."""
    box = Letterbox()
    async with a_pipeline(some_records(3), work=Failing(1), dead_letters=box, delivery=LETTERS) as played:
        played.begin()
        await until(lambda: prefix(played) == 3)
        assert [letter.record.sequence_number for letter in box.stored] == ["1", "2", "3"]


@simulated
async def test_records_that_a_mapping_names_become_letters_and_the_others_count() -> None:
    """The good ones are not stored."""
    box = Letterbox()

    class Picky(RecordProcessor):
        async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> BatchOutcome:
            return {batch.records[1]: Reject("bad")}

    async with a_pipeline(some_records(3), processor=Picky, dead_letters=box, delivery=LETTERS) as played:
        played.begin()
        await until(lambda: prefix(played) == 3)
        assert [letter.record.sequence_number for letter in box.stored] == ["2"]


@simulated
async def test_record_that_was_put_off_waits_also_where_a_letter_had_to_wait_first() -> None:
    """The letter is stored within a second, and the other record of the batch was put off for a minute."""
    box, sizes = Letterbox(failures=[ConnectionError("no answer")]), []

    class Picky(RecordProcessor):
        async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> BatchOutcome:
            sizes.append(len(batch.records))
            return None if batch.redelivery else {batch.records[0]: Reject("bad"), batch.records[1]: Retry(60.0)}

    delivery = LETTERS | {"retries": 3, "backoff_s": 0.1}
    async with a_pipeline(some_records(2), processor=Picky, dead_letters=box, delivery=delivery) as played:
        played.begin()
        await asyncio.sleep(59.0)
        assert (sizes, len(box.stored), prefix(played)) == ([2], 1, 1)
        await until(lambda: prefix(played) == 2, within_s=2.0)
        assert sizes == [2, 1]


@simulated
async def test_batch_comes_not_again_once_a_letter_of_it_halts_the_shard() -> None:
    """The letter had to wait, and then the destination says that it will never take it."""
    box, sizes = Letterbox(failures=[DeadLetterError("no answer", True), DeadLetterError("no such bucket")]), []

    class Picky(RecordProcessor):
        async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> BatchOutcome:
            sizes.append(len(batch.records))
            return {batch.records[0]: Reject("bad"), batch.records[1]: ValueError("busy")}

    delivery = LETTERS | {"retries": 3, "backoff_s": 0.1}
    async with a_pipeline(some_records(2), processor=Picky, dead_letters=box, delivery=delivery) as played:
        played.begin()
        await played.lease.hears(Halted, within_s=60.0)
        await asyncio.sleep(60.0)
        assert sizes == [2]


@simulated
async def test_drain_cuts_off_a_letter_that_takes_too_long() -> None:
    """Its record is not finished, and comes again."""
    desk, box = Desk(answers={"1": [Reject("bad")]}), Letterbox(takes_s=1000.0)
    async with a_pipeline(keyed("ab"), processor=desk.processor(), dead_letters=box, delivery=LETTERS) as played:
        played.begin()
        await until(lambda: desk.done == ["2"])
        await asyncio.sleep(1.0)
        played.ref.tell(Drain(Why.STOP, played.stage.clock.monotonic() + 2.0))
        drained = await played.lease.hears(Drained)
        assert drained == Drained(None, at(2), 1)


@simulated
async def test_stop_does_not_wait_for_a_destination_that_does_not_answer() -> None:
    """What waits for its letter is dropped unmarked at once, as all that is put off."""
    desk = Desk(answers={"1": [Reject("bad")]})
    box = Letterbox(failures=[DeadLetterError("no answer", True)] * 100)
    async with a_pipeline(keyed("ab"), processor=desk.processor(), dead_letters=box, delivery=LETTERS) as played:
        played.begin()
        await asyncio.sleep(60.0)
        stopped_at = played.stage.clock.monotonic()
        played.ref.tell(Drain(Why.STOP, stopped_at + 100.0))
        drained = await played.lease.hears(Drained)
        assert played.stage.clock.monotonic() - stopped_at < 1.0
        assert drained == Drained(None, at(2), 0)
        assert len(desk.failures) == 1
