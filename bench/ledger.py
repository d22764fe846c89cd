"""``python -m bench.ledger``: what the bookkeeping of delivery costs for each record, in microseconds of CPU.

The batch path takes in a range of records and finishes it whole; the lane path takes in each record by its key, hands
it over, and finishes it in an order of its own. No user code, no tasks, no network. Medians of several runs.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable

from kcl_py.delivery.buffer import Cut
from kcl_py.delivery.lag import Lag
from kcl_py.delivery.lanes import Item, Lanes
from kcl_py.delivery.ledger import Ledger
from kcl_py.records import Record

BATCH = 1000
DIGITS = 10**55
"""A number of 56 digits, as those of Kinesis are."""


def cuts(records: int, keys: int) -> list[Cut]:
    """Make so many records, with so many keys, cut into batches."""
    lag, draw = Lag(0, 0.0), random.Random(1)
    return [
        Cut(
            [
                Record(str(DIGITS + number), b"x" * 100, f"key-{draw.randrange(keys)}")
                for number in range(at, at + BATCH)
            ],
            100 * BATCH,
            lag,
        )
        for at in range(0, records, BATCH)
    ]


def in_batches(taken: list[Cut]) -> None:
    """Take in, hand over and finish batch by batch."""
    ledger = Ledger()
    for cut in taken:
        entry = ledger.open(cut)
        ledger.deliver(entry, BATCH - 1)
        ledger.finish(entry)
        ledger.news()
    assert ledger.finished_records == len(taken) * BATCH


def in_lanes(taken: list[Cut]) -> None:
    """Take in, hand over and finish record by record; of 64 in hand any may be the next to be finished."""
    ledger, lanes, draw = Ledger(), Lanes("key"), random.Random(2).randrange
    in_hand: list[Item] = []
    for cut in taken:
        lanes.add(ledger.open(cut))
        while lanes:
            while len(in_hand) < 64 and (item := lanes.next()) is not None:
                ledger.deliver(*item)
                in_hand.append(item)
            place = draw(len(in_hand))
            in_hand[place], in_hand[-1] = in_hand[-1], in_hand[place]
            item = in_hand.pop()
            ledger.finish_record(*item)
            lanes.settle(item)
        ledger.news()
    assert ledger.finished_records == len(taken) * BATCH


def drawing(taken: list[Cut]) -> None:
    """Draw as ``in_lanes`` does, and do nothing else: not of the ledger's cost."""
    draw, in_hand = random.Random(2).randrange, list(range(64))
    for _ in range(len(taken) * BATCH):
        place = draw(64)
        in_hand[place], in_hand[-1] = in_hand[-1], in_hand[place]
        in_hand.append(in_hand.pop())


def cost_us(work: Callable[[list[Cut]], None], taken: list[Cut], reps: int) -> float:
    """Return the median cost of one record."""
    found = []
    for _ in range(reps):
        begun_s = time.process_time()
        work(taken)
        found.append((time.process_time() - begun_s) / (len(taken) * BATCH) * 1e6)
    return statistics.median(found)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--reps", type=int, default=7)
    options = parser.parse_args()
    taken = cuts(options.records, options.keys)
    batch_us, lane_us = cost_us(in_batches, taken, options.reps), cost_us(in_lanes, taken, options.reps)
    lane_us -= cost_us(drawing, taken, options.reps)
    print(f"{options.records:,} records, {options.keys:,} keys, median of {options.reps}")
    print(f"batch path  {batch_us:.3f} us a record")
    print(f"lane path   {lane_us:.2f} us a record")


if __name__ == "__main__":
    main()
