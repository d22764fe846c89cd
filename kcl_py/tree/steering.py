"""What is said in the tree when somebody pauses a shard, lets it go on, or asks something of its holder.

``native.paused`` in the row says whether a shard is paused. Its Lease sees that in the reply to each of its writes and
tells the Pipeline; once nothing is in the processor's hands any more, the Lease says so in the row. In words:
docs/leases.md, "Pausing".
"""

from dataclasses import dataclass

HELD_BACK = "shard_ended"
"""The hook that is not called for a paused shard, neither for the first time nor again; nor are those for records."""


@dataclass(frozen=True, slots=True)
class LookNow:
    """Stream → Coordinator → Lease: somebody has written to the rows, so see now what is asked."""

    keys: frozenset[str]


@dataclass(frozen=True, slots=True)
class Pause:
    """Lease → Pipeline: read and hand over nothing; without an instant, go on behind what is in hand."""

    at_ms: int | None
    """Tells one pause from the next: when it was asked for, in Unix milliseconds."""


@dataclass(frozen=True, slots=True)
class Rested:
    """Pipeline → Lease: under this pause nothing of the shard is in the processor's hands."""

    at_ms: int


@dataclass(slots=True)
class Brake:
    """What a Pipeline was told of a pause."""

    at_ms: int | None = None
    has_told: bool = False
    """Whether it has said that nothing is in hand."""

    @property
    def is_on(self) -> bool:
        return self.at_ms is not None

    def holds_back(self, hook: str) -> bool:
        return self.is_on and hook == HELD_BACK

    def word(self, *, is_idle: bool) -> Rested | None:
        """Return what is to be said now that nothing is in hand, once for each pause."""
        if self.at_ms is None or not is_idle or self.has_told:
            return None
        self.has_told = True
        return Rested(self.at_ms)
