"""What became of records, as a word for a log, a span or a figure. Pure."""

from collections.abc import Mapping

from kcl_py.outcomes import Reject, Retry

DONE, RETRY, REJECTED, FAILED, PARTLY = "done", "retry", "rejected", "failed", "partly"


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
