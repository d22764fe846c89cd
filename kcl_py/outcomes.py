"""What a processor can say of records, beside done (it returns) and failed (it raises)."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from kcl_py.records import Record

LONGEST_S = 900.0
"""The longest that a record can be put off, 15 minutes: its shard's checkpoint stands still for as long, and a restart
reads again all that came after it. Source: the longest delay of an SQS message, which users know."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Not now: hand the record, or the whole batch, over again. Counts as an attempt.

    Raises:
        ValueError: ``after_s`` is no number between 0 and 900.
    """

    after_s: float | None = None
    """The pause before that, in seconds; None: as after an exception, ``delivery.backoff_s`` doubled each time."""
    reason: str = "the processor asked for it again"

    def __post_init__(self) -> None:
        after_s: object = self.after_s
        if after_s is not None and not (isinstance(after_s, int | float) and 0 <= after_s <= LONGEST_S):
            raise ValueError(
                f"cannot retry after {after_s!r} s: expected 0 to {LONGEST_S:g} s, since the checkpoint of the "
                "shard stands still meanwhile; for longer, put the record into a queue with a delay and return"
            )


@dataclass(frozen=True, slots=True)
class Reject:
    """Never: what ``delivery.on_failure`` says happens to the record, or the whole batch, at once."""

    reason: str


@dataclass(frozen=True, slots=True)
class ToBatch:
    """Later, with others: the record goes to a batcher, and is finished when ``handle_batch`` has returned for it.

    Raises:
        ValueError: ``key`` is not hashable, or ``size_bytes`` no whole number of at least 0.
    """

    batcher: str
    """A name of the processor's ``batchers``."""
    value: Any = None
    """Whatever ``handle_batch`` is to have of the record, beside itself."""
    key: Hashable = None
    """Records of one key make a batch; those of different keys never do."""
    flush: bool = False
    """Whether the batch is closed with this record, whatever it lacks."""
    size_bytes: int | None = None
    """What it counts for ``Batcher.max_bytes``; None: the length of the record's payload."""

    def __post_init__(self) -> None:
        try:
            hash(self.key)
        except TypeError:
            raise ValueError(
                f"cannot give a record to batcher {self.batcher!r} under this key: expected a hashable one, found "
                f"{type(self.key).__name__}"
            ) from None
        size_bytes: object = self.size_bytes
        if size_bytes is not None and (not isinstance(size_bytes, int) or size_bytes < 0):
            raise ValueError(
                f"cannot give a record to batcher {self.batcher!r} with this size_bytes: expected a whole number of at "
                f"least 0, or None for the length of the payload, found {size_bytes!r}"
            )


Verdict = Retry | Reject | Exception
"""What became of a record that is not done; an exception counts as if it had been raised."""

RecordOutcome = Retry | Reject | ToBatch | None
"""What ``process`` returns; None: done."""

BatchOutcome = Retry | Reject | Mapping[Record, Verdict] | None
"""What ``process_records`` and ``handle_batch`` return; None: all done. A mapping names the records that are not; all
others are done."""
