"""Which record holds up the reading of a shard. Pure; instants are monotonic seconds."""

from dataclasses import dataclass

HELD_S = 5.0
"""How long after it was read a record counts as what holds up the reading: most pass by themselves before."""


@dataclass(frozen=True, slots=True)
class Held:
    """The first record that is not finished, while the shard is read."""

    sequence_number: str
    read_at: float
    is_full: bool
    """Whether as much waits behind it as may."""

    def by(self, now: float, *, longest_s: float) -> str | None:
        """The record, if nothing more is read until it is finished; ``longest_s`` is ``delivery.max_ahead.seconds``."""
        waits_s = now - self.read_at
        return self.sequence_number if waits_s > (HELD_S if self.is_full else longest_s) else None
