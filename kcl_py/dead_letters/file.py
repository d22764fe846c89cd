"""Dead letters in a file on this machine: one on each line, added to and flushed to the disk off the event loop.

Several workers may share a file. Each letter opens it anew, so it may be moved away while a worker runs.
"""

import asyncio
import errno
import fcntl
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from actors.clock import Clock, move_on_after
from kcl_py.dead_letters.address import Address
from kcl_py.dead_letters.attempt import DEADLINE_S, not_stored
from kcl_py.dead_letters.letter import DeadLetter

_NEVER = frozenset(
    {errno.EACCES, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOENT, errno.ENOTDIR, errno.EPERM, errno.EROFS}
)
"""What stays as it is until somebody changes it; a full disk, say, is emptied by others."""


class FileDeadLetters:
    """Implements ``DeadLetters``.

    A crash after a letter is written and before its record is acknowledged means that the letter is there twice; one
    in the middle leaves half a line, and the next letter begins on a line of its own.

    Args:
        address: the path, from the working directory.
        clock: for deadlines.
    """

    def __init__(self, address: Address, *, clock: Clock) -> None:
        self._address, self._path, self._clock = address, Path(address.name), clock
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="dead letters")

    async def look(self) -> None:
        """Make sure that the file can be written, and make it if it is not there. Raises OSError."""
        await self._add(b"")

    async def store(self, letter: DeadLetter) -> None:
        """Add ``letter``; see ``DeadLetters``."""
        try:
            await self._add(letter.encoded() + b"\n")
        except OSError as error:
            why = f"found {told(error)}; check the disk and the folder"
            raise not_stored(letter, self._address, why, retryable=error.errno not in _NEVER) from error

    def close(self) -> None:
        """Give up what waits; what runs ends by itself."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _add(self, line: bytes) -> None:
        with move_on_after(self._clock, DEADLINE_S) as limit:
            await asyncio.get_running_loop().run_in_executor(self._thread, add, self._path, line)
        if limit.cancelled_caught:
            raise TimeoutError


def told(error: OSError) -> str:
    """Return why a file cannot be written."""
    return (error.strerror or "no answer of the disk in time").lower()


def add(path: Path, line: bytes) -> None:
    """Add ``line`` at the end of a file and see it on the disk; after half a line it begins on a new one.

    Raises:
        OSError: it cannot be written, or ``path`` is no regular file.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EPERM, "no regular file")
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        size = os.fstat(descriptor).st_size
        is_torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        rest = memoryview(b"\n" + line if is_torn and line else line)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if size == 0:
        _flush_folder(path.parent)


def _flush_folder(folder: Path) -> None:
    """See a new file's name on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
