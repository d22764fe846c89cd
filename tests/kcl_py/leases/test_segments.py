"""Large tables are read in several segments at once, whole or not at all."""

from typing import Any

import anyio
import pytest

from kcl_py.errors import ThrottledError
from kcl_py.leases.segments import MOST, scan, segments

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize(("rows", "number"), [(0, 1), (1, 1), (1_000, 1), (1_001, 2), (7_500, 8), (1_000_000, MOST)])
async def test_segments_follow_the_rows_last_seen(rows: int, number: int) -> None:
    """A small table, or one never read, takes one request; the largest no more than a few at a time."""
    assert segments(rows) == number


class Pages:
    """Three pages a segment, of which the second is empty; requests wait until all segments have asked."""

    def __init__(self, number: int, refused: int | None = None) -> None:
        self._number, self._refused = number, refused
        self._all_asked = anyio.Event()
        self.asked: list[dict[str, Any]] = []

    async def __call__(self, **request: Any) -> dict[str, Any]:
        self.asked.append(request)
        if len(self.asked) == self._number:
            self._all_asked.set()
        await self._all_asked.wait()
        segment = request.get("Segment", 0)
        if segment == self._refused:
            raise ThrottledError("Scan", "app", "ThrottlingException")
        if self._refused is not None:
            await anyio.sleep_forever()
        page = request.get("ExclusiveStartKey", 0)
        more = {"LastEvaluatedKey": page + 1} if page < 2 else {}
        return {"Items": [] if page == 1 else [(segment, page)], **more}


@pytest.mark.parametrize("number", [1, 3])
async def test_every_page_of_every_segment_is_read(number: int) -> None:
    """No segment waits for another, and an empty page ends none."""
    pages = Pages(number)
    with anyio.fail_after(5):
        found = await scan(pages, list, number)
    assert [item for page in found for item in page] == [
        (segment, page) for segment in range(number) for page in (0, 2)
    ]
    assert all(request.get("TotalSegments", 1) == number for request in pages.asked)


async def test_page_that_is_refused_fails_the_scan() -> None:
    """Half a table would look as if rows were missing; what is on its way is given up."""
    pages = Pages(3, refused=1)
    with anyio.fail_after(5), pytest.raises(ThrottledError):
        await scan(pages, list, 3)
    assert len(pages.asked) == 3
