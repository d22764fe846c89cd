"""Counts and durations of a processor's calls, for whatever system shows them."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from kcl_py.batchers import Batched
from kcl_py.middleware import Middleware
from kcl_py.middlewares.outcome import DONE, word, word_of_record
from kcl_py.outcomes import BatchOutcome, RecordOutcome
from kcl_py.records import Record, RecordBatch


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a processor."""

    kind: Literal["record", "batch", "batched"]
    """Of ``process``, ``process_records`` or ``handle_batch``."""
    outcome: str
    """``done``, ``retry``, ``rejected``, ``failed``, ``partly`` of a batch with a mapping, or ``batched`` of a record
    that was given to a batcher."""
    records: Mapping[str, int]
    """How many records ended in which way."""
    took_s: float


@dataclass(frozen=True, slots=True)
class Figures:
    """All calls since the beginning."""

    calls: Mapping[str, int]
    """How many ended in which way."""
    records: Mapping[str, int]
    """The same of records; one that is tried again counts each time, one that goes to a batcher there too."""
    took_s: float
    """The sum of their durations, in seconds."""
    longest_s: float


class Metrics(Middleware):
    """Adds up the calls of all shards of a worker: make one, and list it as it is.

    Args:
        report: is told of each call when it has ended.
    """

    def __init__(self, report: Callable[[Call], None] | None = None) -> None:
        self._report = report
        self._calls: Counter[str] = Counter()
        self._records: Counter[str] = Counter()
        self._took_s = self._longest_s = 0.0

    def snapshot(self) -> Figures:
        """Return the figures up to now."""
        return Figures(dict(self._calls), dict(self._records), self._took_s, self._longest_s)

    def after_record(self, record: Record, outcome: RecordOutcome | BaseException, took_s: float) -> None:
        self._add(Call("record", word_of_record(outcome), {word_of_record(outcome): 1}, took_s))

    def after_batch(self, batch: RecordBatch, outcome: BatchOutcome | BaseException, took_s: float) -> None:
        self._add(Call("batch", word(outcome), _each(len(batch), outcome), took_s))

    def after_batched(self, batch: Batched, outcome: BatchOutcome | BaseException, took_s: float) -> None:
        self._add(Call("batched", word(outcome), _each(len(batch), outcome), took_s))

    def _add(self, call: Call) -> None:
        self._calls[call.outcome] += 1
        self._records.update(call.records)
        self._took_s += call.took_s
        self._longest_s = max(self._longest_s, call.took_s)
        if self._report is not None:
            self._report(call)


def _each(records: int, outcome: BatchOutcome | BaseException) -> Counter[str]:
    """Count how many of a batch ended in which way."""
    if not isinstance(outcome, Mapping):
        return Counter({word(outcome): records})
    found = Counter(map(word, outcome.values()))
    found[DONE] = records - found.total()
    return +found
