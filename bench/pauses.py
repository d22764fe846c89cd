"""How long a shard stands still as it moves from one worker to another, and how soon a fleet has its shares.

Two processes share 16 busy shards of ``kcl local``, with the default options. A third joins, one is stopped by SIGTERM,
one is killed. A pause lasts from the last hand-over by the one worker to the first by the other; it holds what a batch
takes, 0.05 s. Nothing is asserted.
"""

import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench import first_record
from bench.figures import Figure, show
from examples.fleet.figures import Act, Delivery, Row, rows
from tests.processes.conftest import a_fleet, running_local
from tests.processes.fleet import Fleet
from tests.processes.process import Process, at

SHARDS = 16
FAILOVER_S = 10.0
"""The default."""
TICK_S, HEARTBEAT_S, GRACE_S = FAILOVER_S / 10, FAILOVER_S / 3, 0.5
BUSY: dict[str, Any] = {"PACE_S": 0.05, "delivery__batch__max_records": 10, "leases__failover_s": FAILOVER_S}
"""Batches that take a while, so that a backlog lasts: 200 records a second of each shard at most."""
BACKLOG = 160_000
"""Work of 50 s."""
SHARE = SHARDS // 3
RUNS = 3

BALANCE, STOP, KILL = "balance", "SIGTERM", "kill -9"
PROMISED_S = {BALANCE: GRACE_S, STOP: TICK_S + GRACE_S, KILL: FAILOVER_S + HEARTBEAT_S + GRACE_S}
JAVA = {
    STOP: "(10 to 30)",
    KILL: "(10 to 30; 130 to 150)",
}
"""Source: the row keeps its owner either way, so it expires (10 s), and the leader looks each 20 s; its lock stays for
120 s if it dies itself, and nothing is assigned meanwhile."""


class Run:
    """One life of a fleet of three."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._acts: list[Act] = []
        self.joined_s = 0.0
        """From when the third worker says that it has started until all have their share."""

    def live(self) -> dict[str, Row]:
        """Return what each act has cost."""
        fleet = self._fleet
        fleet.create(SHARDS)
        fleet.put(BACKLOG)
        leaver = fleet.start(leases__max_leases=SHARDS // 2, **BUSY)
        leaver.until_logged("shard.first_record", SHARDS // 2)
        victim = fleet.start(**BUSY)
        victim.until_logged("shard.first_record", SHARDS // 2)
        self._act(BALANCE, self._join)
        self._act(STOP, lambda: self._stop(leaver))
        self._act(KILL, victim.kill)
        found = [Delivery(each.at, each.worker, (each.shard, each.sequence)) for each in fleet.deliveries()]
        return {row.act.name: row for row in rows(self._acts, sorted(found))}

    def _act(self, name: str, act: Callable[[], None]) -> None:
        began_at = time.time()
        act()
        self._fleet.until_all_go_on(time.time())
        self._acts.append(Act(name, began_at, time.time()))

    def _join(self) -> None:
        third = self._fleet.start(**BUSY)
        taken = third.until_logged("lease.taken", SHARE, why="handoff")
        [started] = third.logged("worker.started")
        self.joined_s = at(taken[-1]) - at(started)

    def _stop(self, leaver: Process) -> None:
        leaver.send(signal.SIGTERM)
        leaver.wait()


def figures(runs: int) -> Iterator[Figure]:
    """Run it and tell what it took."""
    acts: dict[str, list[Row]] = {name: [] for name in PROMISED_S}
    joined_s = []
    with tempfile.TemporaryDirectory() as name, running_local(Path(name)) as (_, url):
        for number in range(runs):
            folder = Path(name) / str(number)
            folder.mkdir()
            with a_fleet(url, folder) as fleet:
                run = Run(fleet)
                for act, row in run.live().items():
                    acts[act].append(row)
                joined_s.append(run.joined_s)
    for act, found in acts.items():
        pauses_s = [pause for row in found for pause in row.pauses_s]
        yield Figure(f"pause at {act}", pauses_s, PROMISED_S[act], JAVA.get(act, "-"), sum(row.twice for row in found))
    yield Figure("third worker to even shares", joined_s, FAILOVER_S + 4 * TICK_S)


def measure_and_show(runs: int) -> None:
    """Print all in one table."""
    title = f"{SHARDS} busy shards, failover time {FAILOVER_S:g} s, {runs} runs on one machine"
    show(title, [*figures(runs), *first_record.figures(runs)])


if __name__ == "__main__":
    measure_and_show(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS)
