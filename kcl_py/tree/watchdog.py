"""Names the code that keeps the event loop from running, while it still does.

A hook that computes, or waits without ``await``, stops the heartbeats of every shard. A thread of the worker's own sees
that the loop no longer beats, and looks at what the loop's thread is doing. Seconds are those of the machine.
"""

import asyncio
import selectors
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import actors
import kcl_py
from kcl_py.events import Events

LOOKS = 4
"""Beats of the loop, and looks at them, within the limit."""
MOST_FRAMES = 8
"""So many of the blocking calls are named, the innermost ones."""
_FRAMEWORK = tuple(f"{Path(str(module.__file__)).parent}/" for module in (asyncio, actors, kcl_py))

_RUN_ONCE = asyncio.BaseEventLoop._run_once.__code__  # type: ignore[attr-defined]


class Watchdog:
    """Watches the running event loop.

    Args:
        limit_s: how long the loop may stand still; it is said then, and again each time that this has doubled.
        log: where it is said, from a thread.
    """

    def __init__(self, limit_s: float, log: Events) -> None:
        self._limit_s, self._log = limit_s, log
        self._loop, self._thread_id = asyncio.get_running_loop(), threading.get_ident()
        self._beaten_at = time.monotonic()
        self._is_over = threading.Event()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch while the block is open."""
        thread = threading.Thread(target=self._watch, name="kcl-watchdog", daemon=True)
        thread.start()
        self._timer = self._loop.call_soon(self._beat)
        try:
            yield
        finally:
            self._is_over.set()
            self._timer.cancel()
            thread.join(self._limit_s)  # a log that needs the loop has it wait for what waits for it

    def _beat(self) -> None:
        now = time.monotonic()
        stood_s, self._beaten_at = now - self._beaten_at, now
        self._timer = self._loop.call_later(self._limit_s / LOOKS, self._beat)
        if stood_s >= self._limit_s:
            self._log.warning("kcl_py.loop.runs_again", after_s=round(stood_s, 3))

    def _watch(self) -> None:
        limit_s, beaten_at, excused_s = self._limit_s, self._beaten_at, 0.0
        while (stood_s := self._wait()) is not None:
            if self._beaten_at != beaten_at:
                limit_s, beaten_at, excused_s = self._limit_s, self._beaten_at, 0.0
            for_s = time.monotonic() - beaten_at
            excused_s = min(excused_s + stood_s, for_s)
            for_s -= excused_s
            if for_s >= limit_s:
                limit_s = 2 * for_s
                self._tell(for_s, beaten_at)

    def _wait(self) -> float | None:
        """Wait for the next look; return for how long the whole process stood still meanwhile, None if all is over.

        Code that keeps the interpreter to itself makes this thread late, too, but computes.
        """
        began_at, used_s = time.monotonic(), time.process_time()
        if self._is_over.wait(self._limit_s / LOOKS):
            return None
        late_s, used_s = time.monotonic() - began_at - self._limit_s / LOOKS, time.process_time() - used_s
        return late_s if used_s < late_s / 2 else 0.0

    def _tell(self, for_s: float, beaten_at: float) -> None:
        frame = sys._current_frames().get(self._thread_id)
        calls = [] if frame is None else blocking_calls(frame)
        if calls and self._beaten_at == beaten_at:  # else the loop runs again by now
            code, at = calls[0].f_code.co_qualname, " > ".join(map(_place, calls[-MOST_FRAMES:]))
            self._log.warning("kcl_py.loop.blocked", for_s=round(for_s, 3), code=code, at=at)


def blocking_calls(innermost: FrameType) -> list[FrameType]:
    """Return the calls that the framework made last, outermost first; its own innermost one if it is busy itself.

    None if the loop waits for work: then the whole process stood still, and will go on.
    """
    back = innermost.f_back
    if innermost.f_code.co_filename == selectors.__file__ and back is not None and back.f_code is _RUN_ONCE:
        return []
    calls: list[FrameType] = []
    frame: FrameType | None = innermost
    while frame is not None and not frame.f_code.co_filename.startswith(_FRAMEWORK):
        calls.insert(0, frame)
        frame = frame.f_back
    return calls or [innermost]


def _place(frame: FrameType) -> str:
    return f"{frame.f_code.co_qualname} ({Path(frame.f_code.co_filename).name}:{frame.f_lineno})"
