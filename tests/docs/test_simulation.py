"""What the page of testing tells of the simulation is what is there."""

from tests.docs.pages import DOCS, rows
from tests.sim.checker import LAWS
from tests.sim.mutants import MUTANTS


def test_deliberate_bugs_of_the_testing_page_are_those_that_are_tried() -> None:
    """In their order, each with a law that there is."""
    laws = {law.__name__.replace("_", " ") for law in LAWS}
    table = rows(DOCS / "testing.md", "Bug")
    assert [row[0] for row in table] == [mutant.name for mutant in MUTANTS]
    assert {row[1] for row in table} <= laws


def test_laws_of_the_testing_page_are_those_of_the_checker() -> None:
    """A reader sees what a life is judged by."""
    laws = {law.__name__.replace("_", " ") for law in LAWS}
    assert {row[0] for row in rows(DOCS / "testing.md", "Law")} == laws
