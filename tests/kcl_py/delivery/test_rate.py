"""Token buckets: how much is handed over when, and by which shard."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from kcl_py.delivery.rate import Rate, Turn, Weight


class Shard:
    """Hands over what it has as soon as it may."""

    def __init__(self, rate: Rate, weights: list[Weight]) -> None:
        self.weights, self.times, self.changes = list(weights), list[float](), 0
        self.turn = Turn(rate, self._changed)

    def _changed(self) -> None:
        self.changes += 1

    def go_on(self, now: float) -> bool:
        """Hand over one thing; False if there is none, or it must wait."""
        if not self.weights or self.turn.pay(lambda: self.weights[0], now) is None:
            return False
        self.times.append(now)
        del self.weights[0]
        return True


def play(*shards: Shard, now: float = 0.0, until: float = 1e9) -> float:
    """Have shards hand over all they have, each when it is due; return when that was done."""
    while any(shard.weights for shard in shards):
        while sum(shard.go_on(now) for shard in shards):
            pass
        due = [shard.turn.due_at for shard in shards if shard.turn.due_at is not None]
        if not due or min(due) > until:
            break
        now = max(now, min(due))
    return now


def test_no_more_records_are_handed_over_a_second_than_the_limit() -> None:
    """BW-13, exact: a second's worth at once, then one after the other."""
    shard = Shard(Rate(records=10), [(1, 500)] * 25)
    assert play(shard) == pytest.approx(1.5)
    assert shard.times[:10] == [0.0] * 10
    assert shard.times[10:] == pytest.approx([0.1 * place for place in range(1, 16)])


def test_bytes_and_records_are_limited_side_by_side() -> None:
    """The one that is used up first decides."""
    shard = Shard(Rate(records=10, size_bytes=100), [(1, 50)] * 4 + [(1, 0)] * 8)
    play(shard)
    assert shard.times[:4] == pytest.approx([0.0, 0.0, 0.5, 1.0])
    assert shard.times[-1] == pytest.approx(1.0)


def test_record_that_is_larger_than_a_seconds_bytes_goes_and_is_paid_later() -> None:
    """It waits for a full bucket, and the next one until the rest is paid; so does a batch."""
    shard = Shard(Rate(size_bytes=100), [(1, 1), (1, 1000), (1, 100)])
    play(shard)
    assert shard.times == pytest.approx([0.0, 0.01, 10.01])
    batches = Shard(Rate(records=10), [(100, 1), (100, 1)])
    play(batches)
    assert batches.times == pytest.approx([0.0, 10.0])


def test_tokens_do_not_gather_beyond_a_second() -> None:
    """A shard that was quiet for an hour bursts no more than one that was not."""
    rate = Rate(records=10)
    play(Shard(rate, [(1, 1)]))
    shard = Shard(rate, [(1, 1)] * 20)
    assert play(shard, now=3600.0) == pytest.approx(3601.0)


@given(limit=some.integers(1, 50), counts=some.lists(some.integers(1, 40), min_size=2, max_size=5))
def test_shards_take_turns(limit: int, counts: list[int]) -> None:
    """One that has much to hand over gets no more than one that has little, while both have something."""
    rate = Rate(records=limit)
    play(Shard(rate, [(1, 1)] * limit))  # the burst
    shards = [Shard(rate, [(1, 1)] * count) for count in counts]
    play(*shards)
    least = min(counts)
    ends = sorted(shard.times[least - 1] for shard in shards)
    assert ends[-1] - ends[0] <= len(shards) / limit + 1e-6
    times = sorted(time for shard in shards for time in shard.times)
    assert times == pytest.approx([(place + 1) / limit for place in range(sum(counts))])


def test_limit_can_be_changed_while_shards_wait() -> None:
    """They are told, and go on by what holds now: what is owed is paid at the new rate."""
    rate = Rate(records=1)
    shard, other = Shard(rate, [(1, 1)] * 3), Shard(rate, [(1, 1)])
    play(shard, other, until=0.5)
    assert (shard.turn.due_at, other.turn.due_at) == pytest.approx((2.0, 1.0))
    rate.change(100, None, 0.5)
    assert (shard.changes, other.changes) == (1, 1)
    assert play(shard, other, now=0.5) < 0.6
    assert rate.limits == (100, None)


def test_limit_can_be_taken_away_and_set_again() -> None:
    """Without one nothing waits; one that is set begins with a full second."""
    rate = Rate(records=1)
    shard = Shard(rate, [(1, 1)] * 50)
    play(shard, until=0.5)
    rate.change(None, None, 0.5)
    assert play(shard, now=0.5) == 0.5
    rate.change(10, None, 100.0)
    again = Shard(rate, [(1, 1)] * 11)
    assert play(again, now=100.0) == pytest.approx(100.1)


def test_shard_that_leaves_gives_up_its_place() -> None:
    """BW-13, at the stop: what it waited for is there for the others, who are told."""
    rate = Rate(records=1)
    play(Shard(rate, [(1, 1)]))
    leaving, staying = Shard(rate, [(50, 1)]), Shard(rate, [(1, 1)])
    assert not leaving.go_on(0.0)
    assert not staying.go_on(0.0)
    leaving.turn.leave(0.0)
    assert (leaving.turn.due_at, staying.changes) == (None, 1)
    assert staying.turn.due_at == pytest.approx(1.0)


def test_what_was_paid_and_not_used_is_given_back() -> None:
    """To both buckets."""
    rate = Rate(records=10, size_bytes=100)
    shard = Shard(rate, [(10, 100), (1, 1)])
    paid = shard.turn.pay(lambda: (10, 100), 0.0)
    assert paid == (10, 100)
    shard.turn.give_back(paid, 0.0)
    assert shard.go_on(0.0)
    assert not shard.go_on(0.0)
