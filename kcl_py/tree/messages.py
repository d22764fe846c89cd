"""What the actors of the tree say to each other: the table "Who tells whom what" of docs/architecture.md.

Commands are imperative, events past tense. All frozen; nothing is asked, so nobody waits for an answer. ``until_at``
and other instants are monotonic seconds of the worker's clock.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import anyio

from actors import Ref
from kcl_py.delivery.earlier import Earlier
from kcl_py.delivery.held import Held
from kcl_py.delivery.lag import Lag
from kcl_py.leases.fence import Fence
from kcl_py.leases.row import Halt, Later, LeaseRow, Pending, WorkerRow
from kcl_py.leases.store import Scan
from kcl_py.leases.view import How
from kcl_py.records import Record, SequenceNumber
from kcl_py.sources.source import Listing, Position, ShardInfo

CAPACITY = 100_000
"""How many messages may wait for an actor that has to do with all shards of its worker: several for each of 20,000.
Source: the quota of shards in Kinesis's developer guide."""


class Why(StrEnum):
    """Why a Pipeline drains."""

    HANDOFF = "handoff"
    STOP = "stop"
    REQUEST = "request"


# --- Coordinator and ShardSupervisor -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OpenShard:
    """Coordinator → ShardSupervisor: run a Shard that takes this row."""

    row: LeaseRow
    how: How
    coordinator: Ref
    seen_at: float | None = None
    """When the row was first seen with its counter: a pull from a holder that is dead waits from then on, not anew."""
    fault: str | None = None
    """Set to let go of the shard at once, with this sentence in its row: nobody here can run it."""
    why: str = ""
    """For a pull: balance, or leaver. Comes into the row, for people."""


@dataclass(frozen=True, slots=True)
class CloseShard:
    """Coordinator → ShardSupervisor: the Shard has nothing left to do; stop it."""

    key: str


@dataclass(frozen=True, slots=True)
class Adopt:
    """Coordinator → ShardSupervisor: tell me what runs; I have been restarted."""

    coordinator: Ref


@dataclass(frozen=True, slots=True)
class ShardRuns:
    """ShardSupervisor → Coordinator: this Shard runs, and this is its Lease."""

    key: str
    shard: Ref
    lease: Ref


# --- the Coordinator's own tasks ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Members:
    """The worker table was read."""

    begun_at: float
    ended_at: float
    rows: tuple[WorkerRow, ...]


@dataclass(frozen=True, slots=True)
class Scanned:
    """The lease table was read."""

    begun_at: float
    ended_at: float
    scan: Scan
    is_consistent: bool = False
    """Whether it shows every write that was done before."""


@dataclass(frozen=True, slots=True)
class Reread:
    """Rows were read singly, consistently; None for one that is not there."""

    begun_at: float
    ended_at: float
    rows: Mapping[str, LeaseRow | None]


@dataclass(frozen=True, slots=True)
class Listed:
    """The shards of the stream were listed, completely."""

    listing: Listing
    begun_at: float
    known: frozenset[str]
    """The rows that were known when the listing began: of their parents it shows all that have not aged out."""


@dataclass(slots=True)
class Stopped:
    """Where the Coordinator says that no Shard is left."""

    arrived: anyio.Event = field(default_factory=anyio.Event)
    unfinished: int = 0
    """Records that will come again, of all Shards that ended during the stop."""
    has_let_go: bool = True
    """Whether it is sure that no lease names this worker; else they expire."""

    def resolve(self, *, has_let_go: bool) -> None:
        self.has_let_go = has_let_go
        self.arrived.set()


@dataclass(frozen=True, slots=True)
class StopWorker:
    """Stream → Coordinator: drain everything, then resolve ``stopped``."""

    until_at: float
    stopped: Stopped


# --- Lease → Coordinator -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Acquired:
    """The take was acknowledged: the row is this worker's."""

    row: LeaseRow


@dataclass(frozen=True, slots=True)
class Awaiting:
    """The handoff request stands in the row; its holder drains."""

    row: LeaseRow


@dataclass(frozen=True, slots=True)
class Initialized:
    """The processor of this shard has initialised."""

    key: str


