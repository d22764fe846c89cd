"""What a command says on stdout.

Who reads may leave early, as ``head`` does: that ends no command, and what follows is said to nobody.
"""

import os
import sys

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
    except BrokenPipeError:
        leave_unsaid()
        return False
    except OSError as error:
        leave_unsaid()
        raise KclError(f"cannot write to stdout: {error.strerror}; send it elsewhere") from error
    return True


def leave_unsaid() -> None:
    """Send the rest, also what is still in Python's buffer, to nobody: else it would be tried again at the exit."""
    nobody = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nobody, sys.stdout.fileno())
    os.close(nobody)
