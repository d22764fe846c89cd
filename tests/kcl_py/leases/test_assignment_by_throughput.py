"""Who gets which shard where bytes a second are shared, not shards."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from kcl_py.leases.assignment import BAND, IDLE_LOAD, Plan, agreed, plan
from tests.kcl_py.leases.fleets import Play, a_fleet, a_worker, plays, rows_of


@st.composite
def busy_plays(draw: st.DrawFn) -> Play:
    """Any fleet that balances by throughput: shards of any rate, some that say none, some without data."""
    play = draw(plays())
    rates = st.none() | st.just(0.0) | st.floats(0, 2000)
    rows = {key: replace(row, throughput_kbps=draw(rates)) for key, row in play.rows.items()}
    return Play(play.workers, rows, strategy="throughput")


@given(busy_plays())
@settings(max_examples=300, deadline=None)
def test_fleet_that_balances_by_throughput_settles_and_keeps_its_limits(play: Play) -> None:
    """Shards go towards who has less to do, soon none moves any more, and no worker goes beyond max_leases."""
    limits = {name: row.max_leases or 99 for name, row in play.workers.items()}
    play.settle(60)
    assert all(len(play.held(name)) <= limit for name, limit in limits.items())
    moves = play.moves
    for _ in range(5):
        play.tick()
    assert play.moves == moves


@given(st.lists(st.floats(0, 2000), min_size=1, max_size=40), st.integers(2, 6), st.data())
@settings(max_examples=200, deadline=None)
def test_throughput_is_shared_as_well_as_whole_shards_allow(
    rates: list[float], count: int, data: st.DataObject
) -> None:
    """Nobody has so much more than another that giving a shard away would help, beyond what is left to chance."""
    names = [f"w{number}/0" for number in range(count)]
    rows = rows_of([data.draw(st.sampled_from(names)) for _ in rates])
    rows = {key: replace(row, throughput_kbps=rate) for (key, row), rate in zip(rows.items(), rates, strict=True)}
    play = Play({name: a_worker(name) for name in names}, rows, strategy="throughput")
    play.settle(60)
    load = {name: 1000 * play.throughput(name) + IDLE_LOAD * len(play.held(name)) for name in names}
    band = BAND * sum(load.values()) / count
    least = min(load, key=load.__getitem__)
    for name in names:
        apart = load[name] - load[least]
        smallest = min((1000 * (rows[key].throughput_kbps or 0) for key in play.held(name)), default=0.0)
        assert apart < band + count or apart < 2 * (smallest + IDLE_LOAD) + len(rows)


def test_hot_shard_is_left_alone_and_the_others_go_elsewhere() -> None:
    """One shard with most of the data is a fair share by itself; it does not go round."""
    names = ("a", "b")
    rows = rows_of(["a"] * 5)
    rows = {key: replace(row, throughput_kbps=1000.0 if key.endswith("0") else 10.0) for key, row in rows.items()}
    play = Play({name: a_worker(name) for name in names}, rows, strategy="throughput")
    play.settle(10)
    assert play.held("a") == {"shardId-000000000000"}


def test_shards_without_data_are_spread_by_their_number() -> None:
    """A quiet stream is shared as if the strategy were count."""
    rows = {key: replace(row, throughput_kbps=0.0) for key, row in rows_of(["a"] * 6).items()}
    play = Play({name: a_worker(name) for name in ("a", "b", "c")}, rows, strategy="throughput")
    play.settle(10)
    assert list(play.loads().values()) == [2, 2, 2]


def test_small_differences_of_throughput_move_nothing() -> None:
    """Rates vary all the time; a shard that goes back and forth would cost more than it helps."""
    rows = rows_of(["me"] * 20 + ["other"] * 20)
    rows = {key: replace(row, throughput_kbps=10.0 if row.owner == "me" else 12.0) for key, row in rows.items()}
    assert plan(a_fleet(rows, a_worker("other"), strategy="throughput")) == Plan()
    more = {key: replace(row, throughput_kbps=10.0 if row.owner == "me" else 13.0) for key, row in rows.items()}
    assert len(plan(a_fleet(more, a_worker("other"), strategy="throughput")).pulls) == 1


def test_fleet_balances_by_throughput_only_if_all_would() -> None:
    """In a deploy that changes the strategy, old and new workers do not take shards from each other."""
    new, old = replace(a_worker("new"), strategy="throughput"), a_worker("old")
    assert agreed(new, [new]) == "throughput"
    assert agreed(new, [old]) == agreed(old, [new]) == "count"
