"""One page of a Query or a Scan. Sizes are bytes."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kcl_py.local.dynamo.expressions import Expressions
from kcl_py.local.dynamo.keys import Place
from kcl_py.local.dynamo.paths import pick
from kcl_py.local.dynamo.rows import Row
from kcl_py.local.dynamo.values import Item

PAGE_BYTES = 1024 * 1024
"""Source: API reference, Query and Scan."""


@dataclass
class Page:
    """What was looked at and what of it was found; ``last`` is where the next page begins, None at the end."""

    items: list[Item] = field(default_factory=list)
    looked_at: int = 0
    size: int = 0
    last: Item | None = None


def read_page(rows: Iterator[tuple[Place, Row]], expressions: Expressions, *, limit: int | None) -> Page:
    """Return a page: it ends by ``limit``, by its size or with the rows, and is filtered only then."""
    page, latest = Page(), None
    for _, row in rows:
        if page.looked_at and page.size + row.size > PAGE_BYTES:
            page.last = latest
            return page
        latest = row.item
        page.looked_at += 1
        page.size += row.size
        if expressions.filter is None or expressions.filter.holds(latest, expressions.values):
            page.items.append(latest)
        if page.looked_at == limit:
            page.last = latest
            return page
    return page


def answer(page: Page, expressions: Expressions, *, key_names: tuple[str, ...], counts_only: bool) -> dict[str, Any]:
    """Return the page as Query and Scan answer it."""
    body: dict[str, Any] = {"Count": len(page.items), "ScannedCount": page.looked_at}
    if not counts_only:
        paths = expressions.projection
        body["Items"] = page.items if paths is None else [pick(item, paths) for item in page.items]
    if page.last is not None:
        body["LastEvaluatedKey"] = {name: page.last[name] for name in key_names}
    return body
