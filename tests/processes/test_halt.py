"""A shard whose processor keeps failing halts: loudly, in its place, and without harm to the others."""

import signal

from tests.processes.deliveries import check_in_order, firsts, twice
from tests.processes.fleet import Fleet


def test_halted_shard_is_shown_and_tried_again_by_a_restarted_worker(fleet: Fleet) -> None:
    """The worker keeps running and delivers the other shard; nothing of the halted one is passed over."""
    fleet.create(2)
    fleet.put(1_000)
    bad, good = fleet.put_to
    poison = fleet.put_to[bad][100]
    worker = fleet.start("Picky", POISON=poison, delivery__retries=1, delivery__backoff_s=0.05, fetch__idle_s=0.2)
    [halted] = worker.until_logged("shard.halted")
    fleet.put(1_000)
    fleet.until_delivered(len(fleet.put_to[good]), good)
    shown = fleet.until_status(lambda status: status["totals"]["halted"] == 1)
    assert (halted["shard_id"], halted["attempts"], halted["error"]) == (bad, 2, "ValueError: cannot stomach this")
    [shard] = [shard for shard in shown["shards"] if shard["shard"] == bad]
    assert shard["halted"] == {"error": halted["error"], "position": halted["position"]}
    assert shard["state"] == "owned"
    assert "restart this worker" in halted["how_to_resume"]
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0, "nothing was cut off by the stop"
    fleet.start("Picky")
    fleet.until_delivered(2_000)
    deliveries = fleet.deliveries()
    assert poison in {delivery.number for delivery in firsts(deliveries)}
    check_in_order(deliveries, fleet.put_to)
    assert twice(deliveries) == set()
    assert fleet.until_status(lambda status: status["totals"]["halted"] == 0)