@dataclass(frozen=True, slots=True)
class ShardEnded:
    """The shard is complete and its children have rows."""

    row: LeaseRow
    children: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GaveUp:
    """The row is not this worker's: not acquired, lost, transferred or released. The Shard can be closed."""

    key: str
    row: LeaseRow | None
    """As last known; None if there may be no row any more."""
    unfinished: int = 0
    """Records that will come again."""
    is_for_others: bool = False
    """It was released because somebody asked for that."""


# --- Coordinator → Lease -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hint:
    """The scan showed this row: look whether it concerns you."""

    row: LeaseRow


@dataclass(frozen=True, slots=True)
class MemberGone:
    """This worker is dead."""

    owner: str


@dataclass(frozen=True, slots=True)
class Release:
    """The worker stops: hand over or let go."""

    wait_until_at: float
    """Until then another worker may pull the shard while it goes on."""
    until_at: float
    """When the grace ends."""


# --- Lease → Pipeline --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Start:
    """The lease is held: begin at the stored checkpoint; after a drain, with a new processor under a new epoch."""

    lease: Ref
    row: LeaseRow
    fence: Fence
    epoch: int
    earlier: Earlier = field(default_factory=Earlier)
    """What owners before may have had in hand."""
    paused_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Drain:
    """Stop reading and handing over; wait for what runs until ``until_at``, then say ``Drained``."""

    why: Why
    until_at: float


@dataclass(frozen=True, slots=True)
class Resume:
    """The drain is off: go on after this position."""

    position: SequenceNumber | None
    pending: Pending | None = None


@dataclass(frozen=True, slots=True)
class Abandon:
    """The ownership is over: stop everything now and say ``Drained``."""


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A heartbeat was acknowledged after a gap: handing over may go on."""


# --- Pipeline and Producer ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OpenReading:
    """Pipeline → Producer: read from here on, as room is granted."""

    position: Position
    reading: int
    """Comes back with everything that is read from here; tells it from what an earlier reading still delivers."""
    epoch: int
    """Of the ownership, for the log."""


@dataclass(frozen=True, slots=True)
class InHand:
    """Pipeline → Producer: what was read before this reading and is not finished; so much may be read beside it."""

    reads: tuple[tuple[float, int], ...]
    """When (monotonic seconds), and how many records."""
    records: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Room:
    """Pipeline → Producer: this much more may be read."""

    records: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class CloseReading:
    """Pipeline → Producer: stop reading and forget the position and all room."""


@dataclass(frozen=True, slots=True)
class FetchedBatch:
    """Producer → Pipeline: records of the shard, in order, at least one."""

    records: list[Record]
    lag_ms: int
    size_bytes: int
    reading: int


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """Producer → Pipeline: a reply without records; how far the reading is behind."""

    lag_ms: int
    reading: int


@dataclass(frozen=True, slots=True)
class EndSeen:
    """Producer → Pipeline: the shard is closed and read to its end."""

    children: tuple[ShardInfo, ...]
    reading: int


# --- the worker's memory budget → Pipeline -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DropAhead:
    """Others wait for memory while this shard finishes nothing: drop what was read ahead of the batch in hand."""


# --- Pipeline → Lease --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the shard is."""

    prefix: SequenceNumber | None
    """End of the unbroken run of finished records."""
    delivered: SequenceNumber | None
    lag: Lag | None
    """None before the first reply."""
    records: int
    """Records finished since the ownership began."""
    size_bytes: int = 0
    """Their payload."""
    held: Held | None = None
    """What may hold up the reading."""
    later: tuple[Later, ...] = ()
    """Records that are put off."""


@dataclass(frozen=True, slots=True)
class PipelineStarted:
    """The processor has initialised."""


@dataclass(frozen=True, slots=True)
class Drained:
    """Nothing runs any more."""

    prefix: SequenceNumber | None
    delivered: SequenceNumber | None
    unfinished: int
    """Records that were in the processor's hands when its time was up."""


@dataclass(frozen=True, slots=True)
class Complete:
    """``shard_ended`` has returned: everything is finished."""

    prefix: SequenceNumber | None
    children: tuple[ShardInfo, ...]


@dataclass(frozen=True, slots=True)
class Halted:
    """Retries are used up: the shard stands still and holds its place."""

    halt: Halt


@dataclass(frozen=True, slots=True)
class Confirm:
    """Handing over waits: show by a heartbeat that the lease is still held."""
