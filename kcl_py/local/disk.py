"""Streams and tables that outlive the process: ``--data DIR``.

Each stream has a folder with ``stream.json``, which holds everything but the records and is replaced whole, and the log
of its records; ``tables`` has DynamoDB's journal. Writes reach the operating system before a request is answered, so a
killed process loses nothing; a machine that loses power may lose the last moments, never half a batch. What cannot be
written is not answered. One process at a time uses a folder.
"""

import fcntl
import os
import re
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import TextIO

import msgspec

from kcl_py.local.archive import Entry
from kcl_py.local.dynamo.journal import Journal
from kcl_py.local.log import Log
from kcl_py.local.saved import VERSION, SavedStream, freeze, thaw
from kcl_py.local.stream import Stream

MOST_OPEN = 100
"""Logs whose file is open: far fewer than a process may have."""
_FOLDER = re.compile(r"[a-zA-Z0-9_.-]+\.\d{10}")
"""Name of a stream's folder: the stream's, and the second of its creation."""
_STREAM, _TABLES, _LOCK = "stream.json", "tables", "lock"


class Disk:
    """An ``Archive`` in ``folder``, which is made if it is not there.

    Raises:
        BlockingIOError: another process uses the folder.
        OSError: the folder cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._lock = _locked(folder / _LOCK)
        self._logs: dict[str, Log] = {}
        self._open: OrderedDict[str, Log] = OrderedDict()
        """Those that were written to last."""
        self.tables = Journal(folder / _TABLES)
        """DynamoDB's."""

    def load(self, region: str, now_s: float) -> list[Stream]:
        """Return the streams that an earlier run left; delete what is older than they keep.

        Raises:
            OSError: a file cannot be read.
            ValueError: these are no files of ours, or damaged ones.
        """
        folders = sorted(path for path in self._folder.iterdir() if _FOLDER.fullmatch(path.name) and path.is_dir())
        streams = [self._load_stream(path / _STREAM, region) for path in folders if (path / _STREAM).exists()]
        for path in folders:
            if not (path / _STREAM).exists():  # the stream was deleted, and then the process was killed
                _delete(path, Log(path))
        for stream in streams:
            self._trim(stream, now_s)
        self.save([stream for stream in streams if stream.gone_s is not None], now_s=inf)
        return [stream for stream in streams if stream.gone_s is None]

    def save(self, streams: Iterable[Stream], now_s: float) -> None:
        for stream in streams:
            if stream.gone_s is not None and stream.gone_s <= now_s:
                self._drop(stream)
            else:
                self._write(stream, now_s)
                self._trim(stream, now_s)

    def append(self, stream: Stream, entries: list[Entry]) -> None:
        key, log = _key(stream), self._log(stream)
        self._open[key] = log
        self._open.move_to_end(key)
        if len(self._open) > MOST_OPEN:
            _, longest_unused = self._open.popitem(last=False)
            longest_unused.close()
        if log.append(entries):
            with suppress(OSError):  # files that stay longer do no harm
                self._trim(stream, entries[-1][2].arrived_s)

    def close(self) -> None:
        """Let others use the folder."""
        for log in self._logs.values():
            with suppress(OSError):  # half a batch, which nobody was told of, stays for the next reader to cut off
                log.close()
        self.tables.close()
        self._lock.close()

    def _load_stream(self, path: Path, region: str) -> Stream:
        saved = msgspec.json.decode(path.read_bytes(), type=SavedStream)
        if saved.version != VERSION:
            raise ValueError(f"cannot read {path}: expected version {VERSION}, found {saved.version}")
        stream = thaw(saved, region)
        stream.complete()
        for index, position, record in self._log(stream).entries():
            stream.restore_record(index, position, record)
        for shard in saved.shards:
            stream.go_on_at(shard.index, shard.end)
        return stream

    def _write(self, stream: Stream, now_s: float) -> None:
        self._log(stream)  # makes the folder
        _replace(self._folder / _key(stream) / _STREAM, msgspec.json.encode(freeze(stream, now_s)))

    def _trim(self, stream: Stream, now_s: float) -> None:
        """Delete records that are too old, when it is written down how far the shards are without them."""
        horizon_s, log = now_s - stream.retention_s, self._log(stream)
        if log.has_older(horizon_s):
            self._write(stream, now_s)
            log.trim(horizon_s)

    def _drop(self, stream: Stream) -> None:
        log = self._log(stream)
        (self._folder / _key(stream) / _STREAM).unlink(missing_ok=True)
        _delete(self._folder / _key(stream), log)
        self._open.pop(_key(stream), None)
        del self._logs[_key(stream)]

    def _log(self, stream: Stream) -> Log:
        key = _key(stream)
        if key not in self._logs:
            self._logs[key] = Log(self._folder / key)
        return self._logs[key]


def _delete(folder: Path, log: Log) -> None:
    """Delete a stream's log, and its folder unless something else is in it."""
    log.delete()
    with suppress(OSError):
        folder.rmdir()


def _key(stream: Stream) -> str:
    return f"{stream.name}.{stream.created_s:010d}"


def _locked(path: Path) -> TextIO:
    file = path.open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise
    return file


def _replace(path: Path, content: bytes) -> None:
    """Write ``path`` whole: after a crash it is the old one or the new one."""
    fresh = path.with_suffix(".new")
    with fresh.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
