"""Something that becomes true once, and wakes whoever waits. An actor has several, for which hardly anybody waits."""

import anyio


class Flag:
    """An event that costs next to nothing until somebody waits for it; set for good."""

    __slots__ = ("_event", "_is_set")

    def __init__(self) -> None:
        self._is_set = False
        self._event: anyio.Event | None = None

    def set(self) -> None:
        """Make it true and wake whoever waits; idempotent."""
        self._is_set = True
        if self._event is not None:
            self._event.set()
            self._event = None

    def is_set(self) -> bool:
        return self._is_set

    async def wait(self) -> None:
        """Wait until it is true."""
        if not self._is_set:
            self._event = self._event or anyio.Event()
            await self._event.wait()
