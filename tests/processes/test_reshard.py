"""A split and a merge while two workers run, one of which is killed in the middle."""

import signal
from typing import Any

from tests.processes.deliveries import (
    beyond,
    check_in_order,
    check_keys_in_order,
    check_parents_before_children,
    firsts,
    twice,
)
from tests.processes.fleet import Fleet


def test_split_merge_and_crash_lose_nothing_and_keep_order(fleet: Fleet) -> None:
    """Every record is delivered, those of a key in their order, and those of a parent before its children's."""
    fleet.create(2)
    fleet.put(2_000)
    options: dict[str, Any] = {"fetch__idle_s": 0.2, "PACE_S": 0.02, "delivery__batch__max_records": 10}
    victim = fleet.start(leases__max_leases=1, **options)
    [taken] = victim.until_logged("lease.taken")
    survivor = fleet.start(**options)
    survivor.until_logged("shard.first_record")
    split = taken["shard_id"]
    [other] = {*fleet.shards()} - {split}
    fleet.split(split)
    fleet.put(1_000)
    victim.kill()
    stored = fleet.checkpoints()
    fleet.merge(*fleet.neighbours(other))
    fleet.put(1_000)
    fleet.until_delivered(4_000)
    survivor.send(signal.SIGTERM)
    assert survivor.wait() == 0
    deliveries = fleet.deliveries()
    assert len(firsts(deliveries)) == fleet.put_count
    assert twice(deliveries) <= beyond(deliveries, victim.pid, stored)
    check_in_order(deliveries, fleet.put_to)
    check_keys_in_order(deliveries)
    check_parents_before_children(deliveries, fleet.shards())
    states = sorted(shard["state"] for shard in fleet.status()["shards"])
    assert states == ["ended"] * 3 + ["free"] * 2
