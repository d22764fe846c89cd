"""A stderr that fails nobody: what it cannot take is dropped, and named as missing once it takes something again.

Else the place of the log could end the work: its disk is full, or whoever reads it has left.
"""

import io
import os
import sys
from errno import EAGAIN
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class Dropping(io.FileIO):
    """A file that drops what cannot be written to it.

    Args:
        number: its descriptor, which stays open.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number, "w", closefd=False)
        self._missing_bytes, self._why = 0, ""

    def write(self, data: "ReadableBuffer", /) -> int:
        """Write at least a part, or drop it all; return how many bytes are dealt with."""
        try:
            if self._missing_bytes:
                self._put(f"\nwarning: {self._missing_bytes} bytes are missing here: {self._why}\n".encode())
                self._missing_bytes = 0
            return self._put(data)
        except OSError as error:
            dropped_bytes = memoryview(data).nbytes
            self._missing_bytes += dropped_bytes
            self._why = str(error.strerror)
            return dropped_bytes

    def _put(self, data: "ReadableBuffer") -> int:
        written_bytes = super().write(data)
        if written_bytes is None:  # it must not block, and would
            raise BlockingIOError(EAGAIN, os.strerror(EAGAIN))
        return written_bytes


def never_fail() -> None:
    """Have ``sys.stderr`` be such a file, where it is one at all."""
    stream = sys.stderr
    if stream is None:
        return
    try:
        number = stream.fileno()
    except OSError:  # in memory
        return
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(Dropping(number)), encoding=stream.encoding, errors=stream.errors, line_buffering=True
    )
