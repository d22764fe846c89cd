"""``kcl leases``: what an operator does to a fleet that is not running, and what a fleet then does."""

import json
import os
import signal
from threading import Event, Thread
from typing import Any

import pytest

from tests.processes.deliveries import check_in_order
from tests.processes.fleet import Fleet
from tests.processes.process import PATIENCE_S
from tests.processes.terminal import asking, on_terminal, until_shown
from tests.processes.test_watch import read_on

WATCHED = "watching for up to 3.5 s whether a worker runs\n"
ASKED = "waiting for up to 23 s for answers about 1 shard\n"


def stopped(fleet: Fleet, records: int) -> None:
    """Have a worker deliver so many records, and stop it."""
    worker = fleet.start()
    fleet.until_delivered(records)
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0


def killed(fleet: Fleet) -> None:
    """Have a worker deliver a record, and kill it: its row still names it."""
    fleet.create(1)
    fleet.put(1)
    worker = fleet.start()
    fleet.until_delivered(1)
    worker.kill()


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
    again = fleet.run("leases", "release", "worker.yaml", "--yes")
    assert (again.stdout, again.stderr) == ("nothing to do\n", ""), "and nothing is watched for that"


def test_nothing_is_changed_while_a_worker_runs(fleet: Fleet) -> None:
    """It is named, as soon as it has shown: long before the whole time is over."""
    fleet.create(1)
    fleet.put(10)
    fleet.start(leases__worker_id="alpha")
    fleet.until_delivered(10)
    done = fleet.run("leases", "reset", "worker.yaml", "--yes", leases__failover_s=2 * PATIENCE_S)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1].startswith(
        f"error: cannot change leases of '{fleet.app}': expected that no worker runs, found alpha/"
    )


def test_set_asks_the_worker_that_holds_the_shard_while_it_runs(fleet: Fleet) -> None:
    """It reads again from there, in a new epoch; the command says by whom, waits, and tells what became of it."""
    fleet.create(2)
    fleet.put(20)
    fleet.start(leases__worker_id="alpha")
    fleet.until_delivered(20)
    shard, other = sorted(fleet.put_to)
    third = [each for each in fleet.deliveries() if each.shard == shard][2]
    before = fleet.rows()[shard]
    done = fleet.run("leases", "set", "worker.yaml", "--shard", shard, "--to", str(third.sequence), "--yes")
    assert (done.returncode, done.stderr) == (0, WATCHED + ASKED)
    plan, answer = done.stdout.splitlines()
    holder = before["leaseOwner"]["S"]
    assert plan.startswith(f"{shard}: after ")
    assert plan.endswith(f" -> after {third.sequence}, by its holder {holder}")
    assert answer.startswith(f"{shard}: applied; now after ")
    assert answer.endswith(f", held by {holder}")
    fleet.until_delivered_times(2 * len(fleet.put_to[shard]) - 3, shard)
    again = [each for each in fleet.deliveries() if each.shard == shard][len(fleet.put_to[shard]) :]
    assert [each.number for each in again] == fleet.put_to[shard][3:]
    assert sum(each.shard == other for each in fleet.deliveries()) == len(fleet.put_to[other])
    row = fleet.rows()[shard]
    assert row["native"]["M"]["token"] != before["native"]["M"]["token"]


def test_nothing_is_asked_of_a_holder_that_hears_nothing(fleet: Fleet) -> None:
    """One that is no kcl_py worker, and renews the row all the same."""
    fleet.create(1)
    fleet.put(10)
    stopped(fleet, 10)
    [shard] = fleet.shards()
    at: dict[str, Any] = {"TableName": fleet.app, "Key": {"leaseKey": {"S": shard}}}
    is_over = Event()

    def renew() -> None:
        update = "SET leaseOwner = :o ADD leaseCounter :n"
        values = {":o": {"S": "java-1"}, ":n": {"N": "1"}}
        fleet.dynamodb.update_item(**at, UpdateExpression=update, ExpressionAttributeValues=values)

    def go_on() -> None:
        while not is_over.wait(0.5):
            renew()

    renew()
    holder = Thread(target=go_on)
    holder.start()
    failed = fleet.run("leases", "set", "worker.yaml", "--shard", shard, "--to", "trim_horizon", "--yes")
    is_over.set()
    holder.join()
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr == (
        f"{WATCHED}error: cannot ask java-1 about '{shard}': "
        "expected a kcl_py worker to hold it, found another; stop it\n"
    )
    assert "request" not in fleet.rows()[shard]["native"]["M"]


