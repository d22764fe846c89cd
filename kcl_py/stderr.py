"""A stderr by which no command, worker or hook fails: what it cannot take is dropped, and counted.

Else the place of the log could end the work: its disk is full, or whoever reads it has left, or stands still.
"""

import io
import os
import select
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

PATIENCE_MS = 500
"""A reader that takes nothing is waited for so long, once: the event loop waits, too, and all heartbeats with it."""


class DroppingFile(io.FileIO):
    """A file that drops what cannot be written to it; how much was is the first thing it takes again.

    Without a lock: a process that is forked while a thread writes would wait for that.

    Args:
        stream: whose file it is; kept, since its file may be closed with it.
    """

    def __init__(self, stream: io.TextIOWrapper) -> None:
        super().__init__(stream.fileno(), "w", closefd=False)
        self.name = stream.name
        self._stream, self._handle = stream, _unblocked(stream.fileno())
        self._missing_bytes, self._why, self._is_cut = 0, "", False

    def write(self, data: "ReadableBuffer", /) -> int:
        """Write what can be written, and return the size of it all."""
        whole = memoryview(data).cast("B")
        if self._missing_bytes and not self._put(self._notice()):
            self._missing_bytes = 0
        if self._missing_bytes:
            self._missing_bytes += len(whole)
        else:
            self._missing_bytes = self._put(whole)
        return len(whole)

    def close(self) -> None:
        """Stay open, whoever closes it: the log is not theirs."""

    def _notice(self) -> memoryview:
        text = f"warning: {self._missing_bytes} bytes are missing here: {self._why}\n"
        return memoryview(("\n" * self._is_cut + text).encode())

    def _put(self, data: memoryview) -> int:
        """Write what can be written; return how many bytes are left."""
        at = 0
        while at < len(data):
            try:
                at += self._put_some(data[at : at + select.PIPE_BUF])
            except BlockingIOError:
                self._why = "whoever reads it took nothing"
                break
            except OSError as error:
                self._why = str(error.strerror)
                break
        if at:
            self._is_cut = data[at - 1] != ord("\n")
        return len(data) - at

    def _put_some(self, data: memoryview) -> int:
        room = select.poll()
        room.register(self._handle, select.POLLOUT)  # a pipe then takes so much at once. Source: POSIX, PIPE_BUF
        if not room.poll(0 if self._missing_bytes else PATIENCE_MS):
            raise BlockingIOError
        return os.write(self._handle, data)


def _unblocked(handle: int) -> int:
    """Open a terminal for writing that never waits, which others keep doing; other files are taken as they are."""
    try:
        return os.open(os.ttyname(handle), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return handle


class _Stderr(io.TextIOWrapper):
    """Stays what it is, whoever takes its file for a stream of their own."""

    def detach(self) -> Any:
        return self.buffer


def drop_unwritable() -> None:
    """Have ``sys.stderr`` be such a file, unless something else was put there, as tests do."""
    stream = sys.__stderr__
    if stream is None or sys.stderr is not stream:
        return
    sys.stderr = sys.__stderr__ = _Stderr(  # type: ignore[misc]
        DroppingFile(stream), encoding=stream.encoding, errors=stream.errors, line_buffering=True, write_through=True
    )


def tell(text: str) -> None:
    """Write to stderr; where the user's code has put something there that fails, to what was there before."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except Exception:
        sys.stderr = sys.__stderr__
        if sys.stderr is not None:
            sys.stderr.write(text)
            sys.stderr.flush()
