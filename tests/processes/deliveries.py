"""What processors got, and what must hold of it. Pure. Times are Unix seconds by one clock, durations seconds."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Delivery:
    """A record that a processor has got."""

    worker: int
    """The process."""
    at: float
    shard: str
    sequence: int
    key: str
    number: int
    """Which record it is: records are numbered in the order in which they are put."""

    @classmethod
    def parse(cls, worker: int, line: str) -> Self:
        at, shard, sequence, key, number = line.split()
        return cls(worker, float(at), shard, int(sequence), key, int(number))


@dataclass(frozen=True, slots=True)
class Move:
    """A shard that went from one worker to another, as its records show it."""

    shard: str
    giver: int
    taker: int
    pause_s: float


def by_shard(deliveries: Iterable[Delivery]) -> dict[str, list[Delivery]]:
    """Return what was delivered of each shard."""
    shards: dict[str, list[Delivery]] = defaultdict(list)
    for delivery in deliveries:
        shards[delivery.shard].append(delivery)
    return dict(shards)


def moves(deliveries: Iterable[Delivery]) -> list[Move]:
    """Return all changes of a shard's worker."""
    return [
        Move(shard, before.worker, after.worker, after.at - before.at)
        for shard, found in by_shard(deliveries).items()
        for before, after in pairwise(found)
        if before.worker != after.worker
    ]


def twice(deliveries: Iterable[Delivery]) -> set[int]:
    """Return the records that were delivered more than once."""
    return {number for number, times in Counter(delivery.number for delivery in deliveries).items() if times > 1}


def beyond(deliveries: Iterable[Delivery], worker: int, checkpoints: Mapping[str, int]) -> set[int]:
    """Return what a worker got after what it had stored of each shard: this may come again, and nothing else."""
    return {
        delivery.number
        for delivery in deliveries
        if delivery.worker == worker and delivery.sequence > checkpoints[delivery.shard]
    }


def firsts(deliveries: Iterable[Delivery]) -> list[Delivery]:
    """Return each record's first delivery."""
    found: dict[int, Delivery] = {}
    for delivery in deliveries:
        found.setdefault(delivery.number, delivery)
    return list(found.values())


def stall_s(deliveries: Iterable[Delivery]) -> float:
    """Return the longest that a worker left a shard of its own alone: how long this machine lets a process wait.

    A law's limit in seconds is for a machine with time for its processes; this is added where there is none. Past a
    second it is no longer the machine.
    """
    gaps = (
        after.at - before.at
        for found in by_shard(deliveries).values()
        for before, after in pairwise(found)
        if before.worker == after.worker
    )
    return min(max(gaps), 1.0)


def check_in_order(deliveries: Iterable[Delivery], put_to: Mapping[str, Sequence[int]]) -> None:
    """Nothing is passed over: of each shard an unbroken run from its beginning, in the order in which it was put."""
    for shard, found in by_shard(firsts(deliveries)).items():
        numbers = [delivery.number for delivery in found]
        assert numbers == list(put_to[shard][: len(numbers)]), shard


def check_keys_in_order(deliveries: Iterable[Delivery]) -> None:
    """Whoever looks at one key sees its records in the order in which they were put."""
    last: dict[str, int] = {}
    for delivery in firsts(deliveries):
        assert delivery.number > last.get(delivery.key, -1), delivery
        last[delivery.key] = delivery.number


def check_parents_before_children(deliveries: Iterable[Delivery], shards: Mapping[str, Mapping[str, Any]]) -> None:
    """No record of a shard is delivered before the last one of its parents, even again."""
    found = by_shard(deliveries)
    for shard_id, shard in shards.items():
        for parent_id in (shard.get("ParentShardId"), shard.get("AdjacentParentShardId")):
            if parent_id in found and shard_id in found:
                assert found[parent_id][-1].at <= found[shard_id][0].at, f"{shard_id} before the end of {parent_id}"
