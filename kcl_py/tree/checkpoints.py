"""What a Lease stores of its progress, and when: the finished prefix as configured, and what the processor asks. Pure.

Instants are monotonic seconds. A position is written only once it is finished, and answers are given only when stored.
"""

from collections import deque

from kcl_py.config import Checkpoint as Options
from kcl_py.leases.row import LeaseRow, Pending
from kcl_py.records import SequenceNumber
from kcl_py.tree.asking import Checkpoint, CheckpointOutcome, Prepare, Transact
from kcl_py.tree.messages import Progress
from kcl_py.tree.transactions import Transactions


class Checkpoints:
    """The checkpoints of one ownership."""

    def __init__(self, options: Options, *, max_ahead_s: float) -> None:
        self._options, self._max_ahead_s = options, max_ahead_s
        self._asked: list[Checkpoint] = []
        self._prepares: deque[Prepare] = deque()
        self.transactions = Transactions()
        self._stored: SequenceNumber | None = None
        self._stored_at = float("-inf")
        self._stored_records = 0
        self._offered: Progress | None = None
        self.progress: Progress | None = None

    def begin(self, stored: SequenceNumber | None, *, unstored: int = 0) -> None:
        """Begin to count, at the position that the row holds; so many records beyond it are finished."""
        self._stored, self._stored_records = stored, -unstored
        self.progress = self._offered = None

    @property
    def unstored(self) -> int:
        """Records that are finished and will come again if nothing more is stored."""
        return 0 if self.progress is None else self.progress.records - self._stored_records

    def held_by(self, now: float) -> str | None:
        """The record behind which nothing more is read, until it is finished."""
        held = None if self.progress is None else self.progress.held
        return None if held is None else held.by(now, longest_s=self._max_ahead_s)

    def is_pressing(self, now: float) -> bool:
        """Whether progress is to be stored now, without waiting for the next heartbeat."""
        options, progress = self._options, self.progress
        if options.mode == "manual" or progress is None or progress.prefix in (None, self._stored):
            return False
        return self._are_many(progress) or (options.interval_s is not None and not self._is_early(now))

    def due(self, now: float) -> SequenceNumber | None:
        """The position that a heartbeat at ``now`` stores."""
        if self._options.mode == "manual" or self.progress is None:
            return None
        if self._is_early(now) and not self._are_many(self.progress):
            return None
        self._offered = self.progress
        return self.progress.prefix

    def final(self, prefix: SequenceNumber | None) -> SequenceNumber | None:
        """The position that the last write of an ownership stores, given the finished prefix."""
        return prefix if self._options.mode == "auto" else None

    def ask(self, checkpoint: Checkpoint | Prepare | Transact, token: str | None) -> None:
        """Queue what the processor asks for, if the ownership under ``token`` is that of which it has the shard."""
        if checkpoint.token != token:
            checkpoint.answer.resolve(CheckpointOutcome.LOST)
        elif self._stored is not None and checkpoint.position <= self._stored:
            checkpoint.answer.resolve(CheckpointOutcome.STORED)
        elif isinstance(checkpoint, Transact):
            self.transactions.ask(checkpoint)
        elif isinstance(checkpoint, Prepare):
            self._prepares.append(checkpoint)
        else:
            self._asked.append(checkpoint)

    def asked(self) -> SequenceNumber | None:
        """The newest position that the processor waits for."""
        self._offered = self.progress
        return max((each.position for each in self._asked), default=None)

    def transaction(self) -> Transact | None:
        """The transaction to be sent."""
        self._offered = self.progress
        return self.transactions.next()

    def prepared(self) -> Pending | None:
        """The checkpoint to be prepared."""
        return self._prepares[0].pending if self._prepares else None

    def note_stored(self, row: LeaseRow, now: float) -> bool:
        """Note what the row holds after an acknowledged write; True if its position is news."""
        position = row.position
        self.transactions.note_row(row)
        while self._prepares and (
            row.pending == self._prepares[0].pending
            or (position is not None and self._prepares[0].position <= position)
        ):
            self._prepares.popleft().answer.resolve(CheckpointOutcome.STORED)
        if position is None or position == self._stored:
            return False
        self._stored, self._stored_at = position, now
        offered = self._offered
        if offered is not None and offered.prefix is not None and offered.prefix <= position:
            self._stored_records = offered.records
        for each in self._asked:
            if each.position <= position:
                each.answer.resolve(CheckpointOutcome.STORED)
        self._asked = [each for each in self._asked if each.answer.outcome is None]
        return True

    def refuse(self) -> None:
        """Nothing can be stored any more."""
        waiting: list[Checkpoint | Prepare] = [*self._asked, *self._prepares]
        for each in waiting:
            each.answer.resolve(CheckpointOutcome.LOST)
        self._asked.clear()
        self._prepares.clear()
        self.transactions.refuse()

    def _is_early(self, now: float) -> bool:
        return self._options.interval_s is not None and now - self._stored_at < self._options.interval_s

    def _are_many(self, progress: Progress) -> bool:
        records = self._options.records
        return records is not None and progress.records - self._stored_records >= records
