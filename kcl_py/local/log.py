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

    def entries(self) -> Iterator[Entry]:
        """Yield all that is there, in the order it was put. Raises OSError, ValueError as ``read_batches`` does."""
        for path in self._newest_s:
            for batch in read_batches(path, is_last=path == self._last):
                for index, position, number, data, key, arrived_s, encryption in _decoder.decode(batch):
                    self._newest_s[path] = max(self._newest_s[path], arrived_s)
                    yield index, position, Record(number, data, key, arrived_s, encryption)

    def append(self, entries: list[Entry]) -> bool:
        """Write ``entries`` as one batch; return whether a file became full before. Raises OSError: none is there."""
        file, is_next = self._open(), False
        if file.size >= FILE_BYTES:
            self.close()
            file, is_next = self._open(self._path(int(self._last.stem) + 1)), True
        rows = [
            (index, position, r.sequence_number, r.data, r.partition_key, r.arrived_s, r.encryption_type)
            for index, position, r in entries
        ]
        file.append(msgspec.msgpack.encode(rows))
        self._newest_s[self._last] = max(self._newest_s[self._last], *(record.arrived_s for _, _, record in entries))
        return is_next

    def has_older(self, horizon_s: float) -> bool:
        """Return whether there is something for ``trim`` to do."""
        return bool(self._older(horizon_s))

    def trim(self, horizon_s: float) -> None:
        """Delete the files, but for the last, that hold nothing as new as ``horizon_s``."""
        for path in self._older(horizon_s):
            path.unlink(missing_ok=True)
            del self._newest_s[path]

    def delete(self) -> None:
        """Delete the files."""
        self.close()
        for path in self._newest_s:
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the file that is written to; the next ``append`` goes on in it."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    @property
    def _last(self) -> Path:
        return max(self._newest_s, default=self._path(1))

    def _open(self, path: Path | None = None) -> BatchFile:
        if self._file is None:
            path = path or self._last
            self._file = BatchFile(path)
            self._newest_s.setdefault(path, 0.0)
        return self._file

    def _older(self, horizon_s: float) -> list[Path]:
        last = self._last
        return [path for path, newest_s in self._newest_s.items() if newest_s < horizon_s and path != last]

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:010d}.records"
