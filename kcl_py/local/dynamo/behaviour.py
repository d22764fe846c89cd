"""How this DynamoDB behaves where AWS leaves room. Durations are seconds."""

from dataclasses import dataclass, field
from random import Random

from actors.clock import Clock


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What all tables of one model have in common; as it stands without arguments, everything is prompt."""

    clock: Clock
    random: Random = field(default_factory=lambda: Random(0))
    region: str = "us-east-1"
    delay_s: float = 0.0
    """How long it takes to create, change or delete a table or an index."""
    stale_s: float = 0.0
    """How far a read that is not consistent may be behind: up to this, every other one."""
    index_lag_s: float = 0.0
    """How far a global secondary index may be behind its table: up to this."""
    ttl_sweep_s: float = 60.0
    """How often expired items are deleted; until then they are still read. AWS takes up to days."""
    throttles: bool = False
    """Whether a table refuses what is above its capacity."""
    unprocessed: float = 0.0
    """The chance of each item of a batch to come back unprocessed."""

    def now_s(self) -> float:
        return self.clock.time()

    def lag_s(self, most_s: float) -> float:
        """Return a lag of up to ``most_s``."""
        return self.random.uniform(0, most_s) if most_s else 0.0
