"""The clock of tests in which pauses matter but nobody waits for them. Others: ``ManualClock``, ``SimClock``."""

import anyio.lowlevel


class PromptClock:
    """Sleeping returns at once and moves the time by what was slept; a test may set ``now_s`` itself."""

    def __init__(self, now_s: float = 1_700_000_000.25) -> None:
        self.now_s = now_s
        self.slept_s: list[float] = []

    def monotonic(self) -> float:
        return self.now_s

    def time(self) -> float:
        return self.now_s

    async def sleep(self, delay_s: float) -> None:
        self.slept_s.append(delay_s)
        self.now_s += delay_s
        await anyio.lowlevel.checkpoint()
