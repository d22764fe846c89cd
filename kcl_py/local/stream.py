"""One stream: its shards, and the change that is under way.

A change (creation, split, merge) takes effect when a reader or writer first looks at the stream after its due time;
nothing runs in between. Until then writes go on to the old shards, as on AWS.
"""

from bisect import bisect_right
from dataclasses import dataclass
from enum import StrEnum

from kcl_py.local.errors import in_use, not_found
from kcl_py.local.shard import Shard

ACCOUNT = "000000000000"


class Mode(StrEnum):
    """How a stream's capacity is set."""

    PROVISIONED = "PROVISIONED"
    ON_DEMAND = "ON_DEMAND"


@dataclass(frozen=True, slots=True)
class Reshard:
    """Open shards are replaced by new ones, one for each range; a stream's creation is one without parents."""

    due_s: float
    parents: tuple[Shard, ...]
    ranges: tuple[tuple[int, int], ...]


class Stream:
    """A named set of shards that divide the ring."""

    def __init__(self, name: str, *, region: str, created_s: int, mode: Mode, change: Reshard) -> None:
        self.name, self.created_s, self.mode = name, created_s, mode
        self.arn = f"arn:aws:kinesis:{region}:{ACCOUNT}:stream/{name}"
        self.shards: list[Shard] = []
        self.gone_s: float | None = None
        """When a deletion under way is complete."""
        self._change: Reshard | None = change
        self._open: list[Shard] = []
        self._starts: list[int] = []

    @property
    def status(self) -> str:
        if self.gone_s is not None:
            return "DELETING"
        if self._change is None:
            return "ACTIVE"
        return "UPDATING" if self.shards else "CREATING"

    @property
    def is_usable(self) -> bool:
        """Whether it takes and gives records."""
        return self.status in ("ACTIVE", "UPDATING")

    def open_shards(self) -> list[Shard]:
        """Return the shards that take records, in the order of their ranges."""
        return self._open

    def settle(self, now_s: float) -> None:
        """Let a change that is due take effect, as of its due time."""
        change = self._change
        if change is None or now_s < change.due_s:
            return
        self._change = None
        for parent in change.parents:
            parent.close(change.due_s)
        for hash_range in change.ranges:
            shard = Shard(len(self.shards), hash_range, parents=change.parents, opened_s=change.due_s)
            self.shards.append(shard)
            for parent in change.parents:
                parent.children.append(shard)
        self._open = sorted((s for s in self.shards if s.closed_s is None), key=lambda shard: shard.hash_range)
        self._starts = [shard.hash_range[0] for shard in self._open]

    def reshard(self, change: Reshard) -> None:
        """Begin to replace shards. Raises ResourceInUseException unless the stream is ACTIVE and the shards open."""
        if self.status != "ACTIVE":
            raise in_use(f"Stream {self.name} under account {ACCOUNT} not ACTIVE, instead in state {self.status}")
        for shard in change.parents:
            if shard.closed_s is not None:
                raise in_use(
                    f"Shard {shard.shard_id} in stream {self.name} under account {ACCOUNT} has already been merged or "
                    "split, and thus is not eligible for merging or splitting."
                )
        self._change = change

    def route(self, hash_key: int) -> Shard:
        """Return the open shard whose range holds ``hash_key``."""
        return self._open[bisect_right(self._starts, hash_key) - 1]

    def shard(self, shard_id: str) -> Shard:
        """Return a shard by its id. Raises ResourceNotFoundException."""
        _, _, digits = shard_id.rpartition("-")
        index = int(digits) if digits.isdecimal() else len(self.shards)
        if index >= len(self.shards):
            raise not_found(f"Shard {shard_id} in stream {self.name} under account {ACCOUNT} does not exist")
        return self.shards[index]
