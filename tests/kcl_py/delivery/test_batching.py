"""Batchers without a tree: limits hold, nothing is left out, and the order of a key is kept."""

import random
from collections import defaultdict
from collections.abc import Hashable

from hypothesis import given
from hypothesis import strategies as some

from kcl_py import Batcher, Record, ToBatch
from kcl_py.delivery.batching import Batch, Batching
from kcl_py.delivery.ledger import Ledger
from tests.kcl_py.delivery.test_lanes import a_range

MANY = 10**9
Orders = dict[tuple[str, Hashable], list[int]]
"""Numbers by batcher and key."""


def a_batching(**batchers: Batcher) -> Batching:
    return Batching(batchers, most_records=MANY, most_bytes=MANY)


def put(batching: Batching, number: int, to: ToBatch, now: float = 0.0) -> None:
    """Put in a record of two bytes that has this number."""
    batching.put(to, (RANGE, number), Record(str(number), b"xx", "k"), now)


RANGE = a_range("k", Ledger())


def numbers(batch: Batch | None) -> list[int]:
    return [] if batch is None else [index for (_, index), _, _ in batch.items]


@given(chance=some.integers(0, 2**32).map(random.Random))
def test_records_of_a_key_leave_their_batcher_in_order_whatever_happens(chance: random.Random) -> None:
    """BW-08, BW-09: also when batches fail, are put back or wait; no limit is passed, and none is left out."""
    limits = {
        "a": Batcher(max_records=3, max_bytes=100, max_age_s=2.0, concurrency=2, max_keys=2),
        "b": Batcher(max_records=100, max_bytes=7, max_age_s=5.0, concurrency=1),
    }
    batching, in_hand, now = a_batching(**limits), list[Batch](), 0.0
    given_in: Orders = defaultdict(list)
    done: Orders = defaultdict(list)
    for number in range(chance.randrange(1, 60)):
        to = ToBatch(chance.choice("ab"), key=chance.randrange(4), flush=chance.random() < 0.1)
        put(batching, number, to, now)
        given_in[to.batcher, to.key].append(number)
        now += chance.choice([0.0, 0.0, 0.7])
        batching.wake(now)
        assert batching.next_due_at is None or batching.next_due_at > now
        while chance.random() < 0.6 and (batch := batching.next()) is not None:
            in_hand.append(batch)
        check(in_hand, limits)
        if in_hand and chance.random() < 0.5:
            give_back(batching, in_hand.pop(chance.randrange(len(in_hand))), done, now, chance)
    batching.close("end")
    while batching:
        now += 10.0
        batching.wake(now)
        while (batch := batching.next()) is not None:
            in_hand.append(batch)
        check(in_hand, limits)
        for batch in in_hand:
            give_back(batching, batch, done, now, chance)
        in_hand = []
    assert done == given_in


def check(in_hand: list[Batch], limits: dict[str, Batcher]) -> None:
    """Of a key there is one batch at a time, and of a batcher as many as it may have."""
    assert len({(batch.batcher, batch.key) for batch in in_hand}) == len(in_hand)
    for name, batcher in limits.items():
        assert sum(batch.batcher == name for batch in in_hand) <= batcher.concurrency
    for batch in in_hand:
        assert 1 <= len(batch.items) <= limits[batch.batcher].max_records
        assert batch.size_bytes == 2 * len(batch.items) <= limits[batch.batcher].max_bytes


def give_back(batching: Batching, batch: Batch, done: Orders, now: float, chance: random.Random) -> None:
    """Settle a batch, put it off or put it back."""
    match chance.choice(["settle", "settle", "delay", "put back"]):
        case "settle":
            done[batch.batcher, batch.key] += numbers(batch)
            batching.settle(batch)
        case "delay":
            batching.delay(batch, now + 3.0)
        case _:
            batching.put_back(batch)


def test_batch_is_old_enough_by_its_first_record() -> None:
    """Whatever came later; and the next one has its own age."""
    batching = a_batching(s3=Batcher(max_age_s=5.0))
    put(batching, 1, ToBatch("s3"), 10.0)
    put(batching, 2, ToBatch("s3"), 14.0)
    assert batching.next_due_at == 15.0
    batching.wake(14.9)
    assert batching.next() is None
    batching.wake(15.0)
    put(batching, 3, ToBatch("s3"), 15.0)
    assert numbers(batching.next()) == [1, 2]
    assert batching.next_due_at == 20.0


def test_key_that_fails_at_the_end_is_dropped_with_all_behind_it() -> None:
    """Also what is given to it afterwards: it comes again in order, elsewhere."""
    batching = a_batching(s3=Batcher(max_records=2))
    for number in range(5):
        put(batching, number, ToBatch("s3", key="a"))
    failed = batching.next()
    assert failed is not None
    batching.drop(failed)
    for number, key in ((5, "a"), (6, "b")):
        put(batching, number, ToBatch("s3", key=key))
    batching.close("drain")
    assert (numbers(batching.next()), batching.next()) == ([6], None)


def test_batch_waits_for_no_more_than_can_come() -> None:
    """What a batcher asks for beyond ``max_ahead`` is as much as that."""
    batching = Batching({"s3": Batcher(max_records=100)}, most_records=2, most_bytes=MANY)
    for number in (1, 2):
        put(batching, number, ToBatch("s3"))
    assert numbers(batching.next()) == [1, 2]
