"""The rate that is written into the row."""

import pytest

from kcl_py.leases.throughput import HALF_LIFE_S, Throughput


def test_nothing_is_said_before_time_has_passed() -> None:
    """A rate of no time would be anything."""
    rate = Throughput()
    rate.begin(None, 5.0)
    assert rate.by(5.0, 1000) is None


def test_first_rate_is_the_mean_since_the_beginning() -> None:
    """A shard that nobody has measured before is not thought idle for a minute."""
    rate = Throughput()
    rate.begin(None, 0.0)
    assert rate.by(2.0, 200_000) == 100.0
    assert rate.by(4.0, 200_000) == 50.0


def test_next_owner_goes_on_from_what_the_last_one_measured() -> None:
    """A handoff forgets no rate, and half of it is left after the half-life."""
    rate = Throughput()
    rate.begin(80.0, 0.0)
    assert rate.by(HALF_LIFE_S, 0) == pytest.approx(40.0)


def test_steady_rate_is_found_however_often_it_is_looked_at() -> None:
    """Each beat adds what came since the last."""
    rate = Throughput()
    rate.begin(None, 0.0)
    said = [rate.by(float(second), second * 50_000) for second in range(1, 120)]
    assert said == [50.0] * 119


def test_burst_of_a_second_counts_little() -> None:
    """What a shard has done for minutes decides."""
    rate = Throughput()
    rate.begin(10.0, 0.0)
    after = rate.by(1.0, 1_000_000)
    assert after is not None
    assert after < 35
