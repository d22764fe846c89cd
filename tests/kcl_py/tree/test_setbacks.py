"""How long a worker leaves a shard alone that could not be opened or kept."""

from kcl_py.tree.holding import FAILURES, FIRST_PAUSE_S, HEALTHY_S, LONGEST_PAUSE_S, Setbacks


def test_pause_after_each_failure_doubles_until_the_shard_is_given_up() -> None:
    """The fifth in a row is the last."""
    setbacks, now = Setbacks(), 0.0
    for number in range(FAILURES):
        assert setbacks.failed("shard", ran_s=1.0, now=now) is (number == FAILURES - 1)
        pause_s = min(FIRST_PAUSE_S * 2**number, LONGEST_PAUSE_S)
        assert not setbacks.allows("shard", now + pause_s - 0.01)
        assert setbacks.allows("shard", now + pause_s)
        now += pause_s


def test_shard_that_has_run_for_long_has_its_failures_forgiven() -> None:
    """Failures once a day never add up."""
    setbacks = Setbacks()
    for number in range(3 * FAILURES):
        assert not setbacks.failed("shard", ran_s=HEALTHY_S, now=1000.0 * number)


def test_other_shards_are_not_concerned() -> None:
    """One bad shard stops no other."""
    setbacks = Setbacks()
    setbacks.failed("bad", ran_s=0.0, now=0.0)
    assert setbacks.allows("good", 0.0)


def test_pause_is_never_brought_nearer() -> None:
    """A short pause for another reason does not end a long one."""
    setbacks = Setbacks()
    setbacks.pause("shard", 100.0)
    setbacks.pause("shard", 5.0)
    assert not setbacks.allows("shard", 50.0)


def test_ended_shard_is_forgotten() -> None:
    """Nothing is kept of what is over."""
    setbacks = Setbacks()
    setbacks.failed("shard", ran_s=0.0, now=0.0)
    setbacks.forget("shard")
    assert setbacks.allows("shard", 0.0)


def test_shards_of_former_days_are_forgotten() -> None:
    """A worker lets go of every shard that it ever had, and most of them end elsewhere."""
    setbacks = Setbacks()
    setbacks.failed("gone", ran_s=0.0, now=0.0)
    setbacks.failed("bad", ran_s=0.0, now=0.0)
    setbacks.keep({"bad", "good"})
    assert setbacks.resting(0.1) == {"bad"}
    assert setbacks.allows("gone", 0.1)
    assert not any(setbacks.failed("gone", ran_s=0.0, now=1.0) for _ in range(FAILURES - 1))


def test_shard_that_fails_for_weeks_is_left_alone_no_longer_than_at_first() -> None:
    """Nobody else can take it, and its record does not get better."""
    setbacks = Setbacks()
    for number in range(3000):
        setbacks.failed("bad", ran_s=1.0, now=100.0 * number)
        assert setbacks.allows("bad", 100.0 * number + LONGEST_PAUSE_S)
