"""What the tree needs of a partitioned log: the narrow face that every source has.

Errors are those of ``kcl_py.errors``: ``ThrottledError``, ``IteratorExpiredError``, ``MissingError``,
``RejectedError`` or a plain ``RequestError`` (unknown outcome). A source never retries by itself.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from kcl_py.records import Record


class PositionKind(StrEnum):
    """Where reading can begin; the values are AWS's ShardIteratorType."""

    TRIM_HORIZON = "TRIM_HORIZON"
    LATEST = "LATEST"
    AT_TIMESTAMP = "AT_TIMESTAMP"
    AT = "AT_SEQUENCE_NUMBER"
    AFTER = "AFTER_SEQUENCE_NUMBER"


@dataclass(frozen=True, slots=True)
class Position:
    """A place to begin reading."""

    kind: PositionKind
    value: int = 0
    """Unix milliseconds for AT_TIMESTAMP, the sequence number for AT and AFTER."""


TRIM_HORIZON = Position(PositionKind.TRIM_HORIZON)
LATEST = Position(PositionKind.LATEST)


@dataclass(frozen=True, slots=True)
class ShardInfo:
    """One shard as the source lists it."""

    shard_id: str
    parents: tuple[str, ...] = ()
    """Shard ids of the parents: none, one (split) or two (merge)."""
    hash_range: tuple[int, int] | None = None
    """First and last hash key, both included."""
    closed: bool = False
    """Whether the shard takes no more records."""
    starts_at: int = 0
    """Its first sequence number; orders a lineage."""


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """The stream as the source describes it."""

    name: str
    arn: str
    created_s: int
    """Unix second of its creation: tells it from an earlier stream of the same name."""
    status: str
    """CREATING, ACTIVE, UPDATING or DELETING."""
    server_time_s: float
    """The Date header of this very reply, in Unix seconds."""

    @property
    def identity(self) -> str:
        return f"{self.name}:{self.created_s}"


@dataclass(frozen=True, slots=True)
class Listing:
    """The shards of a stream."""

    shards: tuple[ShardInfo, ...]
    server_time_s: float
    """The Date header of the first page, in Unix seconds."""

    def is_behind(self, known: Iterable[str]) -> bool:
        """Whether it shows the stream as it was before the youngest of shards that are known by other ways.

        Listings are eventually consistent. Shard ids grow, and what has aged out is older than all that is listed.
        """
        newest = max((_age(shard.shard_id) for shard in self.shards), default=None)
        return newest is not None and any(_age(key) > newest for key in known)


def _age(shard_id: str) -> tuple[int, str]:
    return len(shard_id), shard_id


@dataclass(frozen=True, slots=True)
class Fetched:
    """One reply of a shard: records in order, possibly none."""

    records: list[Record]
    next_iterator: str | None
    """None once the shard is closed and read to its end."""
    children: tuple[ShardInfo, ...]
    """The shards that follow this one; only at its end, and not from every service."""
    lag_ms: int
    """How far this reply is behind the tip of the shard."""
    size_bytes: int
    """Size of the payloads, or of the reply's body where that is what is known."""


class Source(Protocol):
    """One stream, read shard by shard."""

    async def describe(self) -> StreamInfo:
        """Describe the stream. Raises ``MissingError`` if there is none."""
        ...

    async def list_shards(self, at: Position | None = None) -> Listing:
        """List all shards, following pages; with ``at``, leave out those that ended before that position.

        An expired page token restarts the listing, so the result is always complete.
        """
        ...

    async def open(self, shard_id: str, position: Position) -> str:
        """Return an iterator for ``fetch``. Raises ``MissingError`` if the shard has aged out."""
        ...

    async def fetch(self, shard_id: str, iterator: str, *, limit: int) -> Fetched:
        """Read up to ``limit`` records, at once: an empty reply is an answer."""
        ...

    async def aclose(self) -> None:
        """Close connections; idempotent."""
        ...
