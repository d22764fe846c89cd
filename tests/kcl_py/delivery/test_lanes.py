"""Lanes: the order of a key holds whatever happens to its records, and no lane waits for another."""

import random
from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as some

from kcl_py.delivery.buffer import Cut
from kcl_py.delivery.lag import Lag
from kcl_py.delivery.lanes import Item, Lanes, Ordering
from kcl_py.delivery.ledger import Ledger, Range
from kcl_py.records import Record


def a_range(keys: str, ledger: Ledger, first: int = 1) -> Range:
    """Records with one key for each letter."""
    records = [Record(str(first + place), b"", key) for place, key in enumerate(keys)]
    return ledger.open(Cut(records, 0, Lag(0, 0.0)))


def lanes_with(keys: str, ordering: Ordering = "key") -> tuple[Lanes, Range]:
    lanes, entry = Lanes(ordering), a_range(keys, Ledger())
    lanes.add(entry)
    return lanes, entry


def taken(lanes: Lanes) -> list[int]:
    """Take all that may be in hand at a time."""
    found = []
    while (item := lanes.next()) is not None:
        found.append(item[1])
    return found


@given(keys=some.text("abc", min_size=1, max_size=40), chance=some.integers(0, 2**32).map(random.Random))
def test_records_of_a_key_come_one_after_the_other_whatever_happens(keys: str, chance: random.Random) -> None:
    """S2-11, BW-12: also when they are put off, put back, or more are taken in meanwhile; and none is left out."""
    ledger, lanes = Ledger(), Lanes("key")
    parts = [keys[: len(keys) // 2], keys[len(keys) // 2 :]]
    done, in_hand, now, number = defaultdict[str, list[int]](list), list[Item](), 0.0, 1
    while parts or lanes:
        if parts and chance.random() < 0.3:
            part = parts.pop(0)
            if part:
                lanes.add(a_range(part, ledger, number))
                number += len(part)
        now += 1
        lanes.wake(now)
        if (item := lanes.next()) is not None:
            key = item[0].records[item[1]].partition_key
            assert key not in [other[0].records[other[1]].partition_key for other in in_hand]
            if chance.random() < 0.2:
                lanes.put_back(item)
            else:
                in_hand.append(item)
        if in_hand and chance.random() < 0.6:
            item = in_hand.pop(chance.randrange(len(in_hand)))
            if chance.random() < 0.3:
                lanes.delay(item, now + chance.randrange(5))
            else:
                record = item[0].records[item[1]]
                done[record.partition_key].append(int(record.sequence_number))
                lanes.settle(item)
    for key in set(keys):
        assert done[key] == [place + 1 for place, each in enumerate(keys) if each == key]


def test_one_of_each_key_is_in_hand_at_a_time() -> None:
    """Lanes take turns in the order in which their next record became ready."""
    lanes, entry = lanes_with("aabacb")
    assert taken(lanes) == [0, 2, 4]
    lanes.settle((entry, 0))
    assert taken(lanes) == [1]


def test_a_key_with_many_records_is_no_further_ahead_than_others() -> None:
    """BW: after each of its records the others have their turn."""
    lanes, _ = lanes_with("aaab")
    order = []
    while (item := lanes.next()) is not None:
        order.append(item[1])
        lanes.settle(item)
    assert order == [0, 3, 1, 2]
    assert not lanes


def test_a_shard_in_order_has_one_record_in_hand() -> None:
    """``ordering: shard``: whatever their keys are."""
    lanes, entry = lanes_with("abc", "shard")
    assert taken(lanes) == [0]
    lanes.settle((entry, 0))
    assert taken(lanes) == [1]


def test_without_order_all_may_be_in_hand() -> None:
    """``ordering: none``: a record that is put off holds up nothing."""
    lanes, entry = lanes_with("aaa", "none")
    assert taken(lanes) == [0, 1, 2]
    lanes.delay((entry, 0), 5.0)
    lanes.wake(4.9)
    assert (lanes.ready, lanes.next_due_at) == (0, 5.0)
    lanes.wake(5.0)
    assert taken(lanes) == [0]


def test_what_is_put_off_holds_up_its_own_lane_only() -> None:
    """S2-11: with the key order a nack makes its key wait."""
    lanes, entry = lanes_with("aab")
    assert taken(lanes) == [0, 2]
    lanes.delay((entry, 0), 5.0)
    lanes.settle((entry, 2))
    assert taken(lanes) == []
    assert lanes.delayed() == [((entry, 0), 5.0)]
    lanes.wake(5.0)
    assert taken(lanes) == [0]


def test_ranges_of_which_nothing_is_in_hand_can_be_dropped() -> None:
    """Their keys are free again if nothing else of them waits."""
    ledger, lanes = Ledger(), Lanes("key")
    first, second = a_range("aa", ledger), a_range("ab", ledger, 3)
    lanes.add(first)
    lanes.add(second)
    assert lanes.next() == (first, 0)
    lanes.drop({second})
    lanes.settle((first, 0))
    assert lanes.next() == (first, 1)
    lanes.settle((first, 1))
    assert not lanes
    lanes.add(second)
    assert taken(lanes) == [0, 1]


def test_cleared_lanes_keep_what_is_in_hand() -> None:
    """A worker that stops hands over nothing more; what runs is settled as ever."""
    lanes, entry = lanes_with("aab")
    assert lanes.next() == (entry, 0)
    lanes.clear()
    assert lanes.next() is None
    assert lanes.in_hand == {(entry, 0)}
    lanes.settle((entry, 0))
    assert not lanes
