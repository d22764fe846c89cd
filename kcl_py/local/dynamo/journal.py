"""Tables that outlive the process: one file that begins with all of them and goes on with what changed.

When it has become twice as large as it began, the next is begun and the old one deleted: so it is bounded by what is
stored, not by how often that changed. What one request changed is one batch, there wholly or not at all. Writes reach
the operating system before a request is answered. Sizes are bytes.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

import msgspec

from kcl_py.local.batches import BatchFile, read_batches
from kcl_py.local.dynamo.changes import Begin, Change, Kept

LEAST_BYTES = 16 * 1024 * 1024
"""A smaller file goes on, however small it began."""
_PIECE = 1000
"""Changes in each batch that a file begins with."""
_FILE = re.compile(r"([0-9]{10})\.(journal|new)")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Change]).decode


class Journal:
    """An ``Archive`` in ``folder``, which is made with the first change. ``load`` it before the first ``append``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 1
        self._file: BatchFile | None = None
        self._limit = LEAST_BYTES

    def load(self) -> Kept:
        """Return what an earlier run left.

        Raises:
            OSError: a file cannot be read.
            ValueError: it is no file of ours, or a damaged one.
        """
        kept = Kept()
        files = sorted(self._folder.iterdir()) if self._folder.is_dir() else []
        ours = [path for path in files if _FILE.fullmatch(path.name)]
        whole = [path for path in ours if path.suffix == ".journal"]
        if whole:
            self._number = int(whole[-1].stem)
            for batch in read_batches(whole[-1], is_last=True):
                for change in _decode(batch):
                    kept.follow(change)
        for path in ours:
            if path not in whole[-1:]:  # an older one, or one that was never finished
                path.unlink()
        return kept

    def append(self, changes: Sequence[Change], whole: Callable[[], Iterable[Change]]) -> None:
        file = self._file or self._open()
        file.append(_encode(changes if file.size else [Begin(), *changes]))
        if file.size > self._limit:
            self._begin_anew(file, whole())

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with suppress(OSError):  # half a batch, which nobody was told of, stays for the next reader to cut off
                file.close()

    def _open(self) -> BatchFile:
        self._folder.mkdir(exist_ok=True)
        self._file = BatchFile(self._path("journal"))
        return self._file

    def _begin_anew(self, old: BatchFile, whole: Iterable[Change]) -> None:
        """Go on in a new file; or in the old one, which has everything, if there can be no new one now."""
        old_path = self._path("journal")
        self._number += 1
        try:
            self._file = self._written(whole)
        except OSError:
            self._number -= 1
            self._limit = old.size + LEAST_BYTES
            return
        self._limit = max(LEAST_BYTES, 2 * self._file.size)
        old.close()
        with suppress(OSError):  # the next start deletes it
            old_path.unlink()

    def _written(self, whole: Iterable[Change]) -> BatchFile:
        """Write a file that begins with everything, and name it when it is complete."""
        path = self._path("new")
        path.unlink(missing_ok=True)
        file = BatchFile(path)
        try:
            file.append(_encode([Begin()]))
            for changes in _pieces(whole):
                file.append(_encode(changes))
            file.sync()
            path.rename(self._path("journal"))
        except OSError:
            with suppress(OSError):
                file.close()
                path.unlink()
            raise
        return file

    def _path(self, suffix: str) -> Path:
        return self._folder / f"{self._number:010d}.{suffix}"


def _pieces(changes: Iterable[Change]) -> Iterator[list[Change]]:
    rest = iter(changes)
    while piece := [*islice(rest, _PIECE)]:
        yield piece
