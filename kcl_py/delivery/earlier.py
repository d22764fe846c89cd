"""What an earlier owner of a shard may have had in hand. Pure.

Never too little: a record that says it comes for the first time does.
"""

from dataclasses import dataclass
from operator import attrgetter

from kcl_py.leases.row import LeaseRow
from kcl_py.records import Record, SequenceNumber, is_number

_arrived_s = attrgetter("arrived_s")

SKEW_S = 300.0
"""How far this machine's clock and Kinesis's may be apart: requests signed by a clock that is further off are refused.
Source: AWS, signing of requests, five minutes."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """Records up to the sequence number ``to``, and all that arrived before ``before_s`` (Unix seconds)."""

    to: int | None = None
    before_s: float = 0.0

    def reaching(self, delivered: SequenceNumber | None, arrived_s: float) -> "Earlier":
        """The same, and what this ownership was handed: up to ``delivered``, which arrived then (Unix seconds).

        Once that is newer than anything an earlier owner may have had, nothing beyond it was in anybody's hands.
        """
        to = self.to if delivered is None else max(delivered.value, self.to or 0)
        return Earlier(to, 0.0 if arrived_s >= self.before_s else self.before_s)

    @property
    def end(self) -> SequenceNumber | None:
        """Up to where records were handed over, to whomever; None where nobody can say."""
        return None if self.to is None or self.before_s else SequenceNumber(self.to)

    def may_have_had(self, record: Record) -> bool:
        """Whether the record may have been in somebody's hands."""
        return record.arrived_s < self.before_s or (self.to is not None and int(record.sequence_number) <= self.to)

    def may_have_had_any(self, records: list[Record]) -> bool:
        """Whether one of several records, in order, may have been."""
        if self.before_s:
            return any(arrived_s < self.before_s for arrived_s in map(_arrived_s, records))
        return self.to is not None and self.may_have_had(records[0])


def earlier(row: LeaseRow, now_s: float) -> Earlier:
    """Say what owners before may have had, from the row as it was before it was taken at ``now_s`` (Unix seconds).

    The last owner that let go in order has left how far it came, and the counter with which it wrote that: whoever has
    had the row since, be it a Java worker, has raised it.
    """
    native = row.native
    if native.clean == row.counter:
        delivered = native.delivered
        return Earlier(to=int(delivered) if delivered is not None and is_number(delivered) else None)
    if row.counter == 0 and row.holder is None:
        return Earlier()
    return since(now_s)


def since(now_s: float) -> Earlier:
    """Say that anything that had arrived by ``now_s`` may have been in somebody's hands."""
    return Earlier(before_s=now_s + SKEW_S)
