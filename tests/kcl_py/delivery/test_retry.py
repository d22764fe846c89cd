"""When a hook is tried again, and what is said of its failure."""

from itertools import pairwise

from actors.errors import RestartLimitError
from kcl_py.delivery.retry import Backoff, backoff_s, brief, root_cause
from kcl_py.errors import RejectedError


def chained(*errors: Exception) -> Exception:
    """Return the first error, caused by the second and so on."""
    for error, cause in pairwise(errors):
        error.__cause__ = cause
    return errors[0]


def test_pause_doubles_up_to_its_limit() -> None:
    """However often it was tried."""
    assert [backoff_s(attempt, 0.5, 30) for attempt in (1, 2, 3, 7, 5000)] == [0.5, 1, 2, 30, 30]


def test_backoff_draws_from_the_upper_half_of_a_doubling_pause_and_forgets_after_a_success() -> None:
    """So that many who were refused at once do not come again at once."""
    least, most = Backoff(0.5, 4, min), Backoff(0.5, 4, max)
    assert [most.next_s() for _ in range(5)] == [0.5, 1, 2, 4, 4]
    assert [least.next_s() for _ in range(5)] == [0.25, 0.5, 1, 2, 2]
    most.reset()
    assert most.next_s() == 0.5


def test_failure_is_told_in_one_line() -> None:
    """With its class, which is all there is of some."""
    assert (brief(ValueError("no\nsuch  user")), brief(KeyError())) == ("ValueError: no such user", "KeyError")


def test_root_cause_is_never_what_the_sdk_said() -> None:
    """Its sentences may quote keys and payloads; ours do not."""
    gave_up, ours, theirs = RestartLimitError("shard", "lease", 0, 5), RejectedError("a", "b", "c"), Exception("secret")
    assert root_cause(chained(gave_up, ours, theirs)) is ours
    assert root_cause(chained(gave_up, theirs)) is theirs
    assert root_cause(ours) is ours
