"""Streams and tables that outlive the process: ``--data DIR``.

``streams.json`` holds everything but the records and is replaced whole; each stream has a folder with the log of its
records; ``tables`` has DynamoDB's journal. Writes reach the operating system before a request is answered, so a killed
process loses nothing; a machine that loses power may lose the last moments, never half a batch. What cannot be written
is not answered. One process at a time uses a folder.
"""

import fcntl
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TextIO

import msgspec

from kcl_py.local.account import Account
from kcl_py.local.archive import Entry
from kcl_py.local.dynamo.journal import Journal
from kcl_py.local.log import Log
from kcl_py.local.saved import VERSION, SavedAccount, SavedStream, freeze, thaw
from kcl_py.local.stream import Stream

_LOG = re.compile(r"[a-zA-Z0-9_.-]+\.\d{10}")
"""Name of a stream's folder: the stream's, and the second of its creation."""
_STREAMS, _TABLES, _LOCK = "streams.json", "tables", "lock"


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
        # Also those of a stream that was deleted right before a crash: the first save deletes them. Nothing else is.
        self._logs = {path.name: Log(path) for path in folder.iterdir() if _LOG.fullmatch(path.name) and path.is_dir()}
        self._account: Account | None = None
        self.tables = Journal(folder / _TABLES)
        """DynamoDB's."""

    def load(self, region: str) -> list[Stream]:
        """Return the streams that an earlier run left.

        Raises:
            OSError: a file cannot be read.
            ValueError: these are no files of ours, or damaged ones.
        """
        path = self._folder / _STREAMS
        if not path.exists():
            return []
        saved = msgspec.json.decode(path.read_bytes(), type=SavedAccount)
        if saved.version != VERSION:
            raise ValueError(f"cannot read {path}: expected version {VERSION}, found {saved.version}")
        return [self._load_stream(stream, region) for stream in saved.streams]

    def save(self, account: Account) -> None:
        self._account = account
        streams = account.all()
        _replace(self._folder / _STREAMS, msgspec.json.encode(freeze(account)))
        for stream in streams:
            self._log(stream).trim(account.now_s() - stream.retention_s)
        for key in self._logs.keys() - {_key(stream) for stream in streams}:
            self._logs.pop(key).delete()

    def append(self, stream: Stream, entries: list[Entry]) -> None:
        if self._log(stream).append(entries):
            self._tidy()

    def close(self) -> None:
        """Let others use the folder."""
        self._tidy()
        for log in self._logs.values():
            with suppress(OSError):  # half a batch, which nobody was told of, stays for the next reader to cut off
                log.close()
        self.tables.close()
        self._lock.close()

    def _tidy(self) -> None:
        """Delete what is too old, if that can be done now: files that stay longer do no harm."""
        with suppress(OSError):
            if self._account is not None:
                self.save(self._account)

    def _load_stream(self, saved: SavedStream, region: str) -> Stream:
        stream = thaw(saved, region)
        stream.complete()
        for index, position, record in self._log(stream).entries():
            stream.restore_record(index, position, record)
        for shard in saved.shards:
            stream.go_on_at(shard.index, shard.end)
        return stream

    def _log(self, stream: Stream) -> Log:
        key = _key(stream)
        if key not in self._logs:
            self._logs[key] = Log(self._folder / key)
        return self._logs[key]


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
