"""A processor that blocks its thread for as long as a test wants it to."""

import threading
from typing import ClassVar

from anyio.lowlevel import checkpoint

from kcl_py import RecordBatch, RecordProcessor
from kcl_py.executors.checkpointer import SyncCheckpointer
from kcl_py.testing import FakeStream


class Blocking(RecordProcessor):
    """Blocks its thread until the test lets it go."""

    has_begun: ClassVar[threading.Event]
    may_end: ClassVar[threading.Event]

    def process_records(self, batch: RecordBatch, checkpointer: SyncCheckpointer) -> None:  # type: ignore[override]
        self.has_begun.set()
        assert self.may_end.wait(30)


def begin_anew() -> None:
    """Have the next one block."""
    Blocking.has_begun, Blocking.may_end = threading.Event(), threading.Event()


async def until_begun(stream: FakeStream) -> None:
    """Let time pass until the hook is in its thread, which begins when it likes."""
    while not Blocking.has_begun.is_set():
        await stream.clock.advance(0.1)
        await checkpoint()
