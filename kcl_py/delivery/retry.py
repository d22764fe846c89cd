"""When a failed hook is tried again, and how its failure is put in one line. Pure; durations are seconds."""

from kcl_py.errors import KclError


def backoff_s(attempt: int, first_s: float, longest_s: float) -> float:
    """Return the pause after the failure of ``attempt`` (1 for the first): doubles up to ``longest_s``."""
    return min(first_s * 2.0 ** min(attempt - 1, 30), longest_s)


def brief(error: BaseException) -> str:
    """Name an exception in one line without its arguments' line breaks: ``ValueError: no such user``."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def root_cause(error: BaseException) -> BaseException:
    """Follow the chain of explicit causes to an error of ours, or else to its end.

    Causes of ours are not shown: they are the SDK's, whose sentences may quote keys and payloads.
    """
    while error.__cause__ is not None and not isinstance(error, KclError):
        error = error.__cause__
    return error
