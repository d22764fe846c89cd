"""Which records of a shard are finished: the checkpoint is the end of the unbroken run, and this is where it is known.

Pure. Works on whole batches: O(1) for each, whatever it holds.
"""

from collections import deque
from dataclasses import dataclass

from kcl_py.records import SequenceNumber


@dataclass(slots=True)
class Range:
    """Records handed over together."""

    first: SequenceNumber
    last: SequenceNumber
    records: int
    is_finished: bool = False


class Ledger:
    """The ranges handed over within one ownership of a shard, in sequence order.

    Args:
        prefix: the stored checkpoint that the ownership begins with; None if there is none.
    """

    def __init__(self, prefix: SequenceNumber | None = None) -> None:
        self._open: deque[Range] = deque()
        self.prefix = prefix
        """End of the unbroken run of finished records. Never goes back."""
        self.delivered = prefix
        """The last record handed over."""
        self.finished_records = 0

    def open(self, first: SequenceNumber, last: SequenceNumber, records: int) -> Range:
        """Note that records are handed over; they must come after all others."""
        if self.delivered is not None and first <= self.delivered:
            raise ValueError(f"cannot hand over {first} after {self.delivered}: expected records in sequence order")
        entry = Range(first, last, records)
        self._open.append(entry)
        self.delivered = last
        return entry

    def finish(self, entry: Range) -> None:
        """Note that all records of a range are finished, in whatever order ranges finish."""
        entry.is_finished = True
        while self._open and self._open[0].is_finished:
            done = self._open.popleft()
            self._advance(done.last)
            self.finished_records += done.records

    def finish_to(self, position: SequenceNumber) -> None:
        """Take it that everything up to ``position`` is finished, because the user says so."""
        while self._open and self._open[0].last <= position:
            self.finish(self._open[0])
        if self.delivered is not None and position <= self.delivered:
            self._advance(position)

    def _advance(self, to: SequenceNumber) -> None:
        if self.prefix is None or to > self.prefix:
            self.prefix = to
