"""What became of a request, told from the row alone."""

from dataclasses import replace
from typing import Any

import pytest

from kcl_py.leases.answers import answer
from kcl_py.leases.requests import RELEASE, SEEK, Place, fault
from kcl_py.leases.row import AT_TIMESTAMP, LATEST, SHARD_END, TRIM_HORIZON, LeaseRow, Native, Request

TO_SEEK, TO_LET_GO = Request("r1", SEEK, "700"), Request("r1", RELEASE)
HELD = LeaseRow("s-0", counter=5, owner="a", checkpoint="900", native=Native(token="t-a", owner="a"))


def asked(request: Request, **native: Any) -> LeaseRow:
    return replace(HELD, native=replace(HELD.native, request=request, **native))


def moved(**changes: Any) -> LeaseRow:
    native = replace(HELD.native, **changes.pop("native", {}))
    return replace(HELD, counter=6, native=native, **changes)


@pytest.mark.parametrize(
    ("request_", "row", "is_applied", "what"),
    [
        (TO_SEEK, moved(checkpoint="700", native={"token": "t-b"}), True, "applied; now after 700, held by a"),
        (TO_SEEK, moved(checkpoint="950"), False, "not applied: it was withdrawn, or refused"),
        (TO_SEEK, moved(owner=None), False, "not applied: it was withdrawn, or refused"),
        (TO_SEEK, moved(owner=None, checkpoint=SHARD_END), False, "not applied: it was read to its end before"),
        (TO_SEEK, None, False, "not applied: the row is gone"),
        (TO_LET_GO, moved(owner=None), True, "applied; now after 900, free"),
        (TO_LET_GO, moved(owner="b", native={"token": "t-b"}), True, "applied; now after 900, held by b"),
        (TO_LET_GO, moved(), False, "not applied: it was withdrawn, or refused"),
        (TO_LET_GO, replace(asked(Request("r2", SEEK, "5")), counter=6), False, "not applied: it was withdrawn"),
    ],
)
def test_row_without_the_request_tells_what_became_of_it(
    request_: Request, row: LeaseRow | None, is_applied: bool, what: str
) -> None:
    """Also when another one stands there by now."""
    found = answer(request_, asked(request_), row)
    assert found is not None
    assert found.is_applied is is_applied
    assert found.what.startswith(what)


def test_request_stands_over_takes() -> None:
    """What its next owner does with it is seen against the row as that one has it."""
    taken = replace(asked(TO_SEEK, token="t-b"), owner="b", counter=6)
    assert answer(TO_SEEK, asked(TO_SEEK), taken) is None
    withdrawn = replace(taken, native=replace(taken.native, request=None))
    found = answer(TO_SEEK, taken, withdrawn)
    assert found is not None
    assert not found.is_applied


@pytest.mark.parametrize(
    "place",
    [Place("0"), Place("4" * 56), Place(TRIM_HORIZON), Place(LATEST, 1_700_000_000_000), Place(AT_TIMESTAMP, 0)],
)
def test_place_is_read_as_it_was_written(place: Place) -> None:
    """In a form that people can read in the table."""
    assert Place.parse(str(place)) == place
    assert fault(Request("r1", SEEK, str(place))) is None


@pytest.mark.parametrize("text", ["", "x", "-5", "LATEST", "AT_TIMESTAMP", "AT_TIMESTAMP@", "AT_TIMESTAMP@x", "7@5",
    "TRIM_HORIZON@5", "LATEST@-1", SHARD_END, "\u00b2", "9" * 5000,
    "AT_TIMESTAMP@253402300800000", "LATEST@" + "9" * 40])  # fmt: skip
def test_place_that_is_none_is_refused(text: str) -> None:
    """It would be where no worker could begin."""
    with pytest.raises(ValueError, match=r"expected a sequence number, TRIM_HORIZON, LATEST@ms or AT_TIMESTAMP@ms"):
        Place.parse(text)
