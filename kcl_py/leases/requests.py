"""What somebody outside asks of the holder of a shard, and whether it can be done. Pure.

A request stands in ``native.request`` until a holder has carried it out, in the very write that takes it out; it stays
there over takes and handoffs, so a holder that dies leaves it to the next one. In words: docs/leases.md, "Requests".
Instants are Unix milliseconds.
"""

from dataclasses import dataclass
from typing import Self

from kcl_py.leases.row import AT_TIMESTAMP, LATEST, TRIM_HORIZON, Request
from kcl_py.printable import instant
from kcl_py.records import is_number

SEEK = "seek"
"""Go on at a position."""
RESUME = "resume"
"""Go on where it is, in a new ownership: what a halted shard waits for."""
RELEASE = "release"
"""Drain, store what is finished, and let go. Meant for the ownership that is asked: with its end it is answered."""
KINDS = (SEEK, RESUME, RELEASE)
LAST_MS = 253_402_300_799_999
"""The last instant of the calendar, in the year 9999: no later one can be sent to Kinesis."""
_EXPECTED = "a sequence number, TRIM_HORIZON, LATEST@ms or AT_TIMESTAMP@ms"


@dataclass(frozen=True, slots=True)
class Place:
    """Where the reading of a shard goes on, as a row holds it.

    ``str()`` is what a request says: the digits of a number, ``TRIM_HORIZON``, or ``LATEST`` and ``AT_TIMESTAMP`` with
    their instant, as in ``AT_TIMESTAMP@1700000000000``.
    """

    checkpoint: str
    """A sequence number in digits, of the last record that counts as finished, or a sentinel."""
    start_ms: int | None = None
    """Where reading begins until there is a real checkpoint."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what ``str()`` wrote; raises ``ValueError``."""
        checkpoint, at, instant = text.partition("@")
        if not at and (checkpoint == TRIM_HORIZON or is_number(checkpoint)):
            return cls(checkpoint)
        if checkpoint in (LATEST, AT_TIMESTAMP) and is_number(instant) and int(instant) <= LAST_MS:
            return cls(checkpoint, int(instant))
        raise ValueError(f"expected {_EXPECTED}, found {text!r}")

    def __str__(self) -> str:
        return self.checkpoint if self.start_ms is None else f"{self.checkpoint}@{self.start_ms}"

    @property
    def words(self) -> str:
        """As people read it, as in ``LATEST at 2026-01-31T09:00:00.000Z``."""
        if self.start_ms is not None:
            return f"{self.checkpoint} at {instant(self.start_ms)}"
        return self.checkpoint if self.checkpoint == TRIM_HORIZON else f"after {self.checkpoint}"


def in_words(request: Request) -> str:
    """Say what is asked; what makes no sense stays as it is."""
    try:
        place = Place.parse(request.position or "").words
    except ValueError:
        place = request.position or ""
    return f"{request.kind} {place}".rstrip()


def asks_to_let_go(request: Request | None) -> bool:
    """Tell whether any release of the shard answers the request."""
    return request is not None and request.kind == RELEASE


def fault(request: Request) -> str | None:
    """Say what is wrong with a request, or None."""
    if not request.id:
        return "expected a map with a text as id, found none"
    if request.kind not in KINDS:
        return f"expected {', '.join(KINDS[:-1])} or {KINDS[-1]} as kind, found {request.kind!r}"
    if request.kind == SEEK:
        try:
            Place.parse(request.position or "")
        except ValueError as error:
            return f"{error} as position"
    return None
