"""AWS goes away under a running worker: for a while, or for good."""

import signal
from pathlib import Path

from tests.processes.conftest import a_fleet, running_local
from tests.processes.deliveries import beyond, check_in_order, twice
from tests.processes.fleet import Fleet
from tests.processes.process import Process, the_error


def test_worker_goes_on_after_an_outage_longer_than_its_leases(aws_and_fleet: tuple[Process, Fleet]) -> None:
    """It gives its shards up by its own deadline, and has them again when AWS answers; nothing is passed over."""
    aws, fleet = aws_and_fleet
    fleet.create(2)
    fleet.put(1_000)
    worker = fleet.start()
    fleet.until_delivered(1_000)
    stored = fleet.checkpoints()
    aws.send(signal.SIGSTOP)
    worker.until_logged("lease.lost", 2)
    aws.send(signal.SIGCONT)
    fleet.put(1_000)
    fleet.until_delivered(2_000)
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    check_in_order(fleet.deliveries(), fleet.put_to)
    assert twice(fleet.deliveries()) <= beyond(fleet.deliveries(), worker.pid, stored)


def test_worker_that_aws_no_longer_answers_stops_when_its_grace_ends(aws_and_fleet: tuple[Process, Fleet]) -> None:
    """It can neither checkpoint nor let go: the leases expire, and exit 4 says that records will come again."""
    aws, fleet = aws_and_fleet
    fleet.create(2)
    fleet.put(100)
    worker = fleet.start(grace_s=1)
    fleet.until_delivered(100)
    aws.kill()
    worker.until_logged("coordinator.request_failed")
    worker.send(signal.SIGTERM)
    assert worker.wait() == 4
    assert [event["clean"] for event in worker.logged("worker.stopped")] == [False]
    assert the_error(worker.err.lines).startswith(f"cannot let go of the leases in table '{fleet.app}': ")


def test_worker_goes_on_where_it_was_when_its_local_aws_is_killed_and_started_again(tmp_path: Path) -> None:
    """Records, leases and checkpoints were kept in its folder; no second worker is needed, and no record comes anew."""
    data = ("--data", str(tmp_path / "aws"))
    with running_local(tmp_path, *data) as (aws, url), a_fleet(url, tmp_path) as fleet:
        fleet.create(2)
        fleet.put(1_000)
        worker = fleet.start()
        fleet.until_delivered(1_000)
        stored = fleet.checkpoints()
        aws.kill()
        with running_local(tmp_path, *data, "--port", url.rpartition(":")[2]):
            assert {shard: number for shard, number in fleet.checkpoints().items() if number < stored[shard]} == {}
            fleet.put(1_000)
            fleet.until_delivered(2_000)
            worker.send(signal.SIGTERM)
            assert worker.wait() == 0
    check_in_order(fleet.deliveries(), fleet.put_to)
    assert twice(fleet.deliveries()) <= beyond(fleet.deliveries(), worker.pid, stored)
