"""A shard whose processor keeps failing halts: loudly, in its place, and without harm to the others."""

import signal

from tests.processes.deliveries import check_in_order, firsts, twice
from tests.processes.fleet import Fleet
from tests.processes.process import the_error


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


def test_worker_that_is_to_exit_on_a_halt_lets_go_of_its_shards_first(fleet: Fleet) -> None:
    """Exit code 3, one line that names shard and record, no lease left, and nothing passed over or twice."""
    fleet.create(2)
    fleet.put(1_000)
    bad, _ = fleet.put_to
    poison = fleet.put_to[bad][100]
    worker = fleet.start("Picky", "--exit-on-halt", POISON=poison, delivery__retries=0)
    assert worker.wait() == 3
    assert the_error(worker.err.lines).startswith(f"cannot go on with '{bad}' of stream ")
    shown = fleet.status()
    assert {shard["state"] for shard in shown["shards"]} == {"free"}
    fleet.start("Picky")
    fleet.until_delivered(1_000)
    deliveries = fleet.deliveries()
    check_in_order(deliveries, fleet.put_to)
    assert twice(deliveries) == set()


def test_poison_is_found_and_passed_over_by_hand_as_the_leases_page_says(fleet: Fleet) -> None:
    """One record at a time the halt names the poison itself; setting the shard there skips that one and no other."""
    fleet.create(1)
    fleet.put(200)
    [shard] = fleet.shards()
    poison = fleet.put_to[shard][100]
    found: dict[str, object] = {"POISON": poison, "delivery__retries": 0, "fetch__idle_s": 0.2}
    worker = fleet.start("Picky", **found)
    [halted] = worker.until_logged("shard.halted")
    fleet.until_status(lambda status: status["totals"]["halted"] == 1)
    first = halted["position"]
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    worker = fleet.start("Picky", **found, delivery__batch__max_records=1)
    [halted] = worker.until_logged("shard.halted")
    fleet.until_status(lambda status: status["totals"]["halted"] == 1)
    assert int(halted["position"]) > int(first), "it was the first of its batch"
    shown = fleet.run("leases", "show", "worker.yaml").stdout
    assert f", halted at {halted['position']}: ValueError: cannot stomach this, counter " in shown
    done = fleet.run("leases", "set", "worker.yaml", "--shard", shard, "--to", halted["position"], "--yes")
    assert (done.returncode, done.stdout.splitlines()[-1].startswith(f"{shard}: applied; now after ")) == (0, True)
    fleet.until_delivered(199)
    assert {delivery.number for delivery in fleet.deliveries()} == set(range(200)) - {poison}
    assert fleet.until_status(lambda status: status["totals"]["halted"] == 0)
