"""What a holder may rely on between two of its own acknowledged writes.

Replaced by the Lease alone and read in place before each hand-over and each write; no clock of its own.
Times are monotonic seconds. In words: docs/leases.md, "Possession".
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tenure:
    """One ownership of one shard, as of the last acknowledged write."""

    owner: str
    """Who holds it: ``<worker id>/<incarnation>``."""
    token: str
    """Written by the take; the fence of every write since."""
    epoch: int
    """The counter written by the take: grows from ownership to ownership of a shard."""
    deadline_at: float
    """From then on nothing is handed over or written."""


def deadline(sent_at: float, failover_s: float, margin_s: float) -> float:
    """Until when a write that was sent at ``sent_at``, and acknowledged, lets the holder act.

    Where success is known only by a read, ``sent_at`` is that of the first write sent with the same expected counter.
    ``margin_s`` covers the drift of two clocks and a late timer (``config.Leases.margin_s``).
    """
    return sent_at + failover_s - margin_s
