"""The read quota of a shard, in a table and over random lives."""

import random

import pytest

from kcl_py.sources.kinesis.quota import Quota


def calls_within_a_second(sent: list[float]) -> int:
    """Return the most calls that any window of one second holds."""
    return max(sum(start <= at < start + 1.0 for at in sent) for start in sent)


def test_quota_allows_five_calls_at_once_and_the_sixth_a_second_after_the_first() -> None:
    """An idle shard may be read five times without a pause."""
    quota = Quota()
    for at in (10.0, 10.1, 10.2, 10.3, 10.4):
        assert quota.wait_s(at) == 0.0
        quota.spent(at)
    assert quota.wait_s(10.5) == pytest.approx(0.5, abs=0.002)
    assert quota.wait_s(11.01) == 0.0


@pytest.mark.parametrize(("size_bytes", "wait_s"), [(0, 0.0), (200_000, 0.1), (2_000_000, 1.0), (10_000_000, 5.0)])
def test_quota_waits_out_the_bytes_of_a_reply(size_bytes: int, wait_s: float) -> None:
    """A full reply of 10 MB costs five seconds, as on AWS."""
    quota = Quota()
    quota.spent(3.0, size_bytes)
    assert quota.wait_s(3.0) == pytest.approx(wait_s)
    assert quota.wait_s(3.0 + wait_s) == 0.0


def test_quota_forgets_time_that_was_not_used() -> None:
    """An hour of silence does not allow more than one second's bytes."""
    quota = Quota()
    quota.spent(0.0, 2_000_000)
    quota.spent(3600.0, 2_000_000)
    assert quota.wait_s(3600.0) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(20))
def test_quota_never_lets_six_calls_into_a_second_when_replies_take_any_time(seed: int) -> None:
    """Whatever the latency, a reader that waits as told stays within five calls."""
    rng, quota, now = random.Random(seed), Quota(), 1e9
    sent: list[float] = []
    for _ in range(100):
        now += quota.wait_s(now)
        sent.append(now)
        quota.spent(now)
        now += rng.choice([0.0, 0.001, 0.05, 0.19, 0.4])
    assert calls_within_a_second(sent) <= 5


@pytest.mark.parametrize("latency_s", [0.0, 0.01, 0.19])
def test_quota_lets_a_reader_with_a_backlog_use_all_five_calls(latency_s: float) -> None:
    """There is no pause beyond the limit: fifty calls take ten seconds, whatever the latency."""
    quota, now = Quota(), 0.0
    for _ in range(51):
        now += quota.wait_s(now)
        quota.spent(now)
        now += latency_s
    assert now == pytest.approx(10.0, abs=0.02 + latency_s)


def test_quota_of_one_shard_leaves_another_alone() -> None:
    """Two shards do not share a budget."""
    busy, other = Quota(), Quota()
    for _ in range(5):
        busy.spent(1.0, 1_000_000)
    assert busy.wait_s(1.0) > 0
    assert other.wait_s(1.0) == 0.0
