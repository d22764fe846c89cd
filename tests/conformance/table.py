"""The table of implementations, as docs/local.md shows it, and what is unexpected in a run."""

from tests.conformance.case import Asked, Case
from tests.conformance.cases import CASES
from tests.conformance.deviations import DEVIATIONS

SAME = "as AWS"
NOT_ASKED = "-"


def expected(case: Case, implementation: str) -> str:
    """Return what an implementation is known to do."""
    return DEVIATIONS[implementation].get(case.name, case.aws)


def lines(found: dict[str, dict[str, str]]) -> list[str]:
    """Return the rows of the table, by implementation and case; what was not asked is shown so."""
    head = ["Case", "AWS", *found]
    rows = [
        [case.name, case.aws, *(_cell(case, by_case.get(case.name, NOT_ASKED)) for by_case in found.values())]
        for case in CASES
    ]
    return ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]


def known() -> dict[str, dict[str, str]]:
    """Return what all implementations are known to do."""
    return {name: {case.name: expected(case, name) for case in CASES if is_asked(case, name)} for name in DEVIATIONS}


def is_asked(case: Case, implementation: str) -> bool:
    if case.asked is Asked.OURS:
        return implementation in ("in memory", "kcl local")
    return implementation != "in memory" or case.asked is Asked.ALL


def surprises(implementation: str, found: dict[str, str]) -> list[str]:
    """Return a sentence for each case in which an implementation is not what it is known to be."""
    return [
        f"{implementation}: {case.name}: expected {expected(case, implementation)!r}, found {found[case.name]!r}"
        for case in CASES
        if case.name in found and found[case.name] != expected(case, implementation)
    ]


def _cell(case: Case, found: str) -> str:
    return SAME if found == case.aws else found
