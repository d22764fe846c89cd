"""What a command says on stdout.

Who reads may leave early, as ``head`` does, or close the terminal: that ends no command, and what follows is said
to nobody.
"""

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from kcl_py.errors import KclError


def say(text: str) -> bool:
    """Write ``text`` to stdout, at once; nothing happens if there is none, or nobody reads it any more.

    Returns:
        False if nobody reads it: whoever would go on saying can stop.

    Raises:
        KclError: it cannot be written.
    """
    if sys.stdout is None:
        return False
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        is_unread = _is_unread(error)
        leave_unsaid()
        if is_unread:
            return False
        raise KclError(f"cannot write to stdout: {error.strerror}; send it elsewhere") from error
    return True


@contextmanager
def while_read() -> Iterator[None]:
    """Leave the block, in peace, when nobody reads any more what it writes to stdout."""
    try:
        yield
    except OSError as error:
        if not _is_unread(error):
            raise
        leave_unsaid()


def leave_unsaid() -> None:
    """Send the rest, also what is still in Python's buffer, to nobody: else it would be tried again at the exit."""
    nobody = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nobody, sys.stdout.fileno())
    os.close(nobody)


def _is_unread(error: OSError) -> bool:
    """Tell a pipe or a terminal that has been closed from a place that is full."""
    return isinstance(error, BrokenPipeError) or (
        error.errno == errno.EIO and stat.S_ISCHR(os.fstat(sys.stdout.fileno()).st_mode)
    )
