"""What the leases of a fleet cost at DynamoDB: requests, and units a second as AWS bills them; and at Kinesis.

python -m bench.cost

Whole workers run on virtual time; where that would take too long, the formulas say what it would be, which the runs
hold to a part in a hundred. Beside it what the Java and the Elixir client would use, by their documented behaviour.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass
from itertools import chain
from math import ceil

import structlog
from rich.console import Console
from rich.table import Table

from bench.metered import PAGE_BYTES, Bill, MeteredStore, size
from kcl_py.leases.wide import period_s
from kcl_py.local.dynamo.capacity import READ_BYTES
from tests.kcl_py.tree.fleet import Fleet
from tests.simloop import run, sim_loop

Sizes = tuple[tuple[int, int], ...]
FAILOVER_S = 10.0
"""The default."""
JITTER_MEAN = 0.95
"""A heartbeat comes up to a tenth of its period earlier, at random."""
SCAN_TICKS = 4
"""A heartbeat period is three ticks and a third, and tables are looked at with the ticks."""
ROW_BYTES, WORKER_BYTES = 500, 300
"""Of a row with checkpoint and lag, and the most of a worker's row, which names what it has changed last."""
JAVA_ROW_BYTES, JAVA_INDEX_BYTES = 360, 180
"""The same without what kcl_py alone writes, and an entry of the index by owner with its overhead of 100 bytes."""
SIZES: Sizes = ((10, 1), (100, 1), (100, 10), (1_000, 1), (1_000, 10), (1_000, 100), (10_000, 10), (10_000, 100))
"""Shards and workers."""
QUICK: Sizes = ((10, 1), (30, 3), (100, 10))
MOST_SHARDS, MOST_WORKERS = 1_000, 10
"""Fleets up to this are run; larger ones are computed."""


@dataclass(frozen=True)
class Cost:
    """A second of a quiet fleet: requests by kind, read and write units."""

    requests: dict[str, float]
    reads: float
    writes: float


def steady(shards: int, workers: int, *, failover_s: float = FAILOVER_S) -> Cost:
    """What kcl_py uses while nothing changes; the formulas of docs/leases.md, "What it costs"."""
    heartbeat_s, tick_s = failover_s / 3, failover_s / 10
    leases_bytes, workers_bytes = shards * ROW_BYTES, workers * WORKER_BYTES
    beats, scans = shards / (JITTER_MEAN * heartbeat_s), workers / max(SCAN_TICKS * tick_s, period_s(shards))
    requests = {
        "heartbeat": beats,
        "scan": scans * ceil(leases_bytes / PAGE_BYTES),
        "workers": workers / tick_s,
        "put worker": workers / heartbeat_s,
    }
    reads = scans * _units(leases_bytes) / 2 + workers / tick_s * _units(workers_bytes)
    return Cost(requests, reads, beats + workers / heartbeat_s)


