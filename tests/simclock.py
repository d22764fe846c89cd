"""A worker's clock on virtual time, which can be wrong."""

import asyncio
from collections.abc import Callable

from tests.simloop import SimLoop

EPOCH_S = 1_700_000_000.0
"""Unix time at the beginning of a simulation."""


class SimClock:
    """The loop's time as one worker sees it."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self.offset_s = 0.0
        """Negative for a machine that was frozen for a while, clock and all."""
        self.skew_s = 0.0
        """How wrong its wall clock is."""

    def monotonic(self) -> float:
        return self._loop.time() + self.offset_s

    def time(self) -> float:
        return EPOCH_S + self.monotonic() + self.skew_s

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s)

    def call_later(self, delay_s: float, call: Callable[[], object]) -> Callable[[], object]:
        return self._loop.call_later(delay_s, call).cancel
