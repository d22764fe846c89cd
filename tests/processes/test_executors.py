"""Hooks that block for ever off the event loop: how the worker ends, and what it leaves behind."""

import signal

from tests.processes.fleet import Fleet
from tests.processes.process import Process


def blocked(fleet: Fleet, executor: str) -> Process:
    """Start a worker and wait until its hook blocks."""
    fleet.create(1)
    fleet.put(1)
    worker = fleet.start("Blocked", delivery__executor=executor, grace_s=0.5)
    worker.out.until_said("shardId-000000000000")
    return worker


def test_thread_that_blocks_is_left_behind_and_named_at_the_stop(fleet: Fleet) -> None:
    """The worker ends all the same, and says that the record comes again."""
    worker = blocked(fleet, "thread")
    worker.send(signal.SIGTERM)
    assert worker.wait() == 4
    [left] = worker.logged("processor.abandoned")
    assert left["hook"] == "Blocked.process_records"
    assert worker.logged("loop.blocked") == []


def test_child_that_blocks_is_gone_before_the_worker_has_stopped(fleet: Fleet) -> None:
    """It is ended, so nothing is left behind. That its stdout, which is the worker's, ends shows that both are gone."""
    worker = blocked(fleet, "process")
    worker.send(signal.SIGTERM)
    assert worker.wait() == 4
    assert worker.logged("processor.abandoned") == []


def test_time_that_a_new_child_takes_to_begin_is_not_that_of_the_attempt(fleet: Fleet) -> None:
    """Else a hook that was too slow once has spent its repetitions without another call."""
    fleet.create(1)
    fleet.put(1)
    limits = {"delivery__executor": "process", "delivery__attempt_timeout_s": 1.5, "delivery__retries": 1}
    worker = fleet.start("HangsOnce", **limits)
    fleet.until_delivered(1)
    [failed] = worker.logged("batch.failed")
    assert failed["error"] == "TimeoutError: HangsOnce.process_records took longer than 1.5 s"


def test_child_ends_with_a_worker_that_is_killed(fleet: Fleet) -> None:
    """It sees that the line to the worker is cut, whatever its hook is at; its stdout ends, as above."""
    worker = blocked(fleet, "process")
    worker.send(signal.SIGKILL)
    assert worker.wait() == -signal.SIGKILL
