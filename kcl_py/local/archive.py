"""What the local Kinesis tells whoever keeps its streams beyond its life."""

from collections.abc import Iterable
from typing import Protocol, TypeAlias

from kcl_py.local.stream import Stream
from kcl_py.records import Record

Entry: TypeAlias = tuple[int, int, Record]
"""A record that was put: number of its shard, its position there, the record."""


class Archive(Protocol):
    """Told of everything before it is answered."""

    def save(self, streams: Iterable[Stream], now_s: float) -> None:
        """Keep all of ``streams`` but their records: something of them changed; or nothing, if a stream is gone.

        Raises:
            OSError: not all of it is kept; it will be asked for again.
        """
        ...

    def append(self, stream: Stream, entries: list[Entry]) -> None:
        """Keep records that were just put into ``stream``. Raises OSError: then none of them is kept."""
        ...
