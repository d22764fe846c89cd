"""What the pages point to is there, and so is what the code cites of them."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, PACKAGES, PAGES, README, ROOT, anchors, headings, links, read

_CITATION = re.compile(r'docs/(\w+\.md)(?:, "([^"]+)")?')


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.name))
def test_relative_links_lead_somewhere(page: Path) -> None:
    """Files and headings; what lies in the web is not looked at."""
    broken = []
    for link in links(page):
        if link.startswith(("http://", "https://")):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_pages_and_headings_that_the_code_cites_are_there() -> None:
    """A docstring sends its reader somewhere; what is no page of this repository cannot be opened."""
    sources = [path for folder in (*PACKAGES, "bench", "examples", "tests") for path in (ROOT / folder).rglob("*.py")]
    cited = {citation for path in sources for citation in _CITATION.findall(read(path).replace("\n", " "))}
    assert len(cited) > 10
    assert [f"{name}: {heading}" for name, heading in sorted(cited) if not (DOCS / name).is_file()] == []
    assert [c for c in sorted(cited) if c[1] and c[1] not in headings(DOCS / c[0])] == []


def test_every_page_can_be_reached_from_the_readme() -> None:
    """A page that nobody links is not read."""
    linked = {(README.parent / link).resolve() for link in links(README) if not link.startswith("http")}
    assert [str(page.relative_to(ROOT)) for page in PAGES if page != README and page not in linked] == []