def java(shards: int, workers: int) -> Cost:
    """What the Java client (3.x, its defaults) uses, but for its checkpoints: it writes each by itself.

    A renewal each 3.308 s; the leader scans both tables each 20 s, each worker queries its leases each 10 s, writes its
    metrics and looks at the leader's lock each 30 s.
    """
    held = -(-shards // workers)
    requests = {
        "renew": shards / 3.308,
        "scan": ceil(shards * JAVA_ROW_BYTES / PAGE_BYTES) / 20 + 1 / 20,
        "query": workers / 9.975,
        "metrics and lock": 2 * workers / 30,
    }
    reads = (
        _units(shards * JAVA_ROW_BYTES) / 2 / 20
        + _units(workers * 300) / 2 / 20
        + workers * _units(held * JAVA_INDEX_BYTES) / 2 / 9.975
        + workers / 30
    )
    return Cost(requests, reads, shards / 3.308 + workers / 30)


def elixir(shards: int, workers: int) -> Cost:
    """What the Elixir client uses: each worker reads every shard's row each 30 s, and its holder writes it as often."""
    reads = shards * workers / 30
    return Cost({"read": reads, "renew": shards / 30}, reads, shards / 30)


def _units(size_bytes: int) -> int:
    return max(1, ceil(size_bytes / READ_BYTES))


@dataclass(frozen=True)
class Measured:
    """What a fleet on virtual time was billed."""

    start: Bill
    """Until every shard was held."""
    start_s: float
    quiet: Cost
    listings: float
    """ListShards requests a minute."""
    row_bytes: int
    worker_bytes: int


def measured(shards: int, workers: int, *, failover_s: float = FAILOVER_S, quiet_s: float = 60.0) -> Measured:
    """Run a fleet: workers that start at once on a new stream, then ``quiet_s`` seconds without records."""
    return run(lambda: _measured(shards, workers, failover_s, quiet_s))


async def _measured(shards: int, workers: int, failover_s: float, quiet_s: float) -> Measured:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    sim_loop().set_task_factory(None)  # else it keeps every task
    store = MeteredStore()
    fleet = Fleet(shards=shards, store=store, leases={"failover_s": failover_s}, fetch={"idle_s": 5})
    for number in range(workers):
        fleet.start(f"ip-10-0-12-{number:03}.ec2.internal-7")
    await fleet.until(lambda: len(store.items) == shards and all("leaseOwner" in item for item in store.items.values()))
    start, store.bill, start_s = store.bill, Bill(), sim_loop().time()
    fleet.put(5 * shards)  # so that rows have all that they ever have
    await asyncio.sleep(6 * failover_s)  # all are seen for long enough to pull, and have pulled
    store.bill = Bill()
    for member in fleet.members.values():
        member.wire.calls.clear()
    await asyncio.sleep(quiet_s)
    bill, calls = store.bill, Counter(call.operation for each in fleet.members.values() for call in each.wire.calls)
    quiet = Cost(
        {name: count / quiet_s for name, count in bill.requests.items()}, bill.reads / quiet_s, bill.writes / quiet_s
    )
    listings = calls["list"] * 60 / quiet_s
    row_bytes, worker_bytes = (max(map(size, items.values())) for items in (store.items, store.worker_items))
    await fleet.stopped()
    return Measured(start, start_s, quiet, listings, row_bytes, worker_bytes)


def figures(ours: Cost, shards: int, workers: int) -> list[str]:
    """Return the cells of one fleet: requests, then write and read units of kcl_py, the Java and the Elixir client."""
    units = [(each.writes, each.reads) for each in (ours, java(shards, workers), elixir(shards, workers))]
    return [f"{each:,.0f}" if each >= 10 else f"{each:.1f}" for each in (sum(ours.requests.values()), *chain(*units))]


def table(sizes: Sizes) -> Table:
    """Measure and compute."""
    shown = Table(title=f"a second of quiet fleets, failover_s {FAILOVER_S:g}; * computed")
    for column in ("shards", "workers", "requests", "WRU", "RRU", "Java\nWRU", "\nRRU", "Elixir\nWRU", "\nRRU"):
        shown.add_column(column, justify="right")
    for shards, workers in sizes:
        is_run = _is_run(shards, workers)
        ours = measured(shards, workers).quiet if is_run else steady(shards, workers)
        shown.add_row(f"{'' if is_run else '* '}{shards:,}", f"{workers:,}", *figures(ours, shards, workers))
    return shown


def starts(sizes: Sizes) -> Table:
    """Measure what a start takes, until every shard is held."""
    shown = Table(title="starts of whole fleets on a new stream")
    for column in ("shards", "workers", "all held after", "writes", "reads", "rows made", "takes", "scans"):
        shown.add_column(column, justify="right")
    for shards, workers in filter(lambda size: _is_run(*size), sizes):
        done = measured(shards, workers, quiet_s=1.0)
        bill = done.start
        counts = [bill.requests[name] for name in ("create", "take", "scan")]
        cells = (f"{each:,.0f}" for each in (bill.writes, bill.reads, *counts))
        shown.add_row(f"{shards:,}", str(workers), f"{done.start_s:.1f} s", *cells)
    return shown


def _is_run(shards: int, workers: int) -> bool:
    return shards <= MOST_SHARDS and workers <= MOST_WORKERS


def main(sizes: Sizes = SIZES) -> None:
    """Print both tables."""
    console = Console(width=110)
    console.print(table(sizes))
    console.print(starts(sizes))


if __name__ == "__main__":
    main()
