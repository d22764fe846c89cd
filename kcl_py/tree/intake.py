"""What a Pipeline has received from its Producer and not finished: the reading, the buffer and their bytes.

Never hands anything over, and never waits.
"""

from collections.abc import Callable

from actors.clock import Clock
from kcl_py.config import Config
from kcl_py.delivery.budget import Account
from kcl_py.delivery.buffer import Buffer, Cut, after
from kcl_py.delivery.held import Held
from kcl_py.delivery.lag import Lag
from kcl_py.delivery.ledger import Ledger, Range
from kcl_py.leases.row import Later
from kcl_py.records import SequenceNumber
from kcl_py.sources.source import Position
from kcl_py.tree.messages import CaughtUp, CloseReading, EndSeen, FetchedBatch, InHand, OpenReading, Progress, Room


class Intake:
    """The incoming side of one shard.

    Args:
        config: how much may be read ahead, and how it is cut into batches.
        account: the bytes that this shard holds.
        clock: tells how old records are.
        tell: tells the Producer, which reads when there is room.
    """

    def __init__(self, config: Config, account: Account, clock: Clock, tell: Callable[[object], object]) -> None:
        self._config, self._account, self._clock, self._tell = config, account, clock, tell
        self._buffer = Buffer()
        self._reading = 0
        self.is_open = False
        self._received: SequenceNumber | None = None
        self._last: Lag | None = None
        self._room_records = self._room_bytes = 0
        self.finished_bytes = 0

    def __bool__(self) -> bool:
        """Whether a batch can be taken."""
        return bool(self._buffer)

    def open(self, position: Position, ledger: Ledger, *, epoch: int) -> None:
        """Begin to read at ``position``, behind what the ledger has received; what it still holds takes room."""
        self._reading += 1
        self._received, self.is_open = ledger.received, True
        self._tell(OpenReading(position, self._reading, epoch))
        fetch, ahead = self._config.fetch, self._config.delivery.max_ahead
        held = ledger.held()
        self._room_records = min(fetch.prefetch_records, ahead.records) - sum(records for _, records, _ in held)
        self._room_bytes = min(fetch.prefetch_bytes, ahead.bytes) - sum(size_bytes for _, _, size_bytes in held)
        reads = tuple((read_at, records) for read_at, records, _ in held if records)
        self._tell(InHand(reads, self._room_records, self._room_bytes))

    def close(self, head: Range | None) -> int:
        """Stop reading and forget what was read; what was taken stays. Return how many bytes were dropped."""
        self._tell(CloseReading())
        self._reading += 1
        self.is_open = False
        if self._buffer:
            self._last = self.lag(head)
        dropped_bytes = self._buffer.clear()
        self._account.give_back(dropped_bytes)
        return dropped_bytes

    def is_current(self, message: FetchedBatch | CaughtUp | EndSeen) -> bool:
        """Whether a message is of the reading that is open, rather than of one that has been closed."""
        return message.reading == self._reading

    def receive(self, fetched: FetchedBatch) -> bool:
        """Take in records, each of them once; False if they are of a reading that has been closed."""
        if not self.is_current(fetched):
            self._account.give_back(fetched.size_bytes)
            return False
        self._last = Lag(fetched.lag_ms, self._clock.monotonic())
        self._room_records -= len(fetched.records)
        self._room_bytes -= fetched.size_bytes
        records = after(fetched.records, self._received)
        repeated = len(fetched.records) - len(records)
        if records:
            self._received = records[-1].position
            self._buffer.add(Cut(records, fetched.size_bytes, self._last))
        if repeated:
            self._free(repeated, 0 if records else fetched.size_bytes)
        return True

    def note_caught_up(self, caught_up: CaughtUp) -> None:
        """Note that a reply held no records."""
        self._last = Lag(caught_up.lag_ms, self._clock.monotonic())

    def take(self) -> Cut:
        """Take out records for a batch."""
        limits = self._config.delivery.batch
        return self._buffer.take(max_records=limits.max_records, max_bytes=limits.max_bytes)

    def free(self, records: int, size_bytes: int) -> None:
        """Note that what was taken is finished: there is room for as much again."""
        self.finished_bytes += size_bytes
        if records:
            self._free(records, size_bytes)

    def give_back(self, size_bytes: int) -> int:
        """Note that some of what was taken is dropped; return how much."""
        self._account.give_back(size_bytes)
        return size_bytes

    def drop(self, head: Range | None) -> None:
        """Forget also what was taken; it is as far behind as it was."""
        self._last = self.lag(head)
        self._account.reset()

    def begin_anew(self) -> None:
        """Forget all of an ownership that is over, also how far it was behind."""
        self._account.reset()
        self._last = None

    def forget(self) -> None:
        """Let go of all records, for good; their account is closed."""
        self._buffer.clear()

    def lag(self, head: Range | None) -> Lag | None:
        """How old the oldest record is that is not finished, or, without one, how far the last reply was behind.

        ``head`` holds it, unless none was taken. By whichever says more: when the stream received it, by this machine's
        clock; or the reply that it came with.
        """
        cut, place = (self._buffer.oldest, 0) if head is None else (head.cut, head.next)
        if cut is None:
            return self._last
        now = self._clock.monotonic()
        arrived_s = cut.records[place].arrived_s
        age_ms = int((self._clock.time() - arrived_s) * 1000) if arrived_s else 0
        return Lag(max(age_ms, cut.lag.lag_ms + int((now - cut.lag.at) * 1000), 1), now, is_growing=True)

    def progress(self, ledger: Ledger, later: tuple[Later, ...]) -> Progress:
        """Say how far the shard is."""
        head = ledger.head
        return Progress(
            ledger.prefix,
            ledger.delivered,
            self.lag(head),
            ledger.finished_records,
            self.finished_bytes,
            self._held(head),
            later,
        )

    @property
    def is_full(self) -> bool:
        """Whether nothing more is read for want of room."""
        return self.is_open and (self._room_records <= 0 or self._room_bytes <= 0)

    def _held(self, head: Range | None) -> Held | None:
        if head is None or not self.is_open:
            return None
        return Held(head.records[head.next].sequence_number, head.cut.lag.at, self.is_full)

    def _free(self, records: int, size_bytes: int) -> None:
        self._account.give_back(size_bytes)
        self._room_records += records
        self._room_bytes += size_bytes
        self._tell(Room(records, size_bytes))
