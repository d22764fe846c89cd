"""How far a shard is behind the newest record of its stream. Pure; instants are monotonic seconds."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Lag:
    """What was known at an instant."""

    lag_ms: int
    at: float
    is_growing: bool = False
    """Whether records are in hand since then: with each second that they are not finished, they are a second older."""

    def by(self, now: float) -> "Lag":
        """What is known at ``now``: more where it grows, else the same, and as old as it is."""
        if not self.is_growing:
            return self
        return replace(self, lag_ms=self.lag_ms + int((now - self.at) * 1000), at=now)
