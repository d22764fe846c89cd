"""The pages of requirements and cases name tests that there are."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, rows

TESTS = Path(__file__).parents[1]
REQUIREMENTS = rows(DOCS / "requirements.md", "Fault") + rows(DOCS / "requirements.md", "Row")
CASES = rows(DOCS / "cases.md", "Case")
LEAST_REASON = len("none: there is no such thing")


@pytest.mark.parametrize(("table", "least"), [(REQUIREMENTS, 80), (CASES, 20)], ids=["requirements", "cases"])
def test_every_test_that_a_row_names_is_there(table: list[list[str]], least: int) -> None:
    """A requirement is shown by a test, or it is only a claim; what is not kept has a reason."""
    defined = {name for path in TESTS.rglob("test_*.py") for name in re.findall(r"def (test_\w+)\(", path.read_text())}
    assert len(table) > least
    for number, _, tests in table:
        if tests.startswith("none: "):
            assert len(tests) > LEAST_REASON, number
        else:
            named = tests.split(", ")
            assert set(named) <= defined, f"{number} names {sorted(set(named) - defined)}"


def test_no_row_is_there_twice() -> None:
    """Two rows of one number would disagree sooner or later."""
    numbers = [row[0] for row in REQUIREMENTS + CASES]
    assert sorted(numbers) == sorted(set(numbers))


def test_every_number_that_a_test_cites_is_on_a_page() -> None:
    """A number leads to what it stands for."""
    listed = {row[0] for row in REQUIREMENTS + CASES}
    cited = {
        number
        for path in TESTS.rglob("*.py")
        for number in re.findall(r"\b(?:B-\d\d|S\d-\d\d|B\d{3}(?=[:,]))", path.read_text())
    }
    assert sorted(cited - listed) == []
