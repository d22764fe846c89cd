"""Code that keeps the event loop from running is named while it does so, by a thread."""

import asyncio
import selectors
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from kcl_py.events import Events
from kcl_py.tree.watchdog import Watchdog, blocking_calls

PATIENCE_S = 20.0
LIMIT_S = 0.05
STOPPED_S = 2.0


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
        with Watchdog(LIMIT_S, Events(told)).watching():
            block(told, times=2)
            told.events[1]["is_still_blocked"] = True
            await asyncio.to_thread(told.wait_for, 3)

    asyncio.run(main())
    first, second, third = told.events
    assert first["event"] == second["event"] == "kcl_py.loop.blocked"
    assert first["code"].endswith("main")
    assert "block (test_watchdog.py:" in first["at"]
    assert first["for_s"] >= LIMIT_S
    assert second["for_s"] >= 2 * first["for_s"] - 0.002, "each is rounded to a millisecond"
    assert third["event"] == "kcl_py.loop.runs_again"
    assert third["after_s"] >= second["for_s"]


STOPPED = f"""
import asyncio, os, subprocess, time
from kcl_py.events import Events
from kcl_py.tree.watchdog import Watchdog

class Log:
    def warning(self, event, **fields):
        print(event, fields.get("for_s", ""), flush=True)

def compute():
    other = subprocess.Popen(["sh", "-c", "kill -STOP {{0}}; sleep {STOPPED_S}; kill -CONT {{0}}".format(os.getpid())])
    began_s = time.process_time()
    while time.process_time() < began_s + 0.3:
        pass
    other.wait()

async def main():
    with Watchdog({STOPPED_S / 2}, Events(Log())).watching():
        await asyncio.sleep(0.1)
        compute()
        await asyncio.sleep(0.1)

asyncio.run(main())
"""


def test_code_is_not_blamed_for_the_time_that_the_whole_process_was_stopped() -> None:
    """Only for its own, however little of that is left."""
    done = subprocess.run([sys.executable, "-c", STOPPED], capture_output=True, text=True, timeout=60, check=True)
    said = [line.split(" ") for line in done.stdout.splitlines()]
    assert ["kcl_py.loop.runs_again", ""] in said
    assert all(float(for_s) < STOPPED_S for event, for_s in said if event == "kcl_py.loop.blocked")


class Failing(Told):
    """A log that takes note of what it is told, and fails."""

    def warning(self, event: str, **fields: Any) -> None:
        super().warning(event, **fields)
        raise OSError("no space left")


def test_a_log_that_fails_ends_no_watching_and_blames_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """Its failure is an error of its own; the loop beats on, and is looked at."""
    told = Failing()

    async def main() -> None:
        with Watchdog(LIMIT_S, Events(told)).watching():
            for times in (1, 3):  # the second after "runs again"
                block(told, times)
                await asyncio.to_thread(told.wait_for, times + 1)
            await asyncio.sleep(4 * LIMIT_S)

    asyncio.run(main())
    events = [event["event"] for event in told.events]
    assert [event.rpartition(".")[2] for event in events[:4]] == ["blocked", "runs_again", "blocked", "runs_again"]
    assert sorted(record.message for record in caplog.records) == sorted(
        f"could not log {event}: OSError('no space left')" for event in events
    )


def test_a_log_that_needs_the_loop_does_not_keep_it_from_ending() -> None:
    """The loop waits for the thread only so long."""

    class Needing(Told):
        def warning(self, event: str, **fields: Any) -> None:
            super().warning(event, **fields)
            if event == "kcl_py.loop.blocked":
                asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loops[0]).result(PATIENCE_S)

    told, loops = Needing(), list[asyncio.AbstractEventLoop]()

    async def main() -> float:
        loops.append(asyncio.get_running_loop())
        with Watchdog(LIMIT_S, Events(told)).watching():
            block(told, times=1)
            left_at = time.monotonic()
        await asyncio.sleep(LIMIT_S)
        return time.monotonic() - left_at

    assert asyncio.run(main()) < PATIENCE_S / 2


def test_a_log_that_fails_when_the_loop_is_closed_ends_no_thread_with_a_traceback() -> None:
    """It took longer than the loop waited for it."""

    class Slow(Told):
        def warning(self, event: str, **fields: Any) -> None:
            super().warning(event, **fields)
            if event == "kcl_py.loop.blocked":
                is_closed.wait(PATIENCE_S)
                raise OSError("no space left")

    told, is_closed, crashes = Slow(), threading.Event(), list[object]()

    async def main() -> None:
        with Watchdog(LIMIT_S, Events(told)).watching():
            block(told, times=1)

    before, threading.excepthook = threading.excepthook, lambda crash: crashes.append(crash.exc_value)
    try:
        asyncio.run(main())
        (left,) = [thread for thread in threading.enumerate() if thread.name == "kcl-watchdog"]
        is_closed.set()
        left.join(PATIENCE_S)
    finally:
        threading.excepthook = before
    assert crashes == []


@pytest.mark.parametrize("is_idle", [True, False])
def test_a_loop_that_waits_for_work_is_not_blocked(is_idle: bool) -> None:
    """A process that was stopped goes on there; code that waits in the same way for something of its own is."""
    ours = threading.get_ident()

    def until_it_waits() -> list[str]:
        ends_at = time.monotonic() + PATIENCE_S
        while time.monotonic() < ends_at:
            frame = sys._current_frames()[ours]
            if frame.f_code.co_name == "select" and frame.f_code.co_filename == selectors.__file__:
                return [call.f_code.co_name for call in blocking_calls(frame)]
        return ["nothing waited"]

    async def main() -> list[str]:
        looking = asyncio.create_task(asyncio.to_thread(until_it_waits))
        await asyncio.sleep(0)
        if not is_idle:
            with selectors.DefaultSelector() as selector:
                selector.select(0.5)
        return await looking

    assert asyncio.run(main()) == ([] if is_idle else ["main", "select"])
