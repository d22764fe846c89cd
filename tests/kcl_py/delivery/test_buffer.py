"""Records read ahead: cut into batches, dropped when repeated, and never too many."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from kcl_py.delivery.ahead import Ahead
from kcl_py.delivery.buffer import Buffer, Cut, after
from kcl_py.delivery.lag import Lag
from kcl_py.records import Record, SequenceNumber


def records(*sizes: int, first: int = 1) -> list[Record]:
    return [
        Record(sequence_number=str(first + index), data=b"x" * size, partition_key="k")
        for index, size in enumerate(sizes)
    ]


def payload_bytes(records: list[Record]) -> int:
    return sum(len(record.data) for record in records)


@given(
    fetches=some.lists(some.lists(some.integers(0, 9), min_size=1, max_size=8), min_size=1, max_size=5),
    max_records=some.integers(1, 6),
    max_bytes=some.integers(1, 20),
)
def test_batches_hold_every_record_once_in_order_within_both_limits(
    fetches: list[list[int]], max_records: int, max_bytes: int
) -> None:
    """A batch has a record at least, and is above a limit only if that one record is."""
    buffer, put = Buffer(), list[Record]()
    for sizes in fetches:
        fetched = records(*sizes, first=len(put) + 1)
        put += fetched
        buffer.add(Cut(fetched, payload_bytes(fetched), Lag(0, 0.0)))
    taken, taken_bytes = list[Record](), 0
    while buffer:
        cut = buffer.take(max_records=max_records, max_bytes=max_bytes)
        assert 1 <= len(cut.records) <= max_records
        assert payload_bytes(cut.records) <= max_bytes or len(cut.records) == 1
        taken += cut.records
        taken_bytes += cut.size_bytes
    assert taken == put
    assert taken_bytes == payload_bytes(put)


def test_clear_tells_how_many_bytes_it_dropped() -> None:
    """What was booked for them is given back by this number."""
    buffer = Buffer()
    buffer.add(Cut(records(5, 5), 10, Lag(0, 0.0)))
    buffer.add(Cut(records(7, first=3), 7, Lag(0, 0.0)))
    buffer.take(max_records=1, max_bytes=100)
    assert buffer.clear() == 12
    assert not buffer
    assert buffer.clear() == 0


@pytest.mark.parametrize(
    ("position", "left"),
    [
        (None, [8, 9, 10, 11]),
        (SequenceNumber(7), [8, 9, 10, 11]),
        (SequenceNumber(8), [9, 10, 11]),
        (SequenceNumber(9), [10, 11]),
        (SequenceNumber(10, 5), [11]),
        (SequenceNumber(11), []),
        (SequenceNumber(100), []),
    ],
)
def test_records_at_or_before_a_position_are_left_out(position: SequenceNumber | None, left: list[int]) -> None:
    """B-20: by number, not by text, and in O(log n)."""
    assert [int(record.sequence_number) for record in after(records(1, 1, 1, 1, first=8), position)] == left


def test_reading_is_too_far_ahead_when_its_oldest_record_has_waited_too_long() -> None:
    """Only records that are not finished count, the oldest of them."""
    ahead = Ahead(limit_s=10.0)
    assert not ahead.is_too_old(1000.0)
    ahead.add(3, now=0.0)
    ahead.add(2, now=8.0)
    assert not ahead.is_too_old(10.0)
    assert ahead.is_too_old(10.1)
    ahead.free(2)
    assert ahead.is_too_old(10.1), "one of the first three is left"
    ahead.free(1)
    assert not ahead.is_too_old(10.1)
    assert ahead.is_too_old(18.1)
    ahead.free(99)
    assert not ahead.is_too_old(1e9)
    ahead.add(1, now=0.0)
    ahead.clear()
    assert not ahead.is_too_old(1e9)
