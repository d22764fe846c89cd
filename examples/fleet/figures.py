"""What became of the records, from files alone. Pure but for reading them. Times are Unix seconds by one clock."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

Place = tuple[str, int]
"""A record: its shard and its sequence number."""


class Delivery(NamedTuple):
    """A record, handed over once."""

    at: float
    worker: int
    """The process."""
    place: Place


@dataclass(frozen=True, slots=True)
class Act:
    """Something that was done to the fleet."""

    name: str
    began_at: float
    ended_at: float
    is_gentle: bool = True
    """Whether it may have nothing delivered twice."""


@dataclass(frozen=True, slots=True)
class Row:
    """What an act has cost."""

    act: Act
    moved: int
    """How many times a shard went from one worker to another."""
    pauses_s: tuple[float, ...]
    """How long each such shard stood still, from the last record of the one to the first of the other."""
    twice: int
    """Records that were delivered again."""


def read(folder: Path) -> list[Delivery]:
    """Read what all workers wrote, in the order of time; a line without its end was of no finished record."""
    found = []
    for path in folder.glob("*.tsv"):
        for line in path.read_bytes().split(b"\n")[:-1]:
            at, shard, number = line.decode().split("\t")
            found.append(Delivery(float(at), int(path.stem), (shard, int(number))))
    return sorted(found)


def rows(acts: Iterable[Act], deliveries: Sequence[Delivery]) -> list[Row]:
    """Count for each act what happened while it lasted."""
    moves, again = _moves(deliveries), _again(deliveries)
    found = []
    for act in acts:
        pauses = tuple(pause for at, pause in moves if act.began_at <= at < act.ended_at)
        twice = sum(act.began_at <= at < act.ended_at for at in again)
        found.append(Row(act, len(pauses), pauses, twice))
    return found


def _moves(deliveries: Sequence[Delivery]) -> list[tuple[float, float]]:
    shards: dict[str, list[Delivery]] = defaultdict(list)
    for delivery in deliveries:
        shards[delivery.place[0]].append(delivery)
    return [
        (after.at, after.at - before.at)
        for found in shards.values()
        for before, after in pairwise(found)
        if before.worker != after.worker
    ]


def _again(deliveries: Sequence[Delivery]) -> list[float]:
    seen: set[Place] = set()
    found = []
    for delivery in deliveries:
        if delivery.place in seen:
            found.append(delivery.at)
        seen.add(delivery.place)
    return found


def after_waking(deliveries: Iterable[Delivery], worker: int, woke_at: float, took_at: float) -> int:
    """Count what a worker that was asleep delivered before it had taken anything anew."""
    return sum(each.worker == worker and woke_at <= each.at < took_at for each in deliveries)


def failures(put: set[Place], deliveries: Sequence[Delivery], table: Iterable[Row], stale: int) -> list[str]:
    """Say what is not as it must be; nothing if all is well."""
    missing = len(put - {each.place for each in deliveries})
    found = [f"{missing} of {len(put)} records lost"] if missing else []
    found += [f"{row.act.name}: {row.twice} records twice" for row in table if row.act.is_gentle and row.twice]
    return found + ([f"{stale} records delivered with old knowledge after a sleep"] if stale else [])


def milliseconds(of: Callable[[Sequence[float]], float], pauses_s: Sequence[float]) -> str:
    """Return ``of`` the pauses as a whole number of milliseconds; a dash if there were none."""
    return f"{of(pauses_s) * 1000:.0f}" if pauses_s else "-"
