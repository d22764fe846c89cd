"""The demo's own arithmetic: figures come from files, and nothing wrong passes as right."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from examples.demo.carriers import CarrierFigures, count, equal
from examples.demo.dataset import flights
from examples.demo.facts import Fact, Follower, Tally, bound, read, tally
from examples.demo.put import put
from examples.demo.reckoning import reckon
from examples.demo.spark_rows import is_in_a_batch
from examples.demo.story import Plan, Traces
from examples.demo.verdict import Reckoning, failures, lines
from kcl_py.sources.kinesis.writer import Entry, Placed
from tests.clocks import PromptClock
from tests.examples.flights_of import a_flight

GOOD = Reckoning(
    flights=10,
    put=10,
    consumers=Tally(total=12, distinct=10, missing=0),
    bound=2,
    spark=Tally(total=10, distinct=10, missing=0),
    carriers=3,
    carriers_equal=3,
    carriers_found=3,
)


def a_line(number: int, name: str = "a", shard: str = "s") -> bytes:
    return f"{shard}\t{number}\t{name}\tkey\n".encode()


def test_last_five_lines_say_what_was_counted() -> None:
    """Black-box tests and people read them."""
    assert lines(GOOD, took_s=71.6) == [
        "put 10",
        "consumers 10 distinct, 0 missing, 2 twice (bound 2)",
        "spark 10 rows, 0 missing, 0 twice",
        "carriers 3 of 3 equal",
        "demo: ok in 72 s",
    ]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"consumers": Tally(total=11, distinct=9, missing=1)}, "consumers"),
        ({"consumers": Tally(total=13, distinct=10, missing=0)}, "consumers"),
        ({"consumers": Tally(total=11, distinct=11, missing=0)}, "consumers"),
        ({"spark": Tally(total=9, distinct=9, missing=1)}, "spark"),
        ({"spark": Tally(total=11, distinct=10, missing=0)}, "spark"),
        ({"spark": Tally(total=11, distinct=11, missing=0)}, "spark"),
        ({"carriers_equal": 2}, "carriers"),
        ({"carriers_found": 4}, "carriers"),
        ({"flights": 11}, "put: expected 11"),
        ({"accidents": ("worker-2: exit code 4",)}, "worker-2: exit code 4"),
    ],
    ids=[
        "consumers lose one",
        "consumers double more than the bound",
        "consumers see a stranger",
        "spark loses one",
        "spark doubles one",
        "spark sees a stranger",
        "a carrier differs",
        "a carrier too many",
        "not all were put",
        "an accident",
    ],
)
def test_demo_fails_and_says_which(change: dict[str, object], named: str) -> None:
    """Any one figure that differs is enough."""
    reckoning = replace(GOOD, **change)  # type: ignore[arg-type]
    assert failures(reckoning) == [named]
    assert lines(reckoning, took_s=1)[-1] == f"demo: FAILED: {named}"


def test_all_that_failed_is_named() -> None:
    """Not only the first."""
    reckoning = replace(GOOD, consumers=Tally(9, 9, 1), carriers_equal=0)
    assert lines(reckoning, took_s=1)[-1] == "demo: FAILED: consumers, carriers"


def test_tally_counts_distinct_missing_and_repeated() -> None:
    """A flight seen three times is two too many."""
    assert tally({"a", "b", "c"}, ["a", "a", "a", "b"]) == Tally(total=4, distinct=2, missing=1)
    assert Tally(total=4, distinct=2, missing=1).twice == 2


def test_bound_is_what_came_after_the_stored_checkpoints() -> None:
    """By number, not by text; nothing of a shard that was handed over or read to its end before."""
    facts = [Fact("s", 9, "a"), Fact("s", 10, "b"), Fact("s", 11, "c"), Fact("gone", 1, "d"), Fact("ended", 1, "e")]
    assert bound(facts, {"s": "9", "ended": "SHARD_END"}) == 2
    assert bound(facts, {"s": "TRIM_HORIZON"}) == 3
    assert bound(facts, {}) == 0


def test_line_that_a_kill_cut_off_is_no_fact(tmp_path: Path) -> None:
    """The record in it was not finished, and comes again."""
    path = tmp_path / "1.tsv"
    path.write_bytes(a_line(1, "a") + a_line(2, "b")[:-3])
    assert [fact.identity for fact in read(path)] == ["a"]


def test_follower_reads_each_whole_line_once_as_files_grow(tmp_path: Path) -> None:
    """Also of a file that comes later, and of a line that came in two parts."""
    follower = Follower(tmp_path)
    assert follower.news() == []
    (tmp_path / "1.tsv").write_bytes(a_line(1, "a") + a_line(2, "b")[:4])
    assert [fact.identity for fact in follower.news()] == ["a"]
    with (tmp_path / "1.tsv").open("ab") as file:
        file.write(a_line(2, "b")[4:])
    (tmp_path / "2.tsv").write_bytes(a_line(3, "c"))
    assert [fact.identity for fact in follower.news()] == ["b", "c"]
    assert follower.news() == []


def test_carriers_count_flights_and_leave_missing_delays_out_of_the_mean() -> None:
    """A flight that never left has no delay, and early ones have negative delays."""
    some = [a_flight(dep_delay=delay) for delay in ("10", "-4", "NA")] + [a_flight(carrier="AA", dep_delay="NA")]
    figures = count(some)
    assert figures == {"UA": CarrierFigures(3, 2, 6), "AA": CarrierFigures(1, 0, 0)}
    assert figures["UA"].mean_delay_min == 3
    assert figures["AA"].mean_delay_min is None


def test_carrier_is_equal_only_if_flights_delays_and_sum_are() -> None:
    """The same mean of other flights is not the same."""
    expected = {"UA": CarrierFigures(3, 2, 6), "AA": CarrierFigures(1, 0, 0)}
    assert equal(expected, expected) == 2
    assert equal(expected, {"UA": CarrierFigures(6, 4, 12)}) == 0


class Shelf:
    """Takes what is put."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    async def put(self, entries: Sequence[Entry]) -> list[Placed]:
        begin = len(self.entries)
        self.entries += entries
        return [Placed("s", str(begin + index)) for index in range(len(entries))]


