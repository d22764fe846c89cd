"""The ledger: the unbroken run of finished records, for any order of finishing."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from kcl_py.delivery.ledger import Ledger
from kcl_py.records import SequenceNumber


def at(number: int) -> SequenceNumber:
    return SequenceNumber(number)


@given(sizes=some.lists(some.integers(1, 5), min_size=1, max_size=12), chance=some.randoms(use_true_random=False))
def test_prefix_is_the_end_of_the_unbroken_run_for_any_order_of_finishing(sizes: list[int], chance: object) -> None:
    """B-05: it never goes back, never covers an unfinished record, and ends at the last one."""
    ledger, entries, first = Ledger(), [], 1
    for size in sizes:
        entries.append(ledger.open(at(first), at(first + size - 1), size))
        first += size
    order = list(entries)
    chance.shuffle(order)  # type: ignore[attr-defined]
    for entry in order:
        before = ledger.prefix
        ledger.finish(entry)
        assert before is None or (ledger.prefix is not None and ledger.prefix >= before)
        unbroken = next((index for index, each in enumerate(entries) if not each.is_finished), len(entries))
        assert ledger.prefix == (entries[unbroken - 1].last if unbroken else None)
    assert ledger.finished_records == sum(sizes)


def test_prefix_begins_at_the_stored_checkpoint() -> None:
    """What an earlier ownership finished stays finished."""
    ledger = Ledger(at(7))
    assert (ledger.prefix, ledger.delivered) == (at(7), at(7))


def test_records_are_handed_over_in_sequence_order_only() -> None:
    """Anything at or before what was handed over is a mistake of the caller."""
    ledger = Ledger(at(7))
    ledger.open(at(8), at(9), 2)
    with pytest.raises(ValueError, match="sequence order"):
        ledger.open(at(9), at(12), 3)


@pytest.mark.parametrize(("position", "finished"), [(1, 0), (2, 0), (3, 3), (4, 3), (6, 6)])
def test_users_word_moves_the_prefix_also_within_a_range(position: int, finished: int) -> None:
    """``checkpoint(at=record)`` covers the ranges that end there and part of the one around it."""
    ledger = Ledger()
    ledger.open(at(1), at(3), 3)
    ledger.open(at(4), at(6), 3)
    ledger.finish_to(at(position))
    assert (ledger.prefix, ledger.finished_records) == (at(position), finished)


def test_users_word_about_what_was_not_handed_over_moves_nothing() -> None:
    """A position beyond the last hand-over is no progress."""
    ledger = Ledger()
    ledger.open(at(1), at(3), 3)
    ledger.finish_to(at(99))
    assert ledger.prefix == at(3)


def test_users_word_and_the_return_of_the_batch_count_its_records_once() -> None:
    """A batch that was checkpointed and then returns is finished, not finished twice."""
    ledger = Ledger()
    entry = ledger.open(at(1), at(3), 3)
    ledger.finish_to(at(3))
    ledger.finish(entry)
    assert ledger.finished_records == 3


def test_sub_sequence_numbers_are_positions_of_their_own() -> None:
    """Records that share a number are told apart by their index."""
    ledger = Ledger()
    first = ledger.open(SequenceNumber(5, 0), SequenceNumber(5, 2), 3)
    ledger.open(SequenceNumber(5, 3), SequenceNumber(5, 4), 2)
    ledger.finish(first)
    assert ledger.prefix == SequenceNumber(5, 2)
