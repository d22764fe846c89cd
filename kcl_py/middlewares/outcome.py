"""What became of records, as a word for a log, a span or a figure. Pure."""

from collections.abc import Mapping

from kcl_py.outcomes import Reject, Retry, ToBatch

DONE, RETRY, REJECTED, FAILED, PARTLY, BATCHED = "done", "retry", "rejected", "failed", "partly", "batched"


def word(outcome: object) -> str:
    """Name what a middleware was told: ``done``, ``retry``, ``rejected``, ``failed``, ``partly`` done, or ``batched``.

    The last one is of a record that ``process`` has given to a batcher.
    """
    if outcome is None:
        return DONE
    if isinstance(outcome, Retry):
        return RETRY
    if isinstance(outcome, Reject):
        return REJECTED
    if isinstance(outcome, Mapping):
        return PARTLY if outcome else DONE
    if isinstance(outcome, ToBatch):
        return BATCHED
    return FAILED