@pytest.mark.asyncio
async def test_put_keeps_the_pace_and_notes_what_is_in(tmp_path: Path) -> None:
    """1,200 flights at 100 a second: the last 200 are due after ten seconds."""
    clock, shelf, told = PromptClock(0.0), Shelf(), list[tuple[float, int]]()

    async def tell(done: int) -> None:
        told.append((clock.now_s, done))

    some = [a_flight(flight=str(number)) for number in range(1200)]
    await put(some, shelf, tmp_path / "put.tsv", rate=100, clock=clock, tell=tell)
    assert told == [(0, 500), (5, 1000), (10, 1200)]
    assert [fact.identity for fact in read(tmp_path / "put.tsv")] == [flight.identity for flight in some]
    assert shelf.entries[3] == (some[3].key, some[3].payload())


JANUARY = Plan(is_quick=True, has_spark=False, rate=1)


@pytest.fixture(scope="module")
def january() -> list[bytes]:
    """The lines of all flights of January."""
    return [a_line(number, flight.identity) for number, flight in enumerate(flights(is_quick=True))]


@pytest.mark.parametrize(
    ("spoil", "is_ok"),
    [
        (lambda lines: lines, True),
        (lambda lines: lines[:-1], False),
        (lambda lines: [*lines, lines[7]], False),
    ],
    ids=["all once", "one lost", "one doubled"],
)
def test_reckoning_by_the_files_sees_one_record_lost_or_doubled(
    tmp_path: Path, january: list[bytes], spoil: Callable[[list[bytes]], list[bytes]], is_ok: bool
) -> None:
    """Among 27,004, and across the files of two workers."""
    traces = Traces(tmp_path)
    traces.facts.mkdir()
    traces.put.write_bytes(b"".join(january))
    spoilt = spoil(january)
    (traces.facts / "1.tsv").write_bytes(b"".join(spoilt[:9000]))
    (traces.facts / "2.tsv").write_bytes(b"".join(spoilt[9000:]))
    reckoning, _ = reckon(JANUARY, traces)
    assert failures(reckoning) == ([] if is_ok else ["consumers"])


def test_reckoning_allows_repetitions_up_to_what_the_killed_worker_had_not_stored(
    tmp_path: Path, january: list[bytes]
) -> None:
    """Five records after its checkpoint came again: that is the promise; a sixth would not be."""
    traces = Traces(tmp_path, killed_facts=tmp_path / "facts" / "1.tsv", checkpoints={"s": "94"})
    traces.facts.mkdir()
    traces.put.write_bytes(b"".join(january))
    (traces.facts / "1.tsv").write_bytes(b"".join(january[:100]))
    (traces.facts / "2.tsv").write_bytes(b"".join(january[95:]))
    reckoning, _ = reckon(JANUARY, traces)
    assert (reckoning.consumers.twice, reckoning.bound, failures(reckoning)) == (5, 5, [])
    (traces.facts / "2.tsv").write_bytes(b"".join(january[94:]))
    reckoning, _ = reckon(JANUARY, traces)
    assert (reckoning.consumers.twice, reckoning.bound, failures(reckoning)) == (6, 5, ["consumers"])


def test_query_is_in_a_batch_between_its_plan_and_its_end(tmp_path: Path) -> None:
    """That is when the demo kills the driver; the first batch is empty and does not count."""
    for log in ("offsets", "commits"):
        (tmp_path / "checkpoint" / log).mkdir(parents=True)
    found = []
    for name in ("offsets/0", "commits/0", "offsets/1", "offsets/.1.crc", "commits/1"):
        (tmp_path / "checkpoint" / name).touch()
        found.append(is_in_a_batch(tmp_path))
    assert found == [False, False, True, True, False]
