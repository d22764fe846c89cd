"""What is known at one moment of the demo: the data behind the live table."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from examples.demo.carriers import CarrierFigures
from examples.demo.facts import Fact


@dataclass(slots=True)
class View:
    """The state of the demo; written by the tasks that look, read by the screen."""

    total: int
    """Flights to put."""
    put: int = 0
    seen: set[str] = field(default_factory=set)
    """Identities that the workers wrote down."""
    rates: Mapping[str, float] = field(default_factory=dict)
    """Records a second handed over, by shard."""
    shards: list[dict[str, Any]] = field(default_factory=list)
    """As in ``kcl status --json``."""
    carriers: Mapping[str, CarrierFigures] = field(default_factory=dict)
    """Spark's figures."""
    spark: str = ""
    """What Spark is doing."""

    @property
    def stored(self) -> int:
        """Flights that Spark has stored."""
        return sum(figures.flights for figures in self.carriers.values())

    @property
    def owners(self) -> set[str]:
        """The workers that hold shards."""
        return {worker_of(shard["owner"]) for shard in self.shards if shard["owner"]}

    @property
    def lag_s(self) -> float | None:
        """How far the slowest shard is behind, in seconds."""
        lags = [shard["lag_ms"] for shard in self.shards if shard["lag_ms"] is not None and shard["state"] != "ended"]
        return max(lags) / 1000 if lags else None

    def add(self, facts: Iterable[Fact], *, over_s: float) -> None:
        """Take in what the workers wrote down in the last ``over_s`` seconds."""
        counts: Counter[str] = Counter()
        for fact in facts:
            counts[fact.shard_id] += 1
            self.seen.add(fact.identity)
        self.rates = {shard_id: count / over_s for shard_id, count in counts.items()}


def worker_of(owner: str) -> str:
    """Return the worker's name, without what tells its lives apart."""
    return owner.partition("/")[0]
