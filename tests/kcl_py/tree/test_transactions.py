"""Transactions that wait in a Lease: an outcome is told when it is sure, and not before."""

from typing import Any

from kcl_py.errors import EffectsRefusedError, RequestError
from kcl_py.leases import commits
from kcl_py.leases.row import LeaseRow
from kcl_py.leases.writer import Settled
from kcl_py.records import SequenceNumber
from kcl_py.tree.asking import Answer, CheckpointOutcome, Transact
from kcl_py.tree.transactions import Transactions
from tests.contract.lease_rows import MINE, a_row

LOST = RequestError("TransactWriteItems", "shard", "TimeoutError")


def asked(transactions: Transactions, at: int, name: str) -> Transact:
    asked = Transact("t-me", SequenceNumber(at), (), name, Answer())
    transactions.ask(asked)
    return asked


def settled(asked: Transact, outcome: Any, error: Exception | None = None, *, row: LeaseRow | None = None) -> Settled:
    write = commits.transact(row or a_row(), **MINE, position=asked.position, effects=(), transaction=asked.name)
    return Settled(write, outcome, None, 0.0, error=error)


def test_transactions_are_sent_in_the_order_in_which_they_were_asked_for() -> None:
    """The next one when the row has the first one's name."""
    waiting = Transactions()
    first, second = asked(waiting, 1001, "one"), asked(waiting, 1002, "two")
    assert waiting.next() is first
    waiting.note_row(a_row(checkpoint="1001", native={"transaction": "one"}))
    assert (first.answer.outcome, waiting.next()) == (CheckpointOutcome.APPLIED, second)


def test_transaction_that_the_checkpoint_has_passed_is_not_sent() -> None:
    """Its effects would count records twice."""
    waiting = Transactions()
    one = asked(waiting, 1001, "one")
    waiting.note_row(a_row(checkpoint="1001"))
    assert (one.answer.outcome, waiting.next()) == (CheckpointOutcome.STORED, None)


def test_transaction_that_was_withdrawn_before_it_was_sent_is_dropped() -> None:
    """It has no effect, and never will."""
    waiting = Transactions()
    one = asked(waiting, 1001, "one")
    one.answer.is_withdrawn = True
    assert (waiting.next(), one.answer.outcome) == (None, CheckpointOutcome.WITHDRAWN)


def test_withdrawn_transaction_whose_reply_was_lost_is_in_doubt_until_the_row_has_moved_on() -> None:
    """Until then it may yet take effect."""
    waiting = Transactions()
    one = asked(waiting, 1001, "one")
    waiting.note_settled(settled(one, "again", LOST))
    one.answer.is_withdrawn = True
    waiting.note_row(a_row())
    assert (waiting.next(), waiting.is_in_doubt, one.answer.outcome) == (None, True, None)
    waiting.note_row(a_row(counter=42))
    assert (waiting.is_in_doubt, one.answer.outcome) == (False, CheckpointOutcome.WITHDRAWN)


def test_transaction_in_doubt_that_took_effect_late_is_applied() -> None:
    """Withdrawn or not."""
    waiting = Transactions()
    one = asked(waiting, 1001, "one")
    waiting.note_settled(settled(one, "again", LOST))
    one.answer.is_withdrawn = True
    waiting.note_row(a_row(counter=42, checkpoint="1001", native={"transaction": "one"}))
    assert (one.answer.outcome, waiting.is_in_doubt) == (CheckpointOutcome.APPLIED, False)


def test_transaction_in_doubt_that_is_still_wanted_is_sent_again() -> None:
    """The same, on the same counter, which can take effect once."""
    waiting = Transactions()
    one = asked(waiting, 1001, "one")
    waiting.note_settled(settled(one, "again", LOST))
    waiting.note_row(a_row())
    assert (waiting.next(), waiting.is_in_doubt, one.answer.outcome) == (one, False, None)


def test_refusal_is_told_at_once_unless_an_earlier_try_is_in_doubt() -> None:
    """That one may meet a condition that holds."""
    waiting, refused = Transactions(), EffectsRefusedError("no")
    one, two = asked(waiting, 1001, "one"), asked(waiting, 1002, "two")
    waiting.note_settled(settled(one, "refused", refused))
    assert (one.answer.outcome, one.answer.error) == (CheckpointOutcome.REFUSED, refused)
    waiting.note_settled(settled(two, "again", LOST))
    waiting.note_settled(settled(two, "refused", refused))
    assert (two.answer.outcome, waiting.next(), waiting.is_in_doubt) == (None, None, True)
    waiting.note_row(a_row(counter=42))
    assert two.answer.outcome is CheckpointOutcome.REFUSED


def test_end_of_an_ownership_is_the_end_of_all_that_waits() -> None:
    """The row tells the next owner what became of them."""
    waiting = Transactions()
    both = [asked(waiting, 1001, "one"), asked(waiting, 1002, "two")]
    waiting.refuse()
    assert [each.answer.outcome for each in both] == [CheckpointOutcome.LOST] * 2
