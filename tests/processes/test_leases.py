"""``kcl leases``: what an operator does to a fleet that is not running, and what a fleet then does."""

import json
import signal

from tests.processes.deliveries import check_in_order
from tests.processes.fleet import Fleet


def stopped(fleet: Fleet, records: int) -> None:
    """Have a worker deliver so many records, and stop it."""
    worker = fleet.start()
    fleet.until_delivered(records)
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0


def test_show_tells_each_row_with_all_its_fields(fleet: Fleet) -> None:
    """As JSON lines, or in words."""
    fleet.create(2)
    fleet.put(20)
    stopped(fleet, 20)
    shown = fleet.run("leases", "show", "worker.yaml", "--json")
    rows = {row["key"]: row for row in map(json.loads, shown.stdout.splitlines())}
    assert rows.keys() == fleet.rows().keys()
    assert all(row["checkpoint"].isdigit() and row["native"]["stream"] for row in rows.values())
    text = fleet.run("leases", "show", "worker.yaml").stdout
    assert f"shardId-000000000000: after {rows['shardId-000000000000']['checkpoint']}, free, counter " in text


def test_set_has_one_shard_read_again_from_there(fleet: Fleet) -> None:
    """After a sequence number; the other shard goes on where it was."""
    fleet.create(2)
    fleet.put(20)
    stopped(fleet, 20)
    shard, other = sorted(fleet.put_to)
    third = [each for each in fleet.deliveries() if each.shard == shard][2]
    done = fleet.run("leases", "set", "worker.yaml", "--shard", shard, "--to", str(third.sequence), "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0].endswith(f" -> after {third.sequence}")
    fleet.start()
    fleet.until_delivered_times(2 * len(fleet.put_to[shard]) - 3, shard)
    assert sum(each.shard == other for each in fleet.deliveries()) == len(fleet.put_to[other])


def test_reset_has_the_stream_read_anew_also_after_a_split(fleet: Fleet) -> None:
    """As if nobody had ever read it: parents first, nothing left out."""
    fleet.create(1)
    fleet.put(20)
    [shard] = fleet.shards()
    fleet.split(shard)
    fleet.put(20)
    stopped(fleet, 40)
    done = fleet.run("leases", "reset", "worker.yaml", "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    assert {key: row["checkpoint"] for key, row in fleet.rows().items()} == {shard: {"S": "TRIM_HORIZON"}}
    fleet.start()
    fleet.until_delivered_times(80)
    check_in_order(fleet.deliveries()[40:], fleet.put_to)


def test_release_frees_what_a_killed_worker_held(fleet: Fleet) -> None:
    """So the next one need not wait for it to expire."""
    fleet.create(2)
    fleet.put(10)
    worker = fleet.start()
    fleet.until_delivered(10)
    worker.send(signal.SIGKILL)
    worker.wait()
    done = fleet.run("leases", "release", "worker.yaml", "--yes")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "2 changes made")
    assert not any("leaseOwner" in row for row in fleet.rows().values())
    assert fleet.run("leases", "release", "worker.yaml", "--yes").stdout == "nothing to do\n"


def test_nothing_is_changed_while_a_worker_runs(fleet: Fleet) -> None:
    """It is named."""
    fleet.create(1)
    fleet.put(10)
    fleet.start(leases__worker_id="alpha")
    fleet.until_delivered(10)
    done = fleet.run("leases", "reset", "worker.yaml", "--yes")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        f"error: cannot change leases of '{fleet.app}': expected that no worker runs, found alpha/"
    )


def test_nothing_is_changed_that_nobody_has_agreed_to(fleet: Fleet) -> None:
    """The plan is shown, and without a terminal to ask on it needs --yes."""
    fleet.create(1)
    fleet.put(10)
    stopped(fleet, 10)
    before = fleet.rows()
    done = fleet.run("leases", "reset", "worker.yaml", "--start", "latest")
    assert (done.returncode, done.stderr) == (
        2,
        "error: cannot ask whether to make 1 changes: expected --yes or a terminal, found neither\n",
    )
    assert done.stdout.startswith("shardId-000000000000: after ")
    assert " -> LATEST at " in done.stdout
    assert fleet.rows() == before
    for arguments, error in (
        (
            ("set", "worker.yaml", "--shard", "none", "--to", "latest"),
            "cannot change 'none': expected a shard with a row",
        ),
        (
            ("reset", "worker.yaml", "--start", "yesterday"),
            "cannot begin at 'yesterday': expected trim_horizon, latest",
        ),
    ):
        failed = fleet.run("leases", *arguments, "--yes")
        assert failed.stderr.startswith(f"error: {error}"), failed.stderr
        assert failed.returncode in (1, 2)
