"""When something that failed is tried again, and how its failure is put in one line. Pure; durations are seconds."""

from collections.abc import Callable

from kcl_py.errors import KclError


def backoff_s(attempt: int, first_s: float, longest_s: float) -> float:
    """Return the pause after the failure of ``attempt`` (1 for the first): doubles up to ``longest_s``."""
    return min(first_s * 2.0 ** min(attempt - 1, 30), longest_s)


class Backoff:
    """The pauses of one who tries again: each twice the one before, up to a longest, and drawn from its upper half.

    Args:
        first_s: the longest first pause.
        longest_s: what no pause is above.
        jitter: draws a number between two.
    """

    def __init__(self, first_s: float, longest_s: float, jitter: Callable[[float, float], float]) -> None:
        self._first_s, self._longest_s, self._jitter = first_s, longest_s, jitter
        self._failures = 0

    def next_s(self) -> float:
        """Count a failure and return the pause after it."""
        self._failures += 1
        ceiling_s = backoff_s(self._failures, self._first_s, self._longest_s)
        return self._jitter(ceiling_s / 2, ceiling_s)

    def reset(self) -> None:
        """Note a success."""
        self._failures = 0


def brief(error: BaseException) -> str:
    """Name an exception in one line without its arguments' line breaks: ``ValueError: no such user``."""
    text = " ".join(text_of(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def text_of(said: object) -> str:
    """Return what an exception says, or a reason that is no text, fit for a row and a log; at worst that is nothing."""
    try:
        return str(said).encode(errors="backslashreplace").decode()  # half of a surrogate pair can be sent nowhere
    except Exception:
        return ""


def root_cause(error: BaseException) -> BaseException:
    """Follow the chain of explicit causes to an error of ours, or else to its end.

    Causes of ours are not shown: they are the SDK's, whose sentences may quote keys and payloads.
    """
    while error.__cause__ is not None and not isinstance(error, KclError):
        error = error.__cause__
    return error
