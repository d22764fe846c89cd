"""The pages of requirements and of cases name tests that there are."""

import re
from pathlib import Path

from tests.docs.pages import DOCS, rows

TESTS = Path(__file__).parents[1]
PAGE = DOCS / "requirements.md"
CASES = DOCS / "cases.md"


def test_every_test_that_a_requirement_names_is_there() -> None:
    """A requirement is shown by a test, or it is only a claim."""
    defined = {name for path in TESTS.rglob("test_*.py") for name in re.findall(r"def (test_\w+)\(", path.read_text())}
    table = rows(PAGE, "Fault") + rows(PAGE, "Row") + rows(CASES, "Case")
    assert len(table) > 70
    for number, _, tests in table:
        named = tests.split(", ")
        assert set(named) <= defined, f"{number} names {sorted(set(named) - defined)}"


def test_every_number_that_a_test_cites_is_on_the_page() -> None:
    """A number leads to what it stands for."""
    listed = {row[0] for row in rows(PAGE, "Fault") + rows(PAGE, "Row")}
    cited = {
        number for path in TESTS.rglob("*.py") for number in re.findall(r"\b(?:B-\d\d|S\d-\d\d)\b", path.read_text())
    }
    assert sorted(cited - listed) == []
