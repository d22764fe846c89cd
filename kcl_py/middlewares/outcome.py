"""What became of records, as a word for a log, a span or a figure. Pure."""

from collections.abc import Mapping

from kcl_py.outcomes import Reject, Retry, ToBatch

DONE, RETRY, REJECTED, FAILED, PARTLY, BATCHED = "done", "retry", "rejected", "failed", "partly", "batched"


def word_of_record(outcome: object) -> str:
    """Name what became of a single record: as ``word``, or ``batched`` where ``process`` has given it to a batcher."""
    return BATCHED if isinstance(outcome, ToBatch) else word(outcome)


def word(outcome: object) -> str:
    """Name what a middleware was told: ``done``, ``retry``, ``rejected``, ``failed``, or ``partly`` done."""
    if outcome is None:
        return DONE
    if isinstance(outcome, Retry):
        return RETRY
    if isinstance(outcome, Reject):
        return REJECTED
    if isinstance(outcome, Mapping):
        return PARTLY if outcome else DONE
    return FAILED
