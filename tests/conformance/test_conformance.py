"""The model does what AWS documents, in memory and over HTTP; ``make conformance`` asks its peers too."""

from collections.abc import Iterator

import pytest

from tests.conformance.case import Case
from tests.conformance.cases import CASES
from tests.conformance.deviations import DEVIATIONS
from tests.conformance.ours import ours
from tests.conformance.service import InMemory, OverHttp
from tests.conformance.table import is_asked, known, lines, surprises
from tests.docs.pages import DOCS, read


@pytest.fixture(scope="module")
def over_http() -> Iterator[dict[bool, OverHttp]]:
    """Servers whose clock the cases move, without and with limited rates."""
    with ours() as prompt, ours(with_rates=True) as paced:
        yield {False: prompt, True: paced}


@pytest.mark.parametrize("case", [case for case in CASES if is_asked(case, "in memory")], ids=lambda case: case.name)
def test_model_in_memory_does_as_aws(case: Case) -> None:
    """Each case, on an account of its own."""
    assert case.find(InMemory(with_rates=case.with_rates)) == case.aws


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_model_over_http_does_as_aws(case: Case, over_http: dict[bool, OverHttp]) -> None:
    """The same, as the wire shows it."""
    assert case.find(over_http[case.with_rates]) == case.aws


def test_model_has_no_known_deviation() -> None:
    """AWS's column is what it is built to."""
    assert (DEVIATIONS["in memory"], DEVIATIONS["kcl local"]) == ({}, {})


def test_known_deviations_are_of_cases_and_differ() -> None:
    """An agreement is no deviation."""
    names = {case.name: case.aws for case in CASES}
    assert len(names) == len(CASES)
    for table in DEVIATIONS.values():
        assert table.keys() <= names.keys()
        assert [name for name, found in table.items() if found == names[name]] == []


def test_unexpected_agreement_is_told_as_well_as_unexpected_disagreement() -> None:
    """So that the table stays true."""
    [known_case, other] = [
        next(case for case in CASES if (case.name in DEVIATIONS["ministack"]) is is_known) for is_known in (True, False)
    ]
    assert len(surprises("ministack", {known_case.name: known_case.aws, other.name: "something else"})) == 2


def test_table_of_the_local_page_is_the_known_one() -> None:
    """``make conformance`` prints it."""
    assert "\n".join(lines(known())) in read(DOCS / "local.md")
