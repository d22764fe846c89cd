"""What tasks that hand records over have in hand, and what they say to their Pipeline."""

from collections.abc import Mapping
from dataclasses import dataclass

from kcl_py.delivery.batching import Batch
from kcl_py.delivery.lanes import Item
from kcl_py.delivery.rate import FREE, Weight
from kcl_py.outcomes import Verdict


@dataclass(slots=True)
class Hand:
    """What one task has in hand."""

    item: Item | None = None
    failed: Mapping[int, Verdict] | None = None
    """Set where a task before it was made to end without settling the item."""
    has_begun: bool = False
    paid: Weight = FREE
    """Of the worker's rate, for what it takes in hand next."""


@dataclass(frozen=True, slots=True, eq=False)
class BatchHand:
    """The same of a task that has a batch; one of the same batch may begin before it is noted that this has ended."""

    batch: Batch


@dataclass(frozen=True, slots=True)
class Moved:
    """Records are settled."""


@dataclass(frozen=True, slots=True)
class WorkEnded:
    """A task has ended."""

    hand: Hand | BatchHand
    error: Exception | None = None
    """Set where somebody has cancelled it from outside."""


@dataclass(frozen=True, slots=True)
class HandOn:
    """What was put off is due, a batch is old enough, or a slot is free."""


@dataclass(frozen=True, slots=True)
class Withheld:
    """The fence does not allow to hand over."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """A record can neither be finished nor passed over."""

    reason: str
    attempts: int
    sequence_number: str
