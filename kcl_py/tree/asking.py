"""What a Checkpointer asks of the Lease, and where the outcome arrives."""

from dataclasses import dataclass, field
from enum import StrEnum

import anyio

from kcl_py.errors import EffectsRefusedError
from kcl_py.leases.row import Pending
from kcl_py.leases.store import Effects
from kcl_py.records import SequenceNumber


class CheckpointOutcome(StrEnum):
    """What became of what was asked."""

    STORED = "stored"
    APPLIED = "applied"
    """Stored by this very transaction, with its effects."""
    REFUSED = "refused"
    """DynamoDB does not take the effects."""
    WITHDRAWN = "withdrawn"
    """It has had no effect, and will have none."""
    LOST = "lost"


@dataclass(slots=True)
class Answer:
    """Where the outcome arrives."""

    outcome: CheckpointOutcome | None = None
    arrived: anyio.Event = field(default_factory=anyio.Event)
    error: EffectsRefusedError | None = None
    is_withdrawn: bool = False
    """Whether nobody wants a transaction any more: it is not sent again."""

    def resolve(self, outcome: CheckpointOutcome) -> None:
        if self.outcome is None:
            self.outcome = outcome
            self.arrived.set()


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Store this position now and resolve ``answer``."""

    token: str
    position: SequenceNumber
    answer: Answer


@dataclass(frozen=True, slots=True)
class Prepare:
    """Store this as the prepared checkpoint and resolve ``answer``."""

    token: str
    pending: Pending
    answer: Answer

    @property
    def position(self) -> SequenceNumber:
        return self.pending.position


@dataclass(frozen=True, slots=True)
class Transact:
    """Store this position together with effects and resolve ``answer``."""

    token: str
    position: SequenceNumber
    effects: Effects
    name: str
    """Stays in the row: tells that this one has taken effect."""
    answer: Answer
