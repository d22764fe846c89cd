"""A worker whose log takes nothing: its disk is full, or who reads it has left."""

import signal
from contextlib import closing

import pytest

from tests.processes.fleet import Fleet
from tests.processes.process import KCL, Process


@pytest.mark.parametrize("executor", ["thread", "process"])
@pytest.mark.parametrize("place", ["2>/dev/full", "2>&-"])
def test_worker_goes_on_without_its_log(fleet: Fleet, place: str, executor: str) -> None:
    """It starts, delivers, stores how far it is and ends in order, whatever its hooks do to stderr themselves."""
    fleet.create(1)
    fleet.put(200)
    env = fleet.env(processor="processors:Muttering", delivery__executor=executor)
    command = f'exec "$0" "$@" {place}'
    with closing(Process("sh", "-c", command, KCL, "run", "worker.yaml", cwd=fleet.folder, env=env)) as worker:
        worker.out.until(lambda: len(worker.out.lines) >= 200, "200 records")
        worker.send(signal.SIGTERM)
        assert worker.wait() == 0
    _, shard, sequence, *_ = worker.out.lines[-1].split()
    assert fleet.checkpoints() == {shard: int(sequence)}
