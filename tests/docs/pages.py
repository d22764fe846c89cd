"""The pages of the documentation as data: their links, tables, headings and blocks of code."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = (README, ROOT / "CHANGELOG.md", *sorted(DOCS.glob("*.md")))
PACKAGES = ("actors", "kcl_py", "spark_bridge")

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A block of code."""

    language: str
    text: str


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(page: Path, language: str) -> list[str]:
    """Return the blocks of a page in one language, in order."""
    return [match[2] for match in _BLOCK.finditer(read(page)) if match[1] == language]


def links(page: Path) -> list[str]:
    """Return where a page points to, outside of its blocks."""
    return _LINK.findall(_BLOCK.sub("", read(page)))


def headings(page: Path) -> list[str]:
    return _HEADING.findall(_BLOCK.sub("", read(page)))


def anchors(page: Path) -> set[str]:
    """Return the names under which a page's headings can be linked, as GitHub makes them."""
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings(page)}


def rows(page: Path, first: str) -> list[list[str]]:
    """Return the cells of all rows, without ticks, of the tables whose first column is headed ``first``."""
    found: list[list[str]] = []
    is_inside = False
    for line in read(page).splitlines():
        if not line.startswith("|"):
            is_inside = False
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if is_inside and not set(cells[0]) <= {"-", ":"}:
            found.append([cell.replace("`", "") for cell in cells])
        is_inside = is_inside or cells[0] == first
    return found


def modules() -> Iterator[tuple[Path, ast.Module]]:
    """Yield every module of the packages, parsed."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path.relative_to(ROOT), ast.parse(read(path))
