"""A processor that computes on the event loop stops every heartbeat: the worker says which code that is."""

import signal

from tests.processes.fleet import Fleet


def test_code_that_blocks_the_event_loop_is_named_while_it_does(fleet: Fleet) -> None:
    """With the hook, and file and line of what it is doing; once it is over, for how long that was."""
    fleet.create(1)
    fleet.put(10)
    worker = fleet.start("Blocking")
    blocked = worker.until_logged("loop.blocked")[0]
    assert blocked["code"] == "Blocking.process_records"
    assert "compute (processors.py:" in blocked["at"]
    assert blocked["for_s"] >= 0.5
    (fleet.folder / "computed").touch()
    [again] = worker.until_logged("loop.runs_again")
    assert again["after_s"] >= blocked["for_s"]
    fleet.until_delivered(10)
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
