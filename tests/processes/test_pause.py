"""``kcl pause``, ``kcl resume`` and ``kcl seek``, from outside a fleet that runs."""

import signal

from tests.processes.deliveries import check_in_order
from tests.processes.fleet import Fleet

RESTED = "paused, and nothing of that in a processor's hands\n"


def test_stream_stands_still_until_it_is_resumed_also_with_another_worker(fleet: Fleet) -> None:
    """Whoever reads it; the status says since when and why, and in the end nothing is missing or twice."""
    fleet.create(2)
    fleet.put(20)
    worker = fleet.start()
    fleet.until_delivered(20)
    done = fleet.run("pause", "worker.yaml", "--why", "the database is being moved")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].startswith("shardId-000000000000: ")
    assert done.stdout.endswith(f"2 changes made\n2 shards {RESTED}")
    fleet.put(20)
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    other = fleet.start()
    other.until_logged("shard.paused", 2, of="stream", why="the database is being moved")
    status = fleet.until_status(lambda status: status["totals"]["owned"] == 2)
    assert {shard["paused"]["of"] for shard in status["shards"]} == {"stream"}
    assert status["totals"]["paused"] == 2
    assert len(fleet.deliveries()) == 20
    again = fleet.run("pause", "worker.yaml")
    assert (again.returncode, again.stdout) == (0, f"nothing to do\n2 shards {RESTED}")
    done = fleet.run("resume", "worker.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("2 changes made\n")
    fleet.until_delivered(40)
    assert len(fleet.deliveries()) == 40
    check_in_order(fleet.deliveries(), fleet.put_to)
    assert fleet.run("resume", "worker.yaml").stdout == "nothing to do\n"


def test_one_shard_is_paused_and_the_other_goes_on(fleet: Fleet) -> None:
    """Before any worker runs, too: nobody has to hold it."""
    fleet.create(2)
    fleet.put(20)
    worker = fleet.start()
    fleet.until_delivered(20)
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    shard, other = sorted(fleet.put_to)
    done = fleet.run("pause", "worker.yaml", "--shard", shard)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(f"1 change made\n1 shard {RESTED}")
    before = len(fleet.put_to[shard])
    fleet.put(20)
    fleet.start()
    fleet.until_delivered(len(fleet.put_to[other]), other)
    assert sum(each.shard == shard for each in fleet.deliveries()) == before
    assert fleet.run("resume", "worker.yaml", "--shard", shard).returncode == 0
    fleet.until_delivered(40)


def test_seek_moves_all_shards_that_are_being_read(fleet: Fleet) -> None:
    """As ``kcl leases set`` moves one; a number is of one shard."""
    fleet.create(2)
    fleet.put(20)
    fleet.start()
    fleet.until_delivered(20)
    done = fleet.run("seek", "worker.yaml", "trim_horizon", "--yes")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(" -> TRIM_HORIZON, by its holder ") == done.stdout.count(": applied; now ") == 2
    fleet.until_delivered_times(40)
    failed = fleet.run("seek", "worker.yaml", "5", "--yes")
    assert (failed.returncode, failed.stdout) == (2, "")
    assert failed.stderr == "error: cannot move several shards to 5: expected one --shard, found 0\n"


def test_shard_that_has_halted_goes_on_when_it_is_resumed(fleet: Fleet) -> None:
    """Without a restart of its worker, in a new ownership."""
    fleet.create(1)
    fleet.put(10)
    [shard] = fleet.shards()
    worker = fleet.start("Picky", POISON=fleet.put_to[shard][5], delivery__retries=0)
    [halted] = worker.until_logged("shard.halted")
    assert f"kcl resume FILE --shard {shard}" in halted["how_to_resume"]
    fleet.until_status(lambda status: status["shards"][0]["halted"] is not None)
    done = fleet.run("resume", "worker.yaml", "--shard", shard)
    assert done.returncode == 0, done.stderr
    plan, answer = done.stdout.splitlines()
    assert plan.startswith(f"{shard}: halted at ")
    assert answer.startswith(f"{shard}: applied; now ")
    [_, again] = worker.until_logged("shard.halted", 2)
    assert again["epoch"] > halted["epoch"]


def test_what_cannot_be_paused_says_why(fleet: Fleet) -> None:
    """One sentence."""
    fleet.create(1)
    fleet.put(1)
    fleet.start()
    fleet.until_delivered(1)
    failed = fleet.run("pause", "worker.yaml", "--shard", "none")
    assert failed.returncode == 1
    assert failed.stderr.startswith("error: cannot change 'none': expected a shard with a row in ")
    failed = fleet.run("pause", "worker.yaml", "--why", "x" * 81)
    assert failed.returncode == 2
    assert failed.stderr == "error: cannot pause for that reason: expected --why of 1 to 80 characters, found 81\n"