def test_release_asks_a_worker_at_work_for_the_shards_that_are_named(fleet: Fleet) -> None:
    """Another takes it; what nobody has named stays with whoever is at work."""
    fleet.create(2)
    fleet.put(20)
    fleet.start()
    fleet.until_delivered(20)
    assert fleet.run("leases", "release", "worker.yaml", "--yes").stdout == "nothing to do\n"
    failed = fleet.run("leases", "release", "worker.yaml", "--shard", "none", "--yes")
    assert failed.stderr.startswith("error: cannot change 'none': expected a shard with a row"), "before it is watched"
    shard = min(fleet.put_to)
    holder = fleet.rows()[shard]["leaseOwner"]["S"]
    done = fleet.run("leases", "release", "worker.yaml", "--shard", shard, "--yes")
    assert (done.returncode, done.stderr) == (0, WATCHED + ASKED)
    plan, answer = done.stdout.splitlines()
    assert plan == f"{shard}: held by {holder} -> free, by its holder {holder}"
    assert answer.startswith(f"{shard}: applied; now after ")
    fleet.put(20)
    fleet.until_delivered(40)


def test_request_that_nobody_answers_is_told_shown_and_withdrawn(fleet: Fleet) -> None:
    """A second one is refused while it stands."""
    fleet.create(1)
    fleet.put(10)
    worker = fleet.start("Stuck", leases__handoff_timeout_s=60)
    fleet.until_delivered(10)
    [shard] = fleet.shards()
    asked = ("leases", "set", "worker.yaml", "--shard", shard, "--to", "trim_horizon", "--yes")
    failed = fleet.run(*asked, leases__handoff_timeout_s=1)
    assert failed.returncode == 1
    assert failed.stderr.splitlines()[-1].startswith(
        f"error: no answer within 4 s about {shard}: what is asked stands, "
    )
    assert failed.stderr.endswith("kcl leases show lists what stands, kcl leases withdraw takes it back\n")
    assert ", asked to seek TRIM_HORIZON (" in fleet.run("leases", "show", "worker.yaml").stdout
    again = fleet.run(*asked)
    assert (again.returncode, again.stdout) == (1, "")
    assert "expected that nothing is asked of it, found a request to seek TRIM_HORIZON (" in again.stderr
    done = fleet.run("leases", "withdraw", "worker.yaml", "--yes")
    assert (done.returncode, done.stdout) == (
        0,
        f"{shard}: asked to seek TRIM_HORIZON -> not asked\n1 change made\n",
    )
    assert "request" not in fleet.rows()[shard]["native"]["M"]
    assert fleet.run("leases", "withdraw", "worker.yaml", "--yes").stdout == "nothing to do\n"
    worker.kill()


def test_nothing_is_changed_that_nobody_has_agreed_to(fleet: Fleet) -> None:
    """Without a terminal to ask on it needs --yes; what makes no sense is said before anything is watched."""
    fleet.create(1)
    fleet.put(10)
    stopped(fleet, 10)
    before = fleet.rows()
    done = fleet.run("leases", "reset", "worker.yaml", "--start", "latest")
    assert (done.returncode, done.stdout, done.stderr) == (
        2,
        "",
        f"error: cannot ask whether to change leases of '{fleet.app}': expected --yes or a terminal, found neither\n",
    )
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


def test_no_place_is_written_where_no_worker_could_begin(fleet: Fleet) -> None:
    """Another shard's number, one that is none, a time to come; it is said before anything is asked."""
    fleet.create(2)
    fleet.put(10)
    stopped(fleet, 10)
    before = fleet.rows()
    shard, other = sorted(fleet.put_to)
    foreign = next(each.sequence for each in fleet.deliveries() if each.shard == other)
    for arguments, code, error in (
        (("set", "--shard", shard, "--to", str(foreign)), 1, f"cannot move '{shard}' after {foreign}: expected a num"),
        (("set", "--shard", shard, "--to", "\u00b2"), 2, "cannot begin at '\u00b2': expected trim_horizon, latest"),
        (("set", "--shard", shard, "--to", "9" * 5000), 2, "cannot begin at '9999"),
        (("set", "--shard", shard, "--to", "9999-12-31T23:59:59-10:00"), 2, "cannot begin at '9999-12-31T"),
        (("reset", "--start", "2999-12-31T23:59:59Z"), 2, "cannot begin at a time to come: expected one before AWS's "),
    ):
        failed = fleet.run("leases", arguments[0], "worker.yaml", *arguments[1:], "--yes")
        assert failed.stderr.startswith(f"error: {error}"), failed.stderr
        assert (failed.returncode, failed.stdout) == (code, "")
    assert fleet.rows() == before


