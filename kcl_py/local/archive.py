"""What the local Kinesis tells whoever keeps its streams beyond its life."""

from typing import TYPE_CHECKING, Protocol, TypeAlias

from kcl_py.local.stream import Stream
from kcl_py.records import Record

if TYPE_CHECKING:
    from kcl_py.local.account import Account

Entry: TypeAlias = tuple[int, int, Record]
"""A record that was put: number of its shard, its position there, the record."""


class Archive(Protocol):
    """Told of everything before it is answered."""

    def save(self, account: "Account") -> None:
        """Keep all of ``account`` but the records: something of it changed. Raises OSError, and may be asked again."""
        ...

    def append(self, stream: Stream, entries: list[Entry]) -> None:
        """Keep records that were just put into ``stream``. Raises OSError: then none of them is kept."""
        ...
