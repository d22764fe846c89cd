"""The ledger against a naive model: the unbroken run of finished records, for any order of finishing."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as some

from kcl_py.delivery.buffer import Cut
from kcl_py.delivery.lag import Lag
from kcl_py.delivery.ledger import Ledger, Range
from kcl_py.records import Record, SequenceNumber


def at(number: int) -> SequenceNumber:
    return SequenceNumber(number)


def a_cut(first: int, last: int, size_bytes: int = 2) -> Cut:
    """Records with the numbers ``first`` to ``last``."""
    records = [Record(str(number), b"x" * size_bytes, "k") for number in range(first, last + 1)]
    return Cut(records, size_bytes * len(records), Lag(0, 0.0))


def opened(ledger: Ledger, *sizes: int) -> list[Range]:
    """Take in ranges of these sizes, with numbers from 1 on."""
    ranges, first = [], 1
    for size in sizes:
        ranges.append(ledger.open(a_cut(first, first + size - 1)))
        first += size
    return ranges


_sizes = some.lists(some.integers(1, 6), min_size=1, max_size=10)
_chance = some.integers(0, 2**32).map(random.Random)


@given(sizes=_sizes, chance=_chance)
def test_prefix_is_the_end_of_the_unbroken_run_for_any_order_of_finishing(
    sizes: list[int], chance: random.Random
) -> None:
    """B-05: records, whole ranges and the user's word, in any order and repeatedly."""
    ledger = Ledger()
    ranges = opened(ledger, *sizes)
    places = [(entry, index) for entry in ranges for index in range(len(entry.records))]
    finished, told = [False] * len(places), [0, 0]
    for place in chance.sample(range(len(places)), len(places)):
        entry, index = places[place]
        match chance.choice(["record", "record", "record", "whole", "to"]):
            case "record":
                ledger.finish_record(entry, index)
                finished[place] = True
            case "whole":
                ledger.finish(entry)
                for each, (other, _) in enumerate(places):
                    finished[each] |= other is entry
            case _:
                ledger.finish_to(entry.records[index].position)
                finished[: place + 1] = [True] * (place + 1)
        unbroken = next((each for each, is_finished in enumerate(finished) if not is_finished), len(finished))
        assert ledger.prefix == (at(unbroken) if unbroken else None)
        assert ledger.finished_records == unbroken
        if chance.random() < 0.5:
            records, size_bytes = ledger.news()
            told = [told[0] + records, told[1] + size_bytes]
            assert told == [unbroken, 2 * unbroken]
        _, records_held, bytes_held = (sum(values) for values in zip(*ledger.held(), strict=True))
        assert [told[0] + records_held, told[1] + bytes_held] == [len(places), 2 * len(places)]
        left = [each for each, is_finished in enumerate(finished) if not is_finished]
        head = ledger.head
        assert (head is None) == (not left)
        if head is not None:
            assert places[left[0]] == (head, head.next)
        for entry in {each for each, _ in places}:
            mine = [index for each, (other, index) in enumerate(places) if other is entry and not finished[each]]
            assert entry.left() == mine


@given(sizes=_sizes, chance=_chance)
def test_what_was_handed_over_last_is_known_however_records_finish(sizes: list[int], chance: random.Random) -> None:
    """A new owner is told how far the records went; a record that comes again changes nothing about that."""
    ledger = Ledger()
    places = [(entry, index) for entry in opened(ledger, *sizes) for index in range(len(entry.records))]
    furthest = 0
    waiting = list(range(len(places)))
    while waiting:
        place = waiting.pop(chance.randrange(min(3, len(waiting))))
        ledger.deliver(*places[place])
        furthest = max(furthest, place + 1)
        assert ledger.delivered == at(furthest)
        if chance.random() < 0.7:
            ledger.finish_record(*places[place])
            assert ledger.delivered == at(furthest)


def test_prefix_begins_at_the_stored_checkpoint() -> None:
    """What an earlier ownership finished stays finished."""
    ledger = Ledger(at(7))
    assert (ledger.prefix, ledger.delivered, ledger.news()) == (at(7), at(7), (0, 0))


def test_records_are_taken_in_in_sequence_order_only() -> None:
    """Anything at or before what was taken in is a mistake of the caller."""
    ledger = Ledger(at(7))
    ledger.open(a_cut(8, 9))
    with pytest.raises(ValueError, match="sequence order"):
        ledger.open(a_cut(9, 12))


def test_records_that_nobody_was_handed_can_be_dropped_and_taken_in_again() -> None:
    """To make room for other shards; ranges of which one record is in hand stay whole."""
    ledger = Ledger()
    first, second, third = opened(ledger, 2, 2, 2)
    ledger.deliver(second, 0)
    assert ledger.drop_ahead() == {third}
    assert not ledger.has(at(5))
    again = ledger.open(a_cut(5, 6))
    for entry in (first, second, again):
        ledger.finish(entry)
    assert (ledger.prefix, ledger.finished_records) == (at(6), 6)


def test_dropping_before_anything_was_handed_over_leaves_the_prefix() -> None:
    """All of it can be read again, from the end of what is finished."""
    ledger = Ledger(at(7))
    entry = ledger.open(a_cut(8, 9))
    assert ledger.drop_ahead() == {entry}
    ledger.open(a_cut(8, 9))
    assert (ledger.prefix, ledger.delivered) == (at(7), at(7))


def test_records_are_known_by_their_positions_while_they_are_not_finished() -> None:
    """A position between two of them is none of theirs."""
    ledger = Ledger()
    ledger.open(Cut([Record("10", b"", "k"), Record("20", b"", "k")], 0, Lag(0, 0.0)))
    assert [number for number in (5, 10, 15, 20, 25) if ledger.has(at(number))] == [10, 20]


def test_bytes_of_a_range_are_told_once_though_its_reply_was_larger() -> None:
    """A reply that repeated records counts with all its bytes; they come back when its range ends."""
    ledger = Ledger()
    entry = ledger.open(Cut([Record("1", b"ab", "k"), Record("2", b"cd", "k")], 9, Lag(0, 0.0)))
    ledger.finish_record(entry, 0)
    assert ledger.news() == (1, 2)
    ledger.finish_record(entry, 1)
    assert ledger.news() == (1, 7)


def test_sub_sequence_numbers_are_positions_of_their_own() -> None:
    """Records that share a number are told apart by their index."""
    ledger = Ledger()
    records = [Record("5", b"", "k", sub_sequence_number=sub) for sub in range(3)]
    entry = ledger.open(Cut(records, 0, Lag(0, 0.0)))
    ledger.finish_record(entry, 0)
    ledger.finish_record(entry, 1)
    assert ledger.prefix == SequenceNumber(5, 1)
