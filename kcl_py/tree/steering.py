"""What is said in the tree when somebody pauses a shard, lets it go on, or asks something of its holder.

``native.paused`` in the row says whether a shard is paused. Its Lease sees that in the reply to each of its writes and
tells the Pipeline; once nothing is in the processor's hands any more, the Lease says so in the row. In words:
docs/leases.md, "Pausing".
"""

from dataclasses import dataclass

HELD_BACK = ("process_records", "shard_ended")
"""The hooks that are not called for a paused shard, neither for the first time nor again."""


@dataclass(frozen=True, slots=True)
class LookNow:
    """Stream → Coordinator → Lease: somebody has written to the rows, so see now what is asked."""

    keys: frozenset[str]


@dataclass(frozen=True, slots=True)
class Pause:
    """Lease → Pipeline: read and hand over nothing, or (not ``is_on``) go on from the end of what is finished."""

    is_on: bool


@dataclass(frozen=True, slots=True)
class Rested:
    """Pipeline → Lease: the shard is paused, and nothing of it is in the processor's hands."""


@dataclass(slots=True)
class Brake:
    """What a Pipeline was told of a pause."""

    is_on: bool = False
    has_told: bool = False
    """Whether it has said that nothing is in hand."""

    def holds_back(self, hook: str) -> bool:
        return self.is_on and hook in HELD_BACK

    def must_tell(self, *, is_idle: bool) -> bool:
        """Whether it is to be said now that nothing is in hand; true once for each pause."""
        must_tell = self.is_on and is_idle and not self.has_told
        self.has_told |= must_tell
        return must_tell
