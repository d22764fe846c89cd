"""What a processor's answer means for each record, and what comes next for those that are not done. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from kcl_py.config import Delivery as Options
from kcl_py.delivery.retry import backoff_s, brief, text_of
from kcl_py.errors import ProcessorError
from kcl_py.outcomes import Reject, Retry, Verdict
from kcl_py.records import Record, Redelivery

DONE: Mapping[int, Verdict] = {}
"""No record has failed."""


@dataclass(slots=True)
class Trouble:
    """The failed attempts of a record, or of a batch; instants are Unix seconds."""

    first_failed_s: float
    attempts: int = 0
    is_put_off: bool = False
    """Whether the processor has said how long the next pause is."""
    reasons: dict[int, str] = field(default_factory=dict)
    """What the last attempt ended with, of each record by its index."""

    def note(self, failed: Mapping[int, Verdict]) -> None:
        """Note another failed attempt."""
        self.attempts += 1
        self.is_put_off = any(isinstance(each, Retry) and each.after_s is not None for each in failed.values())
        self.reasons = {index: reason_of(verdict) for index, verdict in sorted(failed.items())}

    def redelivery(self, index: int | None = None) -> Redelivery:
        """What the next attempt is told, about one record or the whole."""
        reason = next(iter(self.reasons.values())) if index is None else self.reasons[index]
        return Redelivery(self.attempts + 1, reason, self.first_failed_s)


def of_record(answer: object, index: int) -> Mapping[int, Verdict]:
    """Read what ``process`` has returned or raised."""
    if answer is None:
        return DONE
    if isinstance(answer, Retry | Reject | Exception):
        return {index: answer}
    return {index: _unknown("process", "None, Retry, Reject or ToBatch", answer)}


def of_batch(
    answer: object, indexes: Sequence[int], records: Sequence[Record], hook: str = "process_records"
) -> Mapping[int, Verdict]:
    """Read what a hook has returned or raised of these records, which have these indexes."""
    if answer is None:
        return DONE
    if isinstance(answer, Mapping):
        try:
            return _of_mapping(answer, indexes, records, hook)
        except ProcessorError as error:
            answer = error
    if not isinstance(answer, Retry | Reject | Exception):
        answer = _unknown(hook, "None, Retry, Reject or a mapping of records to what they ended with", answer)
    return dict.fromkeys(indexes, answer)


def reason_of(verdict: Verdict) -> str:
    """Say in a line why a record is not done."""
    said: object = verdict if isinstance(verdict, Exception) else verdict.reason
    return brief(said) if isinstance(said, BaseException) else " ".join(text_of(said).split())


def pause_s(verdict: Verdict, attempts: int, options: Options, jitter: Callable[[float, float], float]) -> float | None:
    """Return the pause until a record is handed over again; None if it is not, after so many attempts."""
    if isinstance(verdict, Reject) or attempts > options.retries:
        return None
    if isinstance(verdict, Retry) and verdict.after_s is not None:
        return verdict.after_s
    return round(jitter(0, backoff_s(attempts, options.backoff_s, options.backoff_max_s)), 3)


def _of_mapping(
    answer: Mapping[object, object], indexes: Sequence[int], records: Sequence[Record], hook: str
) -> Mapping[int, Verdict]:
    places = {_identity(record): index for index, record in zip(indexes, records, strict=True)}
    verdicts = {}
    for record, verdict in answer.items():
        index = places.get(_identity(record)) if isinstance(record, Record) else None
        if index is None:
            raise _unknown(hook, "a mapping of records of the batch", record, "as a key")
        if not isinstance(verdict, Retry | Reject | Exception):
            raise _unknown(hook, "a mapping to exceptions, Retry or Reject", verdict, "as a value")
        verdicts[index] = verdict
    return verdicts


def _identity(record: Record) -> tuple[str, int]:
    return record.sequence_number, record.sub_sequence_number


def _unknown(hook: str, expected: str, found: object, where: str = "") -> ProcessorError:
    kind = "another record" if isinstance(found, Record) else type(found).__name__
    return ProcessorError(f"cannot use what {hook} returned: expected {expected}, found {kind} {where}".rstrip())
