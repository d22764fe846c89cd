"""Several workers share a stream: who gets what how fast when one comes, leaves or dies, and that nothing is lost.

Instants are those of the workers' own events and records. F, H and T as in docs/leases.md: the failover time, a
third and a tenth of it.
"""

import math
import signal
import time
from typing import Any

from tests.processes.deliveries import Delivery, beyond, check_in_order, moves, stall_s, twice
from tests.processes.fleet import Fleet
from tests.processes.process import Process, at

BUSY: dict[str, Any] = {"PACE_S": 0.05, "delivery__batch__max_records": 10}
"""Batches that take a while, so that a backlog lasts: 200 records a second of each shard at most."""
BACKLOG = 16_000
"""Work of 20 s for four shards."""


def start_pair(fleet: Fleet, *, failover_s: float = 3) -> tuple[Process, Process]:
    """Start two workers; each has two of the four shards, and has for some time."""
    options = {**BUSY, "leases__failover_s": failover_s}
    one = fleet.start(leases__max_leases=2, **options)
    one.until_logged("shard.first_record", 2)
    other = fleet.start(**options)
    other.until_logged("shard.first_record", 2)
    fleet.until_delivered(len(fleet.deliveries()) + 1_600)
    return one, other


def check_moves(deliveries: list[Delivery], *, count: int) -> None:
    """There were so many moves, and none kept its shard waiting for half a second."""
    pauses_s = [move.pause_s for move in moves(deliveries)]
    assert len(pauses_s) == count
    assert max(pauses_s) < 0.5 + stall_s(deliveries)


def test_joining_worker_owns_its_share_within_f_and_4_s(fleet: Fleet) -> None:
    """Of 4 busy shards it has 2; they pause for less than half a second, and nothing comes twice."""
    fleet.create(4)
    fleet.put(BACKLOG)
    first = fleet.start(**BUSY)
    first.until_logged("shard.first_record", 4)
    second = fleet.start(**BUSY)
    taken = second.until_logged("lease.taken", 2, why="handoff")
    second.until_logged("shard.first_record", 2)
    first.kill()
    second.kill()
    [started] = second.logged("worker.started")
    deliveries = fleet.deliveries()
    assert at(taken[-1]) - at(started) < 3 + 4 + stall_s(deliveries)
    check_moves(deliveries, count=2)
    check_in_order(deliveries, fleet.put_to)
    assert twice(deliveries) == set()


def test_leaving_workers_shards_are_owned_within_2_t(fleet: Fleet) -> None:
    """After SIGTERM they are handed over: half a second, nothing twice, and the leaver ends in order."""
    fleet.create(4)
    fleet.put(BACKLOG)
    leaver, survivor = start_pair(fleet, failover_s=10)
    left_at = time.time()
    leaver.send(signal.SIGTERM)
    taken = survivor.until_logged("lease.taken", 2, why="handoff")
    survivor.until_logged("shard.first_record", 4)
    assert leaver.wait() == 0
    survivor.kill()
    deliveries = fleet.deliveries()
    assert at(taken[-1]) - left_at < 2 * 1 + stall_s(deliveries)
    check_moves(deliveries, count=2)
    check_in_order(deliveries, fleet.put_to)
    assert twice(deliveries) == set()


def test_killed_workers_shards_are_owned_within_f_and_h(fleet: Fleet) -> None:
    """They go on where its stored checkpoints are: what it got after them comes again, and nothing else."""
    fleet.create(4)
    fleet.put(BACKLOG)
    victim, survivor = start_pair(fleet)
    victim.kill()
    killed_at, stored = time.time(), fleet.checkpoints()
    taken = survivor.until_logged("lease.taken", 2, why="expired")
    survivor.until_logged("shard.first_record", 4)
    survivor.kill()
    deliveries = fleet.deliveries()
    assert at(taken[-1]) - killed_at < 3 + 1 + 0.5 + stall_s(deliveries)
    check_in_order(deliveries, fleet.put_to)
    assert twice(deliveries) <= beyond(deliveries, victim.pid, stored)


def test_worker_that_was_frozen_delivers_nothing_it_no_longer_holds(fleet: Fleet) -> None:
    """Stopped for longer than its leases live and then continued, it finds by its own clock that they are over."""
    fleet.create(4)
    fleet.put(BACKLOG)
    sleeper, survivor = start_pair(fleet)
    sleeper.send(signal.SIGSTOP)
    stored = fleet.checkpoints()
    survivor.until_logged("lease.taken", 2, why="expired")
    woken_at = time.time()
    sleeper.send(signal.SIGCONT)
    sleeper.until_logged("lease.lost", 2)
    fleet.until_all_go_on(woken_at)
    for worker in fleet.workers:
        worker.kill()
    deliveries = fleet.deliveries()
    again = {event["shard_id"]: at(event) for event in sleeper.logged("lease.taken") if at(event) > woken_at}
    late = [delivery for delivery in deliveries if delivery.worker == sleeper.pid and delivery.at > woken_at]
    assert all(delivery.at > again.get(delivery.shard, math.inf) for delivery in late)
    check_in_order(deliveries, fleet.put_to)
    assert twice(deliveries) <= beyond(deliveries, sleeper.pid, stored)


def test_rolling_restart_delivers_everything_once(fleet: Fleet) -> None:
    """Each worker is replaced while the shards are busy; all end in order, and the new ones have everything."""
    fleet.create(4)
    fleet.put(BACKLOG)
    replaced = start_pair(fleet)
    new: list[int] = []
    for old in replaced:
        worker = fleet.start(**BUSY)
        worker.until_logged("worker.ready")
        new.append(worker.pid)
        old.send(signal.SIGTERM)
        assert old.wait() == 0
        [stopped] = old.logged("worker.stopped")
        assert (stopped["clean"], stopped["unfinished"]) == (True, 0)
    ended_at = time.time()
    fleet.put(400)
    fleet.until_all_go_on(ended_at)
    for worker in fleet.workers:
        worker.kill()
    deliveries = fleet.deliveries()
    assert {delivery.worker for delivery in deliveries if delivery.at > ended_at} <= set(new)
    check_in_order(deliveries, fleet.put_to)
    assert twice(deliveries) == set()