def test_an_item_that_is_no_lease_is_named_and_keeps_the_stream_from_being_read_anew(fleet: Fleet) -> None:
    """Workers leave it alone, so its shard would not be read."""
    fleet.create(2)
    fleet.put(10)
    stopped(fleet, 10)
    shard = min(fleet.put_to)
    fleet.dynamodb.put_item(TableName=fleet.app, Item={"leaseKey": {"S": shard}, "leaseCounter": {"S": "x"}})
    before = fleet.rows()
    shown = fleet.run("leases", "show", "worker.yaml")
    assert (shown.returncode, shown.stdout.count("\n")) == (0, 1)
    assert f"cannot read the row of '{shard}'" in shown.stderr
    failed = fleet.run("leases", "reset", "worker.yaml", "--yes")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert f"found 1 other item: cannot read the row of '{shard}'" in failed.stderr.splitlines()[-1]
    assert fleet.rows() == before


@pytest.mark.parametrize(("answer", "code"), [("\x03", 130), ("\x04", 130), ("n\n", 1), ("y\n", 0)])
def test_only_yes_has_the_plan_carried_out(fleet: Fleet, answer: str, code: int) -> None:
    """No, the end of the input and Ctrl-C at the question change nothing, and end the command."""
    fleet.create(1)
    fleet.put(10)
    stopped(fleet, 10)
    before = fleet.rows()
    with asking(fleet, "reset") as (command, terminal):
        os.write(terminal, answer.encode())
        said = b"".join(read_on(terminal)).decode()
        assert command.wait(PATIENCE_S) == code
    assert said.splitlines()[-1].strip() == ("1 change made" if code == 0 else "nothing changed")
    assert (fleet.rows() == before) == (code != 0)


def test_ctrl_c_while_it_is_watched_whether_a_worker_runs_changes_nothing_and_says_so(fleet: Fleet) -> None:
    """The line on the terminal tells how long it still takes."""
    killed(fleet)
    before = fleet.rows()
    with on_terminal(fleet, "release", TERM="xterm") as (command, terminal):
        for left_s in (4, 3):
            until_shown(terminal, b"watching for up to %d s whether a worker runs" % left_s)
        os.write(terminal, b"\x03")
        rest = b"".join(read_on(terminal))
        assert command.wait(PATIENCE_S) == 130
    assert rest.endswith(b"nothing changed\r\n")
    assert fleet.rows() == before


def test_what_became_of_a_request_is_one_line_that_can_be_copied(fleet: Fleet) -> None:
    """On a terminal of 80 columns as elsewhere, and on stdout also where only stderr is a terminal."""
    fleet.create(1)
    fleet.put(10)
    fleet.start()
    fleet.until_delivered(10)
    [shard] = fleet.shards()
    arguments = ("--shard", shard, "--to", "trim_horizon", "--yes")
    with on_terminal(fleet, "set", *arguments, TERM="xterm", COLUMNS="80") as (command, terminal):
        said = b"".join(read_on(terminal)).decode()
        assert command.wait(PATIENCE_S) == 0
    holder = fleet.rows()[shard]["leaseOwner"]["S"]
    assert f"{shard}: applied; now TRIM_HORIZON, held by {holder}\r\n" in said
    with (
        (fleet.folder / "out").open("wb") as out,
        on_terminal(fleet, "set", *arguments, stdout=out.fileno(), TERM="xterm") as (command, terminal),
    ):
        read_on(terminal)
        assert command.wait(PATIENCE_S) == 0
    said = (fleet.folder / "out").read_text()
    assert said.endswith(f"\n{shard}: applied; now TRIM_HORIZON, held by {holder}\n")


def test_the_terminal_is_left_as_it_was_while_it_is_watched_whether_a_worker_runs(fleet: Fleet) -> None:
    """SIGTERM leaves no hidden cursor behind."""
    killed(fleet)
    with on_terminal(fleet, "release", TERM="xterm") as (command, terminal):
        until_shown(terminal, b"watching for")
        command.send_signal(signal.SIGTERM)
        rest = b"".join(read_on(terminal))
        assert command.wait(PATIENCE_S) == 128 + signal.SIGTERM
    assert b"\x1b[?25h" in rest


def test_a_worker_that_starts_while_the_question_stands_keeps_all_as_it_is(fleet: Fleet) -> None:
    """Also the rows of shards that were read to their end, which no worker writes any more."""
    fleet.create(1)
    fleet.put(10)
    [shard] = fleet.shards()
    fleet.split(shard)
    fleet.put(10)
    stopped(fleet, 20)
    with asking(fleet, "reset", "--start", "latest") as (command, terminal):
        fleet.start()
        fleet.put(10)
        fleet.until_delivered(30)
        os.write(terminal, b"y\n")
        assert command.wait(PATIENCE_S) == 1
    assert fleet.rows()[shard]["checkpoint"] == {"S": "SHARD_END"}
    assert len(fleet.rows()) == 3
