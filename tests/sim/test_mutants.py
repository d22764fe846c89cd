"""The deliberate bugs still are changes of the code as it stands."""

import pytest

from tests.sim.mutants import MUTANTS, Mutant
from tests.sim.mutate import ROOT, judge


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_bug_can_be_applied(mutant: Mutant) -> None:
    """What it replaces is there exactly once."""
    assert (ROOT / mutant.path).read_text().count(mutant.old) == 1


def test_there_are_enough_of_them() -> None:
    """Each with a name of its own."""
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 25


def test_a_bug_is_caught_by_a_law() -> None:
    """One of them, from the copy to the verdict; ``make mutants`` tries all."""
    [skips] = [mutant for mutant in MUTANTS if mutant.name == "skip a batch that fails"]
    verdict = judge(skips)
    assert verdict.is_caught
    assert verdict.law in {"every record is finished", "nothing is passed over"}
