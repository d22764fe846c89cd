"""What happened in one life, as JSON lines that ``tests.sim.checker`` judges and people read.

A line is ``{"t": virtual seconds, "e": event, ...}``; its fields are those of the call that notes it. Nothing in it
depends on addresses, hashes or the machine's time.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


class History:
    """Lines in order, and how often each event came."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self.lines: list[bytes] = []
        self.counts: Counter[str] = Counter()

    def note(self, event: str, /, **fields: Any) -> None:
        self.counts[event] += 1
        self.lines.append(_encode({"t": round(self._now_s(), 6), "e": event, **fields}))
