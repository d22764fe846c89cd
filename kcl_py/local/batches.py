"""Files of batches: they are only appended to, and each batch is in them wholly or not at all.

A batch is a mark, its length, a check sum, its content. What a crash left unfinished at the very end is cut off when
the file is read; anything else that cannot be read is damage, and nothing is thrown away for it. Sizes are bytes.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from zlib import crc32

_MARK = b"\x93kcl"
_HEAD = Struct(">4sII")


class BatchFile:
    """A file to append to; it is made if it is not there, and goes on at its end if it is.

    Raises:
        OSError: it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        self.size = os.fstat(self._fd).st_size
        self._is_torn = False

    def append(self, content: bytes) -> None:
        """Write a batch. Raises OSError, and the batch is not there."""
        self._mend()
        rest = memoryview(_HEAD.pack(_MARK, len(content), _check(content, self.size)) + content)
        size = len(rest)
        self._is_torn = True
        while rest:
            rest = rest[os.write(self._fd, rest) :]
        self._is_torn = False
        self.size += size

    def sync(self) -> None:
        """Return when it is safe from a loss of power, too. Raises OSError."""
        os.fsync(self._fd)

    def close(self) -> None:
        """Let go of the file. Raises OSError if half a batch is left in it, which the next reader cuts off."""
        try:
            self._mend()
        finally:
            os.close(self._fd)

    def _mend(self) -> None:
        """Cut off what a write left that failed."""
        if self._is_torn:
            os.ftruncate(self._fd, self.size)
            self._is_torn = False


def read_batches(path: Path, *, is_last: bool) -> Iterator[bytes]:
    """Yield the contents of the batches in a file.

    Args:
        path: the file.
        is_last: whether it was being written to, so that a crash may have left half a batch at its end.

    Raises:
        OSError: it cannot be read.
        ValueError: it is damaged.
    """
    data, at = path.read_bytes(), 0
    while (content := _batch(data, at)) is not None:
        yield content
        at += _HEAD.size + len(content)
    if at == len(data):
        return
    if not is_last or _goes_on(data, at + 1):
        raise ValueError(f"cannot read {path}: expected a whole batch at byte {at}, found damage")
    os.truncate(path, at)


def _batch(data: bytes, at: int) -> bytes | None:
    """Return the content of the batch at ``at``, or None if there is no whole one."""
    if len(data) < at + _HEAD.size:
        return None
    mark, size, check = _HEAD.unpack_from(data, at)
    content = data[at + _HEAD.size : at + _HEAD.size + size]
    return content if mark == _MARK and len(content) == size and check == _check(content, at) else None


def _goes_on(data: bytes, at: int) -> bool:
    """Return whether there is a whole batch at ``at`` or later."""
    while (at := data.find(_MARK, at)) >= 0:
        if _batch(data, at) is not None:
            return True
        at += 1
    return False


def _check(content: bytes, at: int) -> int:
    """Return the check sum of a batch at ``at``: a copy of it elsewhere, within a payload say, is none."""
    return crc32(content, at & 0xFFFFFFFF)
