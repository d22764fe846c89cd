"""Segments on the driver's disk: one Arrow file for each batch of records that the tree delivered.

A cache and no more: whoever misses a file reads the same records from Kinesis again. Each run of a query has a folder
of its own, which goes with it; folders of runs that were killed are swept by the next run. How much may lie here is
decided by who calls ``write``.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import pyarrow as pa

from spark_bridge.plan import Segment

FOLDER = "kcl-spark"
"""Name of the folder in the temporary folder, where no other is given; the user's id is added."""
_RUN = "run-"
_LOCK = "lock"


class Spool:
    """The folder of one run; ``close`` removes it.

    Args:
        parent: where the folder is made; None: in the temporary folder.
    """

    def __init__(self, parent: str | None) -> None:
        home = Path(parent or Path(tempfile.gettempdir()) / f"{FOLDER}-{os.getuid()}")
        home.mkdir(parents=True, exist_ok=True)
        with _locked(home / _LOCK):
            sweep(home)
            self.folder = Path(tempfile.mkdtemp(prefix=_RUN, dir=home))
            self._lock = _locked(self.folder / _LOCK)

    def write(self, segment: Segment, rows: pa.RecordBatch) -> None:
        """Write a segment; a file with its name is there whole or not at all."""
        path = segment_path(self.folder, segment)
        try:
            self._write(path, rows)
        except FileNotFoundError:  # somebody has cleaned up the folder in this moment
            self._write(path, rows)

    def _write(self, path: Path, rows: pa.RecordBatch) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".tmp")
        with pa.OSFile(str(unfinished), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
            writer.write_batch(rows)
        unfinished.rename(path)

    def delete(self, segments: Iterable[Segment]) -> None:
        """Delete segments; a task that is reading one is not disturbed."""
        for segment in segments:
            segment_path(self.folder, segment).unlink(missing_ok=True)

    def close(self) -> None:
        """Remove the folder; idempotent."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.close()


def segment_path(folder: str | os.PathLike[str], segment: Segment) -> Path:
    """Return where a segment lies: ``<shard>/<first>-<last>.arrow``."""
    first, last = (f"{at}:{at.sub}" if at.sub else str(at) for at in (segment.first, segment.last))
    return Path(folder, segment.shard_id, f"{first}-{last}.arrow")


def open_segment(folder: str | os.PathLike[str], segment: Segment) -> list[pa.RecordBatch] | None:
    """Map a segment into memory; None if it is not here, or not whole."""
    try:
        with pa.memory_map(str(segment_path(folder, segment))) as file:
            reader = pa.ipc.open_file(file)
            batches = [reader.get_batch(index) for index in range(reader.num_record_batches)]
    except (OSError, pa.ArrowInvalid):
        return None
    return batches if sum(batch.num_rows for batch in batches) == segment.rows else None


def sweep(home: Path) -> None:
    """Remove the folders of runs that are no more: nobody holds their lock."""
    for lock in sorted(home.glob(f"{_RUN}*/{_LOCK}")):
        with contextlib.suppress(OSError), lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)


def _locked(path: Path) -> IO[bytes]:
    """Open a file and lock it until it is closed, or the process is gone."""
    file = path.open("wb")
    fcntl.flock(file, fcntl.LOCK_EX)
    return file
