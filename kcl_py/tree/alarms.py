"""What a Lease reminds itself of, and when."""

from collections.abc import Callable
from enum import Enum, auto

from actors import Timer

POLL_S = 0.15
"""How often a receiver looks whether the holder has let go: a shard that moves stands still for as long."""
JITTER = 0.1
"""Part of the heartbeat period by which it varies, so that a fleet's writes spread."""


class Alarm(Enum):
    """What a Lease reminds itself of."""

    BEAT = auto()
    """The heartbeat is due."""
    DEADLINE = auto()
    """The tenure may be over."""
    POLL = auto()
    """Look whether the holder has let go."""
    STOP_WAITING = auto()
    """Nobody has pulled the shard of this stopping worker: let go of it."""


class Alarms:
    """The alarms of one Lease, of each kind one at a time.

    Args:
        send_after: sends a message to the Lease after so many seconds.
    """

    def __init__(self, send_after: Callable[[float, object], Timer]) -> None:
        self._send_after = send_after
        self._timers: dict[Alarm, Timer] = {}

    def set(self, alarm: Alarm, delay_s: float) -> None:
        """Have it ring so many seconds from now, and not before."""
        if alarm in self._timers:
            self._timers[alarm].cancel()
        self._timers[alarm] = self._send_after(max(delay_s, 0), alarm)

    def cancel(self) -> None:
        """Let none of them ring."""
        for timer in self._timers.values():
            timer.cancel()
