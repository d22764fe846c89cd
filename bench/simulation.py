"""How much simulated life a second of one core buys: an hour of a quiet fleet, and the seeds of ``make sim``.

python -m bench.simulation [SEEDS]
"""

import sys
from statistics import mean, median

from msgspec.structs import replace

from tests.sim.plan import FAIR, Event
from tests.sim.run import live, lives

HOUR = replace(
    FAIR,
    seed=1,
    slots=2,
    shards=4,
    calm_s=3600.0,
    put_every_s=1.0,
    options={"leases": {"failover_s": 10, "handoff_timeout_s": 20}},
    events=(Event(0.0, "start"), Event(0.0, "start", 1)),
)
"""Two workers, four shards, the default options, some six small records a second."""


def main() -> None:
    """Print both figures."""
    hour = live(HOUR)
    print(f"an hour of 2 workers and 4 shards: {hour.cpu_s:.1f} CPU s, {hour.steps} steps; {hour.broken or 'good'}")
    seeds = int(sys.argv[1]) if sys.argv[1:] else 40
    results = lives(range(seeds))
    each_s = [result.cpu_s for result in results]
    virtual_s = mean(result.virtual_s for result in results)
    print(f"{seeds} seeds: {mean(each_s):.2f} CPU s each, median {median(each_s):.2f}, of {virtual_s:.0f} virtual s")


if __name__ == "__main__":
    main()
