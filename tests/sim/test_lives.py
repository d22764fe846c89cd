"""The simulation itself: its default lives break no law, and a seed is all that it takes to live one again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.sim.plan import FAIR, Event, Plan, plan
from tests.sim.run import Result, live
from tests.sim.shrink import shrink
from tests.sim.story import story

ROOT = Path(__file__).parents[2]
DIGEST = """
import sys
from hashlib import sha256
from tests.sim.plan import plan
from tests.sim.run import live
print(sha256(b"".join(live(plan(int(sys.argv[1])), keeps_log=True).lines)).hexdigest())
"""


ONCE_BAD = {
    268: "a worker table that another worker was still making",
    859: "a first listing that hung for 20 seconds",
    1888: "a row that was made and deleted again during a pause",
    6174: "an old listing that hid an unread parent",
    282: "a processor that decides what is stored, and was never asked to",
    522: "a worker that came up when the others rested",
    3827: "a batch that a checkpoint finished although storing it failed",
    4314: "a pause after a frozen clock",
    5968: "progress that went with a deleted row",
}
"""Lives that broke a law before there were requests and large tables: the first four by our fault, the others by the
law's."""
BAD_SINCE = {
    466: "rates that two workers had read at different times",
    516: "a deleted row that was read singly",
    5005: "a large table that was not looked at since it had been throttled",
}
"""Lives that broke a law by our fault later."""


def simulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run what ``make sim`` runs."""
    return subprocess.run([sys.executable, "-m", "tests.sim", *arguments], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.timeout(600)
def test_default_lives_break_no_law_and_have_met_everything() -> None:
    """Two hundred lives; a kind of event that none of them had would be a fault of the plans."""
    done = simulate()
    assert done.stdout.endswith("all laws hold\n"), done.stdout + done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("seed", ONCE_BAD, ids=str)
def test_a_life_that_once_broke_a_law_breaks_none(seed: int) -> None:
    """What was found in ten thousand lives stays found."""
    lived = plan(seed, "batch")
    events = tuple(event for event in lived.events if event.kind != "request")
    options = lived.options | {"leases": lived.options["leases"] | {"strategy": "count"}}
    assert live(replace(lived, events=events, options=options, wide=False)).broken == []


@pytest.mark.parametrize("seed", BAD_SINCE, ids=str)
def test_a_life_that_broke_a_law_since_then_breaks_none(seed: int) -> None:
    """As it is now, with all that may happen."""
    assert live(plan(seed, "batch")).broken == []


BAD_IN_FORMS = {
    572: "a task that began though it was cancelled before, and gave its slot back twice",
    1181: "a record that was put off, and came when a letter of its batch was stored",
    1542: "transactions with a checkpoint whose answers were cut off, each of which killed a Lease",
    535: "a record that was handed over while the actors around it ended, and the one before it had swallowed that",
    6803: "batches that were flushed though a record had halted its shard",
}
"""Lives that broke a law by our fault since records come in more forms than whole batches."""


@pytest.mark.parametrize("seed", BAD_IN_FORMS, ids=str)
def test_a_life_in_another_form_that_broke_a_law_breaks_none(seed: int) -> None:
    """In the form that it has."""
    assert live(plan(seed)).broken == []


def test_a_life_in_good_weather_breaks_no_law() -> None:
    """The happy path, which deliberate bugs must survive."""
    result = live(FAIR)
    assert result.broken == []
    assert result.counts["done"] > 10


@pytest.mark.parametrize("seed", [6, 7, 11])
def test_the_same_seed_gives_the_same_log_byte_for_byte(seed: int) -> None:
    """In one process, one after the other."""
    first, second = (live(plan(seed), keeps_log=True).lines for _ in range(2))
    assert first
    assert first == second


def test_the_log_does_not_depend_on_the_hashes_of_strings() -> None:
    """In other processes, whose sets of strings have other orders."""

    def digest(hash_seed: str) -> str:
        command = [sys.executable, "-c", DIGEST, "6"]
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        return subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True).stdout

    assert len({digest("1"), digest("2")}) == 1


def test_one_seed_is_told_and_its_history_written(tmp_path: Path) -> None:
    """``make sim SEED=7 LOG=file``; the checker reads the file alone."""
    log = tmp_path / "life.jsonl"
    assert simulate("--seed", "7", "--log", str(log)).stdout.endswith("all laws hold\n")
    command = [sys.executable, "-m", "tests.sim.checker", str(log)]
    judged = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert judged.stdout == "all laws hold\n", judged.stderr


def test_the_checker_knows_nothing_of_what_it_judges() -> None:
    """Else both could make the same mistake."""
    code = (
        "import sys, tests.sim.checker; print([name for name in sys.modules if name.startswith(('kcl_py', 'actors'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_a_bad_life_is_made_smaller_to_what_it_takes() -> None:
    """Of all that happens in it only the crash of one worker is left."""

    def lived(candidate: Plan) -> Result:
        is_bad = any(event.kind == "crash" and event.slot == 1 for event in candidate.events)
        return Result(candidate.seed, ["some law: broken"] if is_bad else [], {}, [], 0.0, 0.0, 0)

    seed = next(seed for seed in range(1000) if lived(plan(seed)).broken and len(plan(seed).events) > 20)
    small, result = shrink(plan(seed), lived(plan(seed)), lived)
    assert [(event.kind, event.slot) for event in small.events] == [("crash", 1)]
    assert (small.shards, small.weather, result.laws) == (1, (), {"some law"})


def test_a_story_is_about_the_shards_that_the_broken_laws_name() -> None:
    """The lines of sixty others would be between what matters."""
    lines = [
        b'{"t": 1.0, "e": "row", "w": "w0.1", "shard": "shardId-000000000001"}',
        b'{"t": 2.0, "e": "crash", "w": "w0.1"}',
        b'{"t": 3.0, "e": "row", "w": "w0.2", "shard": "shardId-000000000002"}',
    ]
    told = [line.split()[0] for line in story(lines, ["an end is final: shardId-000000000002: undone"])]
    assert told == ["2.000", "3.000"]


def test_plans_are_mostly_small_and_sometimes_large() -> None:
    """One to eight workers, one to sixty-four shards."""
    plans = [plan(seed) for seed in range(2000)]
    assert {each.slots for each in plans} == set(range(1, 9))
    assert {1, 64} <= {each.shards for each in plans} <= set(range(65))
    assert 0.01 < sum(each.slots > 3 for each in plans) / len(plans) < 0.03
    assert isinstance(plans[0].events[0], Event)
