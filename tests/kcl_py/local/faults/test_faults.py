"""Which rule happens in which call: numbers, chance, limits, and the count of it all."""

from random import Random

import pytest

from kcl_py.local.faults.fault import Fault, Kind
from kcl_py.local.faults.faults import Faults


def drawn(faults: Faults, count: int, operation: str = "PutItem", service: str = "dynamodb") -> list[Kind | None]:
    """Draw for several calls."""
    found = [faults.draw(service, operation) for _ in range(count)]
    return [None if fault is None else fault.kind for fault in found]


def test_without_rules_nothing_happens() -> None:
    """And nothing is counted."""
    faults = Faults(random=Random(1))
    assert (drawn(faults, 3), faults.is_idle, faults.happened) == ([None] * 3, True, {})


def test_calls_are_numbered_for_each_rule_by_what_it_is_about() -> None:
    """Other operations do not count, whatever else happens in a call does."""
    faults = Faults(
        [
            Fault(kind=Kind.HANG, service="dynamodb", operation="PutItem", calls=(2,)),
            Fault(kind=Kind.ERROR, service="dynamodb", calls=(2, 3, 5)),
        ],
        random=Random(1),
    )
    assert drawn(faults, 1) == [None]
    assert drawn(faults, 2, "PutRecord", "kinesis") == [None, None]
    assert drawn(faults, 3) == [Kind.HANG, Kind.ERROR, None]
    assert drawn(faults, 1, "GetItem") == [Kind.ERROR]
    assert [(tally.calls, tally.happened) for tally in faults.tallies()] == [(4, 1), (5, 2)]


def test_a_rule_happens_at_most_so_many_times() -> None:
    """Then the next rule has its turn."""
    faults = Faults([Fault(kind=Kind.ERROR, times=2), Fault(kind=Kind.RESET, times=1)], random=Random(1))
    assert drawn(faults, 4) == [Kind.ERROR, Kind.ERROR, Kind.RESET, None]


@pytest.mark.parametrize(("probability", "least", "most"), [(0.0, 0, 0), (0.1, 60, 140), (1.0, 1000, 1000)])
def test_probability_is_that_of_each_call(probability: float, least: int, most: int) -> None:
    """And the same seed draws the same."""
    rules = [Fault(kind=Kind.ERROR, probability=probability)]
    first, second = (drawn(Faults(rules, random=Random(5)), 1000) for _ in range(2))
    assert first == second
    assert least <= first.count(Kind.ERROR) <= most


def test_a_kind_that_cannot_happen_in_a_call_uses_up_no_turn() -> None:
    """The call is counted, the fault comes later."""
    faults = Faults([Fault(kind=Kind.STALE, times=1)], random=Random(1))
    assert faults.draw("dynamodb", "GetItem", without=(Kind.STALE,)) is None
    assert drawn(faults, 2, "GetItem") == [Kind.STALE, None]
    assert [tally.calls for tally in faults.tallies()] == [3]


def test_rules_come_and_go_and_what_happened_stays_counted() -> None:
    """A test adds a bad hour and ends it."""
    faults = Faults(random=Random(1))
    assert drawn(faults, 1) == [None]
    faults.add(Fault(kind=Kind.ERROR, operation="PutItem"))
    assert drawn(faults, 2) == [Kind.ERROR] * 2
    faults.clear()
    assert drawn(faults, 1) == [None]
    assert faults.happened == {("dynamodb", "PutItem", Kind.ERROR): 2}
