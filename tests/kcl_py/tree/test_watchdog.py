"""Code that keeps the event loop from running is named while it does so, by a thread."""

import asyncio
import threading
from typing import Any

from kcl_py.tree.watchdog import Watchdog

PATIENCE_S = 20.0
LIMIT_S = 0.05


class Told:
    """A log that lets a thread wait for what is said."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._news = threading.Condition()

    def warning(self, event: str, **fields: Any) -> None:
        with self._news:
            self.events.append({"event": event, **fields})
            self._news.notify_all()

    def wait_for(self, times: int) -> None:
        """Block the caller until so much has been said."""
        with self._news:
            assert self._news.wait_for(lambda: len(self.events) >= times, PATIENCE_S)


def block(told: Told, times: int) -> None:
    told.wait_for(times)


def test_blocking_code_is_named_while_it_blocks_and_again_when_that_has_doubled() -> None:
    """With the function that was called, and what it is doing now."""
    told = Told()

    async def main() -> None:
        with Watchdog(LIMIT_S, told).watching():
            block(told, times=2)
            told.events[1]["is_still_blocked"] = True
            await asyncio.to_thread(told.wait_for, 3)

    asyncio.run(main())
    first, second, third = told.events
    assert first["event"] == second["event"] == "kcl_py.loop.blocked"
    assert first["code"].endswith("main")
    assert "block (test_watchdog.py:" in first["at"]
    assert second["for_s"] >= 2 * first["for_s"] >= 2 * LIMIT_S
    assert third["event"] == "kcl_py.loop.runs_again"
    assert third["after_s"] >= second["for_s"]
