"""One stream: its shards, and the change that is under way.

A change (creation, split, merge, another setting) takes effect when a reader or writer first looks at the stream after
its due time; nothing runs in between. Until then writes go on to the old shards, as on AWS.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from enum import StrEnum

from kcl_py.local.consumer import Consumer
from kcl_py.local.errors import in_use, not_found
from kcl_py.local.shard import Shard
from kcl_py.records import Record

ACCOUNT = "000000000000"
HOUR_S = 3600
DEFAULT_RETENTION_S = 24 * HOUR_S
DEFAULT_RECORD_BYTES = 1024 * 1024
"""Payload and key of one record, unless the stream is set otherwise. Source: Kinesis API reference, CreateStream."""
_SWEEP_S = 60.0
"""How often shards that nobody reads are trimmed too, to free their memory."""


class Mode(StrEnum):
    """How a stream's capacity is set."""

    PROVISIONED = "PROVISIONED"
    ON_DEMAND = "ON_DEMAND"


@dataclass(frozen=True, slots=True)
class Change:
    """What happens at ``due_s``: new shards, then cuts, then joins, in order; without any, only the status changes."""

    due_s: float
    ranges: tuple[tuple[int, int], ...] = ()
    """Of a new stream's shards."""
    cuts: tuple[int, ...] = ()
    """Hash keys with which a shard begins from then on."""
    joins: tuple[int, ...] = ()
    """Hash keys with which no shard begins any more."""


class Stream:
    """A named set of shards that divide the ring."""

    def __init__(self, name: str, *, region: str, created_s: int, mode: Mode, change: Change | None) -> None:
        self.name, self.created_s, self.mode = name, created_s, mode
        self.arn = f"arn:aws:kinesis:{region}:{ACCOUNT}:stream/{name}"
        self.retention_s, self.record_bytes = DEFAULT_RETENTION_S, DEFAULT_RECORD_BYTES
        self.key_id: str | None = None
        """The KMS key that encrypts it."""
        self.tags: dict[str, str] = {}
        self.consumers: dict[str, Consumer] = {}
        self.opened_s = 0.0
        """When its first shards were opened."""
        self.gone_s: float | None = None
        """When a deletion under way is complete."""
        self.next_index = 0
        self._shards: dict[int, Shard] = {}
        self._change = change
        self._swept_s = float(created_s)
        self._open: list[Shard] = []
        self._starts: list[int] = []

    @property
    def status(self) -> str:
        if self.gone_s is not None:
            return "DELETING"
        if self._change is None:
            return "ACTIVE"
        return "UPDATING" if self._shards else "CREATING"

    @property
    def is_usable(self) -> bool:
        """Whether it takes and gives records."""
        return self.status in ("ACTIVE", "UPDATING")

    @property
    def encryption(self) -> str:
        return "NONE" if self.key_id is None else "KMS"

    @property
    def change(self) -> Change | None:
        """What is under way."""
        return self._change

    def open_shards(self) -> list[Shard]:
        """Return the shards that take records, in the order of their ranges."""
        return self._open

    def shards(self, now_s: float) -> list[Shard]:
        """Return the shards that are open or were closed within the retention, in the order of their creation."""
        horizon_s = now_s - self.retention_s
        return [shard for shard in self._shards.values() if shard.is_kept(horizon_s)]

    def settle(self, now_s: float) -> bool:
        """Let a change that is due take effect, as of its due time; return whether there was one."""
        if now_s - self._swept_s >= _SWEEP_S:
            self._sweep(now_s)
        change = self._change
        if change is None or now_s < change.due_s:
            return False
        self._change = None
        if change.ranges:
            self.opened_s = change.due_s
            self._replace((), change.ranges, change.due_s)
        for key in change.cuts:
            shard = self.route(key)
            first, last = shard.hash_range
            self._replace((shard,), ((first, key - 1), (key, last)), change.due_s)
        for key in change.joins:
            pair = self.route(key - 1), self.route(key)
            self._replace(pair, ((pair[0].hash_range[0], pair[1].hash_range[1]),), change.due_s)
        return True

    def begin(self, change: Change) -> None:
        """Begin to change. Raises ResourceInUseException unless the stream is ACTIVE."""
        self.check_active()
        self._change = change

    def check_active(self) -> None:
        """Raise ResourceInUseException unless the stream is ACTIVE."""
        if self.status != "ACTIVE":
            raise in_use(f"Stream {self.name} under account {ACCOUNT} not ACTIVE, instead in state {self.status}")

    def route(self, hash_key: int) -> Shard:
        """Return the open shard whose range holds ``hash_key``."""
        return self._open[bisect_right(self._starts, hash_key) - 1]

    def shard(self, shard_id: str, now_s: float) -> Shard:
        """Return a shard by its id, without what is older than the retention. Raises ResourceNotFoundException."""
        _, _, digits = shard_id.rpartition("-")
        return self.shard_at(int(digits) if digits.isdecimal() else -1, now_s, shard_id)

    def shard_at(self, index: int, now_s: float, shard_id: str = "") -> Shard:
        """Return a shard by its number, as ``shard`` does."""
        shard, horizon_s = self._shards.get(index), now_s - self.retention_s
        if shard is None or not shard.is_kept(horizon_s):
            name = shard_id or f"shardId-{index:012d}"
            raise not_found(f"Shard {name} in stream {self.name} under account {ACCOUNT} does not exist")
        shard.trim(horizon_s)
        return shard

    def restore(self, shards: list[Shard], next_index: int) -> None:
        """Take the shards that an earlier run left."""
        self._shards = {shard.index: shard for shard in shards}
        self.next_index = next_index
        self._open = sorted((s for s in shards if s.closed_s is None), key=lambda shard: shard.hash_range)
        self._starts = [shard.hash_range[0] for shard in self._open]

    def complete(self) -> None:
        """Let a change that was under way when an earlier run ended be done."""
        if self._change is not None:
            self.settle(self._change.due_s)

    def restore_record(self, index: int, position: int, record: Record) -> None:
        """Take a record back that an earlier run stored, unless its shard is gone."""
        if (shard := self._shards.get(index)) is not None:
            shard.restore(position, record)

    def go_on_at(self, index: int, position: int) -> None:
        """Let a shard of an earlier run go on where it was, unless it is gone."""
        if (shard := self._shards.get(index)) is not None:
            shard.go_on_at(position)

    def take_back(self, index: int, position: int) -> None:
        """Forget the newest records of a shard, from ``position`` on; nobody has seen them."""
        self._shards[index].take_back(position)

    def _replace(self, parents: tuple[Shard, ...], ranges: tuple[tuple[int, int], ...], now_s: float) -> None:
        """Close ``parents``, which are neighbours, and open their children in their place."""
        place = bisect_left(self._starts, ranges[0][0])
        for parent in parents:
            parent.close(now_s)
        opened = [
            Shard(index, hash_range, parents=parents, opened_s=now_s)
            for index, hash_range in enumerate(ranges, self.next_index)
        ]
        self.next_index += len(opened)
        self._shards |= {shard.index: shard for shard in opened}
        for parent in parents:
            parent.children += opened
        self._open[place : place + len(parents)] = opened
        self._starts[place : place + len(parents)] = [first for first, _ in ranges]

    def _sweep(self, now_s: float) -> None:
        self._swept_s, horizon_s = now_s, now_s - self.retention_s
        self._shards = {index: shard for index, shard in self._shards.items() if shard.is_kept(horizon_s)}
        for shard in self._shards.values():
            shard.trim(horizon_s)
