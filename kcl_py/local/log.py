"""The records of one stream on disk: files that are only appended to, and deleted whole when all in them is too old.

Sizes are bytes; times are Unix seconds.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import msgspec

from kcl_py.local.archive import Entry
from kcl_py.local.batches import BatchFile, read_batches
from kcl_py.records import Record

FILE_BYTES = 16 * 1024 * 1024
"""A file that has reached it is closed, and the next begun."""
_FILE = re.compile(r"[0-9]{10}\.records")
_Row: TypeAlias = tuple[int, int, str, bytes, str, float, str | None]
_decoder = msgspec.msgpack.Decoder(list[_Row])


class Log:
    """The files in ``folder``, which is made if it is not there. Read ``entries`` before the first ``append``."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self._newest_s = dict.fromkeys(sorted(path for path in folder.iterdir() if _FILE.fullmatch(path.name)), 0.0)
        self._file: BatchFile | None = None
        self._path = folder

    def entries(self) -> Iterator[Entry]:
        """Yield all that is there, in the order it was put. Raises OSError, ValueError as ``read_batches`` does."""
        last = max(self._newest_s, default=None)
        for path in self._newest_s:
            for batch in read_batches(path, is_last=path == last):
                for index, position, number, data, key, arrived_s, encryption in _decoder.decode(batch):
                    self._newest_s[path] = max(self._newest_s[path], arrived_s)
                    yield index, position, Record(number, data, key, arrived_s, encryption)

    def append(self, entries: list[Entry]) -> bool:
        """Write ``entries`` as one batch; return whether a new file was begun for it. Raises OSError: none is there."""
        is_new = self._file is None or self._file.size >= FILE_BYTES
        file = self._next_file() if is_new or self._file is None else self._file
        rows = [
            (index, position, r.sequence_number, r.data, r.partition_key, r.arrived_s, r.encryption_type)
            for index, position, r in entries
        ]
        file.append(msgspec.msgpack.encode(rows))
        self._newest_s[self._path] = max(self._newest_s[self._path], *(record.arrived_s for _, _, record in entries))
        return is_new

    def trim(self, horizon_s: float) -> None:
        """Delete the files, but for the one that is written to, that hold nothing as new as ``horizon_s``."""
        for path in [path for path, newest_s in self._newest_s.items() if newest_s < horizon_s and path != self._path]:
            path.unlink(missing_ok=True)
            del self._newest_s[path]

    def delete(self) -> None:
        """Delete the files, and the folder unless something else is in it."""
        self.close()
        for path in self._newest_s:
            path.unlink(missing_ok=True)
        if not any(self._folder.iterdir()):
            self._folder.rmdir()

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _next_file(self) -> BatchFile:
        self.close()
        last = max((int(path.stem) for path in self._newest_s), default=0)
        self._path = self._folder / f"{last + 1:010d}.records"
        self._newest_s[self._path] = 0.0
        self._file = BatchFile(self._path)
        return self._file
