"""What the workers wrote down: one line for each record that was handed to them, in one file for each process.

Only files are believed. A line without its end was being written when its process was killed: it counts for nothing,
because the hand-over it belongs to was not over.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple


class Fact(NamedTuple):
    """One record, handed over once."""

    shard_id: str
    number: int
    """Its sequence number."""
    identity: str


def parse(line: bytes) -> Fact:
    """Read a line: shard, sequence number, identity and partition key, separated by tabs."""
    shard_id, number, identity, _ = line.decode().split("\t")
    return Fact(shard_id, int(number), identity)


def read(path: Path) -> Iterator[Fact]:
    """Yield the facts of one file, in the order in which they were written."""
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield parse(line)


class Follower:
    """Reads the files of a folder as they grow."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read_bytes: dict[Path, int] = {}

    def news(self) -> list[Fact]:
        """Return what has been written since the last call."""
        return [parse(line) for path in sorted(self._folder.glob("*.tsv")) for line in self._lines(path)]

    def _lines(self, path: Path) -> list[bytes]:
        start = self._read_bytes.get(path, 0)
        with path.open("rb") as file:
            file.seek(start)
            whole, _, _ = file.read().rpartition(b"\n")
        if not whole:
            return []
        self._read_bytes[path] = start + len(whole) + 1
        return whole.split(b"\n")


@dataclass(frozen=True, slots=True)
class Tally:
    """What came of the flights that were put."""

    total: int
    """All that was seen, repetitions included."""
    distinct: int
    missing: int

    @property
    def twice(self) -> int:
        """How many were seen beyond the first time."""
        return self.total - self.distinct


def tally(expected: AbstractSet[str], seen: Collection[str]) -> Tally:
    """Compare the identities that were put with those that were seen."""
    distinct = set(seen)
    return Tally(len(seen), len(distinct), len(expected - distinct))


def bound(handed_over: Iterable[Fact], checkpoints: Mapping[str, str]) -> int:
    """Return how many records a killed worker was handed after its last stored checkpoints: those may come again.

    Args:
        handed_over: its facts.
        checkpoints: of the shards that it still held, as its rows said after the kill. A shard that is not named was
            no longer its own: what it finished there is stored.
    """
    positions = {shard_id: _position(checkpoint) for shard_id, checkpoint in checkpoints.items()}
    return sum(fact.number > positions[fact.shard_id] for fact in handed_over if fact.shard_id in positions)


def _position(checkpoint: str) -> float:
    if checkpoint == "SHARD_END":
        return float("inf")
    return int(checkpoint) if checkpoint.isdigit() else -1
