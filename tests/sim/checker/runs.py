"""How far a shard is finished without a gap, as ownerships and readings see it. Places are those of the shard."""

from collections.abc import Collection
from dataclasses import dataclass, field

LANES = {"key", "shard", "none"}
"""The forms in which records reach processors one by one."""


@dataclass
class Run:
    """Records that are finished, from where they begin."""

    reached: int
    apart: set[int] = field(default_factory=set)
    """Those that are finished beyond it."""
    processor: int = -1
    steps: list[tuple[float, int]] = field(default_factory=list)
    """When it came how far."""
    begins: int = field(init=False)

    def __post_init__(self) -> None:
        self.begins = self.reached

    @property
    def has_grown(self) -> bool:
        """Whether there is anything to store: who was asked to begin at a time has no number for that place."""
        return self.reached > self.begins

    def step(self, at_s: float) -> None:
        """Note how far it is."""
        if self.has_grown:
            self.steps.append((at_s, self.reached))

    def note(self, done: Collection[int], left: Collection[int], *, is_lane: bool) -> None:
        """A call has ended: of one record of a lane, or of a batch."""
        if not is_lane:
            self.settle(done, left)
        for place in done if is_lane else ():
            self.add(place)

    def add(self, place: int) -> None:
        """One more is finished."""
        if place >= self.reached:
            self.apart.add(place)
        self._advance()

    def settle(self, done: Collection[int], left: Collection[int]) -> None:
        """A batch has ended, and none is handed over before all that comes before it is finished."""
        self.reached = max(self.reached, min(left) if left else max(done) + 1)
        self.apart.update(place for place in done if place >= self.reached)
        self._advance()

    def by(self, at_s: float, *, since_s: float = 0.0) -> int:
        """Return how far it came in that time; 0 if nothing happened."""
        return max((reached for step_s, reached in self.steps if since_s <= step_s <= at_s), default=0)

    def _advance(self) -> None:
        while self.reached in self.apart:
            self.apart.remove(self.reached)
            self.reached += 1
