"""Capacity units: what requests cost, and buckets that run dry.

A bucket may go below zero: what a read costs is known only when it is done. Times are Unix seconds.
Source: read and write units, burst capacity and on-demand limits of DynamoDB's developer guide; that one request may
overdraw a bucket is our simplification.
"""

from dataclasses import dataclass
from typing import Any

READ_BYTES, WRITE_BYTES = 4096, 1024
"""Of one unit."""
BURST_S = 300.0
"""Unused provisioned capacity that is kept."""
ON_DEMAND_READS, ON_DEMAND_WRITES = 12_000.0, 4_000.0
"""Units per second of a new on-demand table."""


def read_units(size: int, *, consistent: bool) -> float:
    """Return what reading ``size`` bytes costs; half of it if they may be stale."""
    return max(1, -(-size // READ_BYTES)) * (1.0 if consistent else 0.5)


def write_units(*sizes: int) -> float:
    """Return what a write costs that replaces one size by another."""
    return float(max(1, -(-max(sizes) // WRITE_BYTES)))


@dataclass
class Bucket:
    """Units of one kind; ``rate`` per second flow in, up to ``burst_s`` seconds of them."""

    rate: float
    burst_s: float
    at_s: float
    level: float = 0.0
    taken: float = 0.0
    """Units taken in its whole life."""

    def __post_init__(self) -> None:
        self.level = self.rate

    def has_any(self, now_s: float) -> bool:
        self.level = min(self.level + (now_s - self.at_s) * self.rate, max(self.burst_s, 1.0) * self.rate)
        self.at_s = now_s
        return self.level > 0

    def take(self, units: float) -> None:
        self.level -= units
        self.taken += units


class Capacity:
    """Of one table or index. Without ``provisioned`` (reads, writes per second) it is on demand."""

    def __init__(self, provisioned: tuple[int, int] | None, now_s: float) -> None:
        self.provisioned = provisioned
        reads, writes = provisioned or (ON_DEMAND_READS, ON_DEMAND_WRITES)
        burst_s = 1.0 if provisioned is None else BURST_S
        self.reads, self.writes = Bucket(reads, burst_s, now_s), Bucket(writes, burst_s, now_s)

    def described(self) -> dict[str, Any]:
        """Return ``ProvisionedThroughput`` as a table's description has it."""
        reads, writes = self.provisioned or (0, 0)
        return {"NumberOfDecreasesToday": 0, "ReadCapacityUnits": reads, "WriteCapacityUnits": writes}
