"""Read a whole table, in one request after the other, or where it is large in segments at the same time.

A page holds 1 MB and our rows stay under 1 KB, so a segment of a thousand rows is one page: a table of any size is then
read in the time of about one request, as far as ``MOST`` allows. Source: Scan in DynamoDB's API reference.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from kcl_py.leases.client import Reply
from kcl_py.leases.together import together

ROWS = 1_000
"""Of one segment."""
MOST = 8
"""So many requests of one scan are on their way at once; beyond it, segments have several pages."""

T = TypeVar("T")


def segments(rows: int) -> int:
    """Return in how many segments to read a table that had so many rows when it was last read; 0 if never."""
    return min(max(-(-rows // ROWS), 1), MOST)


async def scan(page: Callable[..., Awaitable[Reply]], read: Callable[[Any], T], number: int) -> list[T]:
    """Read all pages.

    Args:
        page: sends one Scan with these arguments beside its own.
        read: what to make of one page's items, when it is there.
        number: of segments; with one, the requests do not speak of segments.

    Raises whatever of ours ``page`` raises first; the other segments are given up then.
    """
    if number == 1:
        return await _segment(page, read, {})
    found: list[list[T]] = [[] for _ in range(number)]

    async def one(index: int) -> None:
        found[index] = await _segment(page, read, {"Segment": index, "TotalSegments": number})

    await together([partial(one, index) for index in range(number)], number)
    return [one_page for pages in found for one_page in pages]


async def _segment(page: Callable[..., Awaitable[Reply]], read: Callable[[Any], T], which: dict[str, Any]) -> list[T]:
    """A page may be empty and not the last."""
    found: list[T] = []
    start: dict[str, Any] = {}
    while True:
        reply = await page(**which, **start)
        found.append(read(reply["Items"]))
        if not reply.get("LastEvaluatedKey"):
            return found
        start = {"ExclusiveStartKey": reply["LastEvaluatedKey"]}
