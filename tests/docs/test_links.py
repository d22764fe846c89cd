"""What the pages point to is there."""

from pathlib import Path

import pytest

from tests.docs.pages import PAGES, README, ROOT, anchors, links


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


def test_every_page_can_be_reached_from_the_readme() -> None:
    """A page that nobody links is not read."""
    linked = {(README.parent / link).resolve() for link in links(README) if not link.startswith("http")}
    assert [str(page.relative_to(ROOT)) for page in PAGES if page != README and page not in linked] == []
