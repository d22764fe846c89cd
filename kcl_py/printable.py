r"""Text from outside made fit to be shown: a row, a name or an exception must not steer the reader's terminal.

Beside it instants and numbers of things in words. Pure. Escapes are those of Python's string literals, as in ``\x1b``.
"""

from datetime import UTC, datetime


def printable(text: str) -> str:
    """Return ``text`` with an escape for each control, format or line-breaking character (``str.isprintable``)."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def one_line(text: str) -> str:
    """Return ``text`` on one line, printable: each run of white space becomes one space."""
    return printable(" ".join(text.split()))


def counted(number: int, thing: str) -> str:
    """Say how many there are of a thing that is named in the singular, as in ``1 change`` and ``2 changes``."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def instant(at_ms: int) -> str:
    """Write Unix milliseconds as an ISO-8601 time in UTC; what is beyond the calendar stays a number."""
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return f"{at_ms} ms"
