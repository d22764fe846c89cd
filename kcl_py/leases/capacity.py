"""What a fleet asks of its two tables, and what a provisioned table has. Pure.

All in units a second: a write of up to 1 KB takes one unit, and so does a strongly consistent read of 4 KB; an
eventually consistent one takes half. Source: the read and write operations of DynamoDB's developer guide.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

READ_UNIT_BYTES = 4096
LEASE_BYTES = 700
"""Of a lease row that is held, with names of ordinary length."""
WORKER_BYTES = 300
LEASES_SHARE, WORKERS_SHARE = 0.25, 0.75
"""How much of a table's read capacity the scans of all workers together may take; the rest is for reads that cannot
wait, which decide what became of a write. There are none of the worker table; other programs may look at it."""
BEATS = 1.1
"""Heartbeats come up to a tenth earlier than each H."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """Of one table."""

    reads: float
    writes: float


@dataclass(frozen=True, slots=True)
class Demand:
    """What the fleet asks of one table."""

    scans: float
    """Units of one look of each worker, as a multiple of the share that they may have."""
    writes: float
    """Units a second of all heartbeats."""

    def reads(self, period_s: float) -> float:
        """Return the units a second that a table needs if each worker looks at it once a period."""
        return self.scans / period_s

    def period_s(self, reads: float) -> float:
        """Return how often each worker may look at a table with so many units a second."""
        return self.scans / reads


def of_leases(rows: int, held: int, workers: int, *, heartbeat_s: float) -> Demand:
    """Return the demand on the lease table, which is read eventually consistently."""
    scan = max(rows * LEASE_BYTES / READ_UNIT_BYTES / 2, 0.5)
    return Demand(workers * scan / LEASES_SHARE, held * BEATS / heartbeat_s)


def of_workers(workers: int, *, heartbeat_s: float) -> Demand:
    """Return the demand on the worker table, which is read consistently."""
    scan = max(workers * WORKER_BYTES / READ_UNIT_BYTES, 1.0)
    return Demand(workers * scan / WORKERS_SHARE, workers / heartbeat_s)


def found(table: Mapping[str, Any]) -> Capacity | None:
    """Return the capacity of a table as DescribeTable shows it; None if it is billed on demand."""
    units = table.get("ProvisionedThroughput", {})
    reads, writes = units.get("ReadCapacityUnits") or 0, units.get("WriteCapacityUnits") or 0
    return Capacity(reads, writes) if reads and writes else None
