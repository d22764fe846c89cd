"""Between the tree and Spark: what is spooled, how much room is left, and what went wrong.

The tree's event loop puts and waits for room; Spark's thread plans and releases. Both hold one lock while they look or
change, never while they wait or write to disk. Room is what Spark's demand is to the tree: a processor that gets none
does not return, so its shard is not read. Sizes are bytes, times seconds.
"""

import asyncio
import contextlib
import threading
from collections.abc import Sequence

from kcl_py.records import Record
from spark_bridge import plan
from spark_bridge.offsets import Mark, Offset
from spark_bridge.plan import Segment, ShardRange, Strand
from spark_bridge.rows import to_arrow
from spark_bridge.spool import Spool


class Feed:
    """The strands of one run.

    Args:
        spool: where segments go.
        stream: the stream's name, for the rows.
        most_bytes: most bytes spooled and not yet released; one segment may be larger than that alone.
    """

    def __init__(self, spool: Spool, *, stream: str, most_bytes: int) -> None:
        self._spool, self._stream, self._most_bytes = spool, stream, most_bytes
        self._strands: dict[str, Strand] = {}
        self._used_bytes = 0
        self._news = threading.Condition()
        self._failure: BaseException | None = None
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._room = asyncio.Event()

    # --- the tree's side -------------------------------------------------------------------------------------

    def begin(self, strands: dict[str, Strand]) -> None:
        """Take what the offset says about its shards; called once, in the tree's loop, before anything else."""
        self._loop = asyncio.get_running_loop()
        with self._news:
            self._strands = strands
            self._news.notify_all()

    def open(self, shard_id: str, parents: tuple[str, ...]) -> None:
        """A shard is being read."""
        with self._news:
            self._strands.setdefault(shard_id, Strand()).parents = parents

    async def put(self, shard_id: str, records: Sequence[Record]) -> None:
        """Spool records of a shard, once there is room; those that are spooled already are passed over."""
        new = _after(self._strands[shard_id].end, records)
        if not new:
            return
        rows = to_arrow(new, stream=self._stream, shard_id=shard_id)
        segment = Segment(shard_id, new[0].position, new[-1].position, len(new), rows.nbytes, new[0].arrived_s)
        while not self._reserve(segment.size_bytes):
            await self._room.wait()
        if not self._closed:
            self._spool.write(segment, rows)
            with self._news:
                self._strands[shard_id].segments.append(segment)
                self._news.notify_all()

    def end(self, shard_id: str, children: tuple[str, ...] | None) -> None:
        """A shard is read to its end; ``children`` are None if they could not be listed."""
        with self._news:
            strand = self._strands[shard_id]
            strand.has_ended, strand.children = True, children
            self._news.notify_all()

    def fail(self, error: BaseException) -> None:
        """The tree cannot go on: Spark's thread raises ``error`` at its next call."""
        with self._news:
            self._failure = self._failure or error
            self._news.notify_all()

    def _reserve(self, size_bytes: int) -> bool:
        with self._news:
            if self._used_bytes and self._used_bytes + size_bytes > self._most_bytes and not self._closed:
                return False
            self._used_bytes += size_bytes
            return True

    # --- Spark's side ----------------------------------------------------------------------------------------

    def release(self, start: Offset) -> None:
        """Spark has finished everything up to ``start``: delete it and give its room back."""
        with self._news:
            freed = plan.release(start, self._strands)
            self._used_bytes -= sum(segment.size_bytes for segment in freed)
        self._spool.delete(freed)
        if freed:
            self._wake()

    def wait_for_end(self, start: Offset, *, max_rows: int, timeout_s: float) -> Offset:
        """Return the end of a batch that begins at ``start``, waiting up to ``timeout_s`` for one with something in it.

        Raises whatever ended the tree.
        """
        with self._news:
            self._news.wait_for(lambda: self._failure or self._plan(start, max_rows) != start, timeout_s)
            if self._failure is not None:
                raise self._failure
            return self._plan(start, max_rows)

    def tip(self, start: Offset) -> Offset:
        """Return how far Spark could read from ``start`` if no limit held it."""
        with self._news:
            return self._plan(start, None)

    def ranges(self, start: Offset, end: Offset) -> list[ShardRange]:
        """Return what the batch from ``start`` to ``end`` reads, with the segments that are spooled."""
        with self._news:
            return plan.plan_ranges(start, end, self._strands)

    def close(self) -> None:
        """Let every ``put`` that waits return; what they had is not spooled."""
        with self._news:
            self._closed = True
        self._wake()

    def _plan(self, start: Offset, max_rows: int | None) -> Offset:
        return plan.plan_end(start, self._strands, max_rows=max_rows)

    def _wake(self) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
                self._loop.call_soon_threadsafe(self._make_room)

    def _make_room(self) -> None:
        self._room.set()
        self._room = asyncio.Event()


def _after(end: Mark, records: Sequence[Record]) -> Sequence[Record]:
    """The records behind ``end``; all of them, unless the tree delivers some again."""
    if not records or Mark.after(records[0].position) > end:
        return records
    return [record for record in records if Mark.after(record.position) > end]
