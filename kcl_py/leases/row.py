"""The lease row and the worker row: their fields and how they are written as items.

No I/O and no clock. A lease row is the Java client's item plus one map, ``native`` (docs/leases.md); attributes that
we do not know are left alone by every write. "Item" here means plain Python values under AWS's attribute names:
str, int, float, bytes, ``set[str]``, dict, list. Instants in items are Unix milliseconds (``_ms``).
Source of names and meanings: the Java client's DynamoDBLeaseSerializer and WorkerMetricStats.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kcl_py.records import SequenceNumber

Item = Mapping[str, Any]
"""An item as plain values."""

SHARD_END = "SHARD_END"
TRIM_HORIZON = "TRIM_HORIZON"
LATEST = "LATEST"
AT_TIMESTAMP = "AT_TIMESTAMP"
TEXT_CHARACTERS = 200
"""How much of an error goes into a row, which stays under 1 KB so that a heartbeat costs one write unit."""
SENTINELS = frozenset({SHARD_END, TRIM_HORIZON, LATEST, AT_TIMESTAMP})


class MalformedRowError(ValueError):
    """An item of the lease table that is not a lease; it is reported and left alone."""


@dataclass(frozen=True, slots=True)
class Halt:
    """Why a shard stands still: stored in the row so that ``kcl status`` can show it."""

    error: str
    position: str


MOST_LATER = 3
"""How many records that are put off are named in a row, for the same reason."""


@dataclass(frozen=True, slots=True)
class Later:
    """A record that the processor has put off, for whoever owns the shard then."""

    sequence_number: str
    due_ms: int


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody outside asks of the holder; as it was read, so it may be malformed: see ``leases/requests.py``."""

    id: str
    """Tells one request from the next; empty if there is none."""
    kind: str
    position: str | None = None


@dataclass(frozen=True, slots=True)
class Paused:
    """That a shard is paused: whoever holds it hands nothing over. A state, which stays until somebody takes it out."""

    at_ms: int
    """When that was asked for, by the clock of who asked."""
    why: str | None = None
    """For people."""
    is_of_stream: bool = False
    """Whether the whole stream is paused, and with it whatever follows this shard."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A checkpoint that a processor has prepared and not yet committed."""

    position: SequenceNumber
    state: bytes | None = None
    """What the processor wants to know of it when it finds it again."""


@dataclass(frozen=True, slots=True)
class Native:
    """The ``native`` map of a lease row."""

    token: str | None = None
    """Fresh at each take; the fence of every write by a holder."""
    owner: str | None = None
    """Who wrote ``token``; the volatile fields count only while this is the actual owner."""
    taken_ms: int | None = None
    """When ``owner`` took the row, by its clock: orders one owner's rows, which of them it took last."""
    why: str | None = None
    """Why ``owner`` took the row: free, expired, own, balance, leaver."""
    stream: str | None = None
    """``name:creationEpoch``."""
    start_ms: int | None = None
    """When the reading of the lineage begins; of a shard at LATEST or AT_TIMESTAMP, where it begins."""
    delivered: str | None = None
    """How far records were handed over when the last owner let go in order."""
    clean: int | None = None
    """The counter that this owner left: as long as it stands, nobody has had the shard since."""
    lag_ms: int | None = None
    lag_at_ms: int | None = None
    halted: Halt | None = None
    held_by: str | None = None
    """The record behind which nothing more is read, until it is finished."""
    fault: str | None = None
    """Why no worker could run this shard."""
    later: tuple[Later, ...] = ()
    """Records that are put off, the first due ones."""
    request: Request | None = None
    paused: Paused | None = None
    quiet_for: int | None = None
    """Of which pause, by its ``at_ms``, the holder has said that nothing of the shard is in hand; volatile."""
    transaction: str | None = None
    """The last transaction that has stored a checkpoint together with effects."""


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """One shard's lease as read."""

    key: str
    """The shard id."""
    counter: int = 0
    owner: str | None = None
    """``leaseOwner``: the holder, or during a handoff the receiver."""
    checkpoint_owner: str | None = None
    """``checkpointOwner``: the holder, while a handoff is under way."""
    checkpoint: str = TRIM_HORIZON
    """A sequence number in digits, or a sentinel."""
    sub: int = 0
    switches: int = 0
    parents: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    hash_range: tuple[int, int] | None = None
    throughput_kbps: float | None = None
    native: Native = field(default_factory=Native)
    has_native: bool = True
    """False for a row that only Java workers have written."""
    pending: Pending | None = None

    @property
    def holder(self) -> str | None:
        """The actual owner: who may write this row."""
        return self.checkpoint_owner or self.owner

    @property
    def native_is_current(self) -> bool:
        """Whether lag, halt and fault in ``native`` are those of the actual owner, or of the last one if it is free."""
        return self.native.owner == self.holder

    @property
    def has_ended(self) -> bool:
        return self.checkpoint == SHARD_END

    @property
    def has_progress(self) -> bool:
        """Whether the shard is beyond where its reading began: what comes before it had been read by then."""
        return self.checkpoint not in (TRIM_HORIZON, LATEST, AT_TIMESTAMP)

    @property
    def stream_pause(self) -> Paused | None:
        """The pause of the whole stream, if the row tells of one: a new shard begins under it."""
        paused = self.native.paused
        return paused if paused is not None and paused.is_of_stream else None

    @property
    def in_handoff(self) -> bool:
        return self.checkpoint_owner is not None

    @property
    def position(self) -> SequenceNumber | None:
        """The stored checkpoint, or None while it is a sentinel."""
        return None if self.checkpoint in SENTINELS else SequenceNumber(int(self.checkpoint), self.sub)

    def pending_after(self, position: SequenceNumber | None) -> Pending | None:
        """The prepared checkpoint, if it lies beyond ``position``."""
        pending = self.pending
        return None if pending is None or (position is not None and pending.position <= position) else pending


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """One live worker's row."""

    worker: str
    """``wid``; the same string as ``leaseOwner``."""
    beat: int = 0
    """Raised at each write; a row that does not move for F is dead."""
    state: str = "starting"
    """starting, active or draining."""
    held: int = 0
    max_leases: int | None = None
    strategy: str = "count"
    """What it would balance; a fleet balances by ``throughput`` only if all its workers would."""
    held_off: str | None = None
    """Why it takes less than would fall to it; for people."""
    news: int = 0
    """Raised at events that others should look at the lease table for."""
    changed: tuple[str, ...] = ()
    """The rows that the last news are about, the newest last; an empty string where it is about none."""
    updated_s: int = 0
    """``lut``, Unix seconds; for people and the Java client, never for decisions."""
