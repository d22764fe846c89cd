"""What a running worker does when it is told to stop, or asked what it is doing."""

import os
import signal
import socket
import time
from typing import Any

import pytest

from tests.processes.deliveries import check_in_order, twice
from tests.processes.fleet import Fleet
from tests.processes.process import the_error

SLOW: dict[str, Any] = {"PACE_S": 0.01, "delivery__batch__max_records": 10}
"""So that a signal comes in the middle."""


def test_sigterm_leaves_nothing_held_and_nothing_to_come_again(fleet: Fleet) -> None:
    """Exit 0, leases free, checkpoints stored, the worker's row gone; the next worker goes on where this one was."""
    fleet.create(2)
    fleet.put(4_000)
    worker = fleet.start(**SLOW)
    fleet.until_delivered(500)
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    assert worker.err.lines[-1].startswith("{"), "no error line"
    last = {delivery.shard: str(delivery.sequence) for delivery in fleet.deliveries()}
    status = fleet.status()
    assert [(shard["state"], shard["owner"]) for shard in status["shards"]] == [("free", None)] * 2
    assert {shard["shard"]: shard["checkpoint"] for shard in status["shards"]} == last
    assert status["workers"] == []
    fleet.start()
    fleet.until_delivered(4_000)
    check_in_order(fleet.deliveries(), fleet.put_to)
    assert twice(fleet.deliveries()) == set()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_second_signal_ends_the_worker_at_once(fleet: Fleet, number: int, code: int) -> None:
    """Long before its grace, and with a line that says what this means."""
    fleet.create(1)
    fleet.put(10)
    worker = fleet.start("Stuck", grace_s=300)
    fleet.until_delivered(10)
    worker.send(number)
    worker.until_logged("worker.draining")
    worker.send(number)
    assert worker.wait() == code
    assert the_error(worker.err.lines).startswith(f"stopped at once by a second {signal.Signals(number).name}; ")


def test_end_of_its_terminal_stops_a_worker_in_order(fleet: Fleet) -> None:
    """The whole group hears of it, children too, and that twice."""
    fleet.create(1)
    fleet.put(10)
    worker = fleet.start("Muttering", delivery__executor="process")
    fleet.until_delivered(10)
    for _ in range(2):
        os.killpg(worker.pid, signal.SIGHUP)
    assert worker.wait() == 0
    assert worker.logged("batch.failed") == []
    assert fleet.status()["shards"][0]["state"] == "free"


def test_sigterm_ends_a_worker_that_waits_for_aws(fleet: Fleet) -> None:
    """It is not ready, so there is nothing to finish: exit 0 in no time."""
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        address = f"http://127.0.0.1:{nobody.getsockname()[1]}"
    worker = fleet.start(aws__endpoint=address, aws__start_timeout_s=300)
    worker.until_logged("start.waiting")
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    assert worker.logged("worker.started") == []


def test_sigusr1_shows_the_tree_of_a_worker_that_goes_on(fleet: Fleet) -> None:
    """Every actor with its state, on stderr."""
    fleet.create(1)
    worker = fleet.start(fetch__idle_s=0.2)
    worker.until_logged("shard.started")
    worker.send(signal.SIGUSR1)
    for actor in ("coordinator", "shardId-000000000000", "lease", "pipeline", "producer"):
        assert "[" in worker.err.until_said(f"{actor} [")
    fleet.put(10)
    fleet.until_delivered(10)


@pytest.mark.parametrize("processor", ["Stuck", "Stubborn"])
def test_processor_that_never_returns_costs_the_grace_and_exit_4(fleet: Fleet, processor: str) -> None:
    """What it had comes again, even if it ignores being cancelled: the lease is free, its checkpoint before them."""
    fleet.create(1)
    fleet.put(30)
    worker = fleet.start(processor, grace_s=0.5, delivery__batch__max_records=10)
    fleet.until_delivered(10)
    told_at = time.time()
    worker.send(signal.SIGTERM)
    assert worker.wait() == 4
    assert time.time() - told_at > 0.5
    [stopped] = worker.logged("worker.stopped")
    assert (stopped["clean"], stopped["unfinished"]) == (False, 10)
    assert "found 10; they will come again" in the_error(worker.err.lines)
    assert [row["checkpoint"]["S"] for row in fleet.rows().values()] == ["TRIM_HORIZON"]
    fleet.start()
    fleet.until_delivered(30)
    assert twice(fleet.deliveries()) == set(range(10))


def test_interrupt_raised_by_a_processor_ends_the_worker_with_one_line(fleet: Fleet) -> None:
    """It ends as a crash does: the lease expires, the records come again, and the line says so."""
    fleet.create(1)
    fleet.put(10)
    worker = fleet.start("Interrupting")
    assert worker.wait() == 1
    assert "KeyboardInterrupt" in the_error(worker.err.lines)
    fleet.start()
    fleet.until_delivered(10)
