"""Transactions of a lease row as data: what tells one from another, and what a read tells about them."""

from dataclasses import replace

import pytest

from kcl_py.errors import EffectsRefusedError
from kcl_py.leases import commits
from kcl_py.leases.row import LeaseRow
from kcl_py.leases.settling import Outcome, decide
from kcl_py.leases.store import AnyOf, Is, Write
from kcl_py.records import SequenceNumber
from tests.contract.lease_commits import COMMITS, PENDING
from tests.contract.lease_rows import ME, MINE, OTHER, a_handoff, a_row

AT = SequenceNumber(1500, 3)
EFFECTS = ({"Delete": {"TableName": "t", "Key": {"k": {"S": "a"}}}},)


def a_transaction(row: LeaseRow, *, name: str = "one") -> Write:
    return commits.transact(row, **MINE, position=AT, effects=EFFECTS, transaction=name)


def test_write_tests_that_the_row_is_held_and_as_seen() -> None:
    """Counter, owner and token, as each write by a holder."""
    held = (
        Is(("leaseCounter",), 41),
        AnyOf((Is(("leaseOwner",), ME), Is(("checkpointOwner",), ME))),
        Is(("native", "token"), "t-me"),
    )
    writes = [a_transaction(a_row()), *(case.write for case in COMMITS)]
    assert {write.tests for write in writes} == {held}


def test_transaction_stores_position_and_name_and_ends_what_was_prepared() -> None:
    """And renews."""
    write = a_transaction(a_row(pending=PENDING))
    assert write.set == {
        ("leaseCounter",): 42,
        ("checkpoint",): "1500",
        ("checkpointSubSequenceNumber",): 3,
        ("ownerSwitchesSinceCheckpoint",): 0,
        ("native", "transaction"): "one",
    }
    assert [path for [path] in write.remove] == [
        "pendingCheckpoint",
        "pendingCheckpointSubSequenceNumber",
        "pendingCheckpointState",
    ]


def test_request_token_is_that_of_one_transaction_on_one_counter() -> None:
    """A try that is repeated is the same request, whatever else the row says by then; any other is not."""
    asked_for = a_transaction(a_handoff())
    first = a_transaction(a_row())
    assert (first.request_token, first.effects) == (asked_for.request_token, EFFECTS)
    others = {a_transaction(a_row(counter=42)).request_token, a_transaction(a_row(), name="two").request_token}
    assert len({first.request_token, *others}) == 3
    assert len(first.request_token) <= 36


APPLIED = a_row(counter=42, checkpoint="1500", sub=3, switches=0, native={"transaction": "one"})


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        (APPLIED, "succeeded"),
        (replace(APPLIED, owner=OTHER, checkpoint_owner=ME), "succeeded"),
        (a_row(), "again"),
        (replace(APPLIED, native=replace(APPLIED.native, transaction="two")), "again"),
        (replace(APPLIED, native=replace(APPLIED.native, transaction=None)), "again"),
        (replace(APPLIED, native=replace(APPLIED.native, token="theirs")), "lost"),
        (None, "lost"),
    ],
)
def test_only_its_name_in_the_row_tells_that_a_transaction_took_effect(
    found: LeaseRow | None, outcome: Outcome
) -> None:
    """A late heartbeat can leave the same counter and the same position."""
    assert decide(a_transaction(a_row()), found) == outcome


def test_errors_keep_what_they_say_of_effects() -> None:
    """By number, without a value of an item."""
    error = EffectsRefusedError("cannot", {2: "ConditionalCheckFailed"})
    assert (str(error), error.reasons, error.retryable) == ("cannot", {2: "ConditionalCheckFailed"}, False)
