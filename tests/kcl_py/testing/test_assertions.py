"""What a run says about where the payloads of its records have got to."""

from typing import Any

import pytest

from kcl_py import Checkpointer, RecordBatch, RecordProcessor
from kcl_py.testing import Run, record, run_processor

pytestmark = pytest.mark.asyncio


class Listens(RecordProcessor):
    """Does nothing with what it hears."""

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None: ...


async def a_run() -> Run[Listens]:
    """Return one that has acknowledged the first three of four records, of two keys."""
    records = [record("a1", key="a"), record("b1", key="b"), record("a2", key="a"), record("b2", key="b")]
    return await run_processor(Listens, records, batch_size=1, stop_at="a2")


async def test_nothing_is_lost_while_all_that_is_acknowledged_was_seen() -> None:
    """In whatever order and however often; the rest comes again."""
    run = await a_run()
    run.assert_nothing_lost([b"b1", b"a2", b"a1", b"a1"])
    run.assert_nothing_lost({b"a1", b"a2", b"b1", b"b2", b"other"})


async def test_lost_records_are_named_by_their_place() -> None:
    """Not by their data."""
    run = await a_run()
    [shard_id] = run.records
    places = [f"{shard_id}/{run.records[shard_id][index].sequence_number}" for index in (0, 2)]
    with pytest.raises(AssertionError) as raised:
        run.assert_nothing_lost([b"b1", b"b2"])
    assert str(raised.value) == f"2 of 3 acknowledged records are lost: {', '.join(places)}"


@pytest.mark.parametrize("seen", ["a1 b1 a2", "b1 a1 b2 a2", "a1 a1 a2 a1 a2", "a2", "x b2 y a1 a2", ""])
async def test_keys_are_in_order_whatever_comes_between_and_again(seen: str) -> None:
    """Only the first time counts, and each key stands for itself."""
    (await a_run()).assert_key_order(seen.encode().split())


async def test_key_out_of_order_is_told_by_the_places_of_two_records() -> None:
    """The later one that came first, and the one that came after it."""
    run = await a_run()
    [records] = run.records.values()
    with pytest.raises(AssertionError, match="two records of one partition key came out of order") as raised:
        run.assert_key_order([b"b1", b"a2", b"b2", b"a1"])
    assert str(raised.value).index(records[2].sequence_number) < str(raised.value).index(records[0].sequence_number)


async def test_payloads_that_were_seen_may_be_text_as_those_that_are_put() -> None:
    """A text is never on the stream, so an order of texts would never be wrong."""
    run = await run_processor(Listens, [record("a", key="x"), record("b", key="x")])
    run.assert_nothing_lost(["a", b"b"])
    run.assert_key_order(["a", "b"])
    with pytest.raises(AssertionError, match="out of order"):
        run.assert_key_order(["b", "a"])
    with pytest.raises(AssertionError, match="1 of 2 acknowledged records are lost"):
        run.assert_nothing_lost(["a"])


@pytest.mark.parametrize("seen", ["ab", b"ab", [("a", 1)], [1]])
async def test_what_are_no_payloads_cannot_be_checked(seen: Any) -> None:
    """Rows and records would always pass, or never."""
    run = await run_processor(Listens, ["a", "b"])
    with pytest.raises(TypeError, match=r"^cannot check what is lost: expected a (list of )?payload"):
        run.assert_nothing_lost(seen)
    with pytest.raises(TypeError, match=r"^cannot check the order of keys: expected a (list of )?payload"):
        run.assert_key_order(seen)
