"""The records of one stream on disk: files that are only appended to, and deleted whole when all in them is too old.

A batch is one piece: its length, its check sum, its content. What a crash left unfinished at the end of a file is cut
off when the log is opened, so a batch is there wholly or not at all. Sizes are bytes; times are Unix seconds.
"""

from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import BinaryIO, TypeAlias
from zlib import crc32

import msgspec

from kcl_py.local.archive import Entry
from kcl_py.records import Record

FILE_BYTES = 16 * 1024 * 1024
"""A file that has reached it is closed, and the next begun."""
_HEAD = Struct(">II")
_Row: TypeAlias = tuple[int, int, str, bytes, str, float, str | None]
_decoder = msgspec.msgpack.Decoder(list[_Row])


class Log:
    """The files in ``folder``, which is made if it is not there. Read ``entries`` before the first ``append``."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._newest_s: dict[Path, float] = dict.fromkeys(sorted(folder.glob("*.records")), 0.0)
        self._file: BinaryIO | None = None
        self._path = folder

    def entries(self) -> Iterator[Entry]:
        """Yield all that is there, in the order it was put; cut off what is unfinished."""
        for path in self._newest_s:
            whole = 0
            content = path.read_bytes()
            for batch, end in _batches(content):
                whole = end
                for index, position, number, data, key, arrived_s, encryption in batch:
                    self._newest_s[path] = max(self._newest_s[path], arrived_s)
                    yield index, position, Record(number, data, key, arrived_s, encryption)
            if whole < len(content):
                with path.open("r+b") as file:
                    file.truncate(whole)

    def append(self, entries: list[Entry]) -> bool:
        """Write ``entries`` as one batch; return whether a new file was begun for it."""
        is_new = self._file is None or self._file.tell() >= FILE_BYTES
        file = self._next_file() if is_new or self._file is None else self._file
        rows = [
            (index, position, r.sequence_number, r.data, r.partition_key, r.arrived_s, r.encryption_type)
            for index, position, r in entries
        ]
        content = msgspec.msgpack.encode(rows)
        file.write(_HEAD.pack(len(content), crc32(content)) + content)
        self._newest_s[self._path] = max(self._newest_s[self._path], *(record.arrived_s for _, _, record in entries))
        return is_new

    def trim(self, horizon_s: float) -> None:
        """Delete the files, but for the one that is written to, that hold nothing as new as ``horizon_s``."""
        for path in [path for path, newest_s in self._newest_s.items() if newest_s < horizon_s and path != self._path]:
            path.unlink()
            del self._newest_s[path]

    def delete(self) -> None:
        """Delete the files, and the folder unless something else is in it."""
        self.close()
        for path in self._newest_s:
            path.unlink()
        if not any(self._folder.iterdir()):
            self._folder.rmdir()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _next_file(self) -> BinaryIO:
        self.close()
        last = max((int(path.stem) for path in self._newest_s), default=0)
        self._path = self._folder / f"{last + 1:010d}.records"
        self._newest_s[self._path] = 0.0
        self._file = self._path.open("xb", buffering=0)
        return self._file


def _batches(content: bytes) -> Iterator[tuple[list[_Row], int]]:
    """Yield each whole batch and where it ends, up to the first that is not whole."""
    at = 0
    while len(content) >= at + _HEAD.size:
        size, check = _HEAD.unpack_from(content, at)
        at += _HEAD.size
        batch = content[at : at + size]
        if len(batch) < size or crc32(batch) != check:
            return
        at += size
        yield _decoder.decode(batch), at
