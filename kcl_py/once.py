"""Effects in DynamoDB that are applied once for each record, or for each message id, whatever comes again.

A marker is written in the same transaction. See docs/effects.md.
"""

from collections.abc import Callable, Sequence

from kcl_py.effects import Effect, Put
from kcl_py.errors import EffectsRefusedError
from kcl_py.leases.transactions import FAILED, MOST
from kcl_py.processor import OwnedShard
from kcl_py.records import Record
from kcl_py.tables import Tables

UNLESS_MARKED = "attribute_not_exists(#key) OR #expires < :now"


class Once:
    """Applies the effects of single records; for those of batches there is ``Checkpointer.once``.

    Where records come one after the other (``delivery.ordering: shard``), no marker is needed unless ``id`` is given:
    the effects and the checkpoint are one transaction.

    Args:
        shard: what ``initialize`` was given.
        table: holds the markers; it is yours to create, in the account and region of the lease table.
        ttl_s: how long a marker counts: longer than the record, or a message with the same id, can come again.
        id: makes the message id of a record: two with the same id on one stream count as one. None: each record
            counts by itself.
        key: the partition key of the table, of type string.
        expires: the attribute with the Unix time, in seconds, after which a marker does not count; let the table delete
            by it.

    Raises:
        ValueError: the shard has no tables, or one of the others is no name or no number of seconds.
    """

    def __init__(
        self,
        shard: OwnedShard,
        *,
        table: str,
        ttl_s: float,
        id: Callable[[Record], str] | None = None,  # as users call it
        key: str = "id",
        expires: str = "expires",
    ) -> None:
        self._shard, self._tables = shard, tables_of(shard)
        check_names("Once", table=table, key=key, expires=expires)
        check_seconds("Once", ttl_s=ttl_s)
        self._table, self._ttl_s, self._id, self._key, self._expires = table, ttl_s, id, key, expires

    async def apply(self, record: Record, effects: Sequence[Effect]) -> bool:
        """Apply effects of ``record``, at most 99, unless that was done before; False if it was.

        Raises:
            EffectsRefusedError: DynamoDB does not take them, and none was written.
            ValueError: ``id`` gives no id, but None, say; nothing was written.
            RequestError: there was no good answer in time. Raise it: when the record comes again, the marker tells.
            LeaseLostError, CheckpointFailedError: as of ``Checkpointer.once``, where the checkpoint is the marker.
        """
        if self._shard.checkpointer is not None and self._id is None:
            return await self._shard.checkpointer.once(effects, at=record)
        if len(effects) >= MOST:
            raise EffectsRefusedError(
                f"cannot apply {len(effects)} effects: expected {MOST - 1} at most beside the marker of the record"
            )
        try:
            await self._tables.apply([*effects, self._marker(record)])
        except EffectsRefusedError as error:
            if error.reasons.get(len(effects)) == FAILED:
                return False
            raise
        return True

    def _marker(self, record: Record) -> Put:
        name = self._shard.identity(record) if self._id is None else message_key(self._shard, record, self._id)
        now_s = self._tables.now_s()
        return Put(
            self._table,
            {self._key: str(name), self._expires: now_s + int(self._ttl_s)},
            UNLESS_MARKED,
            names={"#key": self._key, "#expires": self._expires},
            values={":now": now_s},
        )


def tables_of(shard: OwnedShard) -> Tables:
    """Return the way to DynamoDB; raises ValueError if the shard has none."""
    if shard.tables is None:
        raise ValueError(
            f"cannot write effects of {shard.shard_id!r}: expected the OwnedShard that initialize was given, found one "
            "without tables"
        )
    return shard.tables


def message_key(shard: OwnedShard, record: Record, id_of: Callable[[Record], str]) -> str:
    """Return the key of a message id: of the stream, since a sender may put a message again into another shard.

    Raises ValueError if there is none: all messages without one would count as the same.
    """
    message_id: object = id_of(record)
    if not isinstance(message_id, str) or not message_id:
        raise ValueError(
            f"cannot tell the message of {shard.identity(record)} from others: expected an id, a str that is not "
            f"empty, found {message_id!r}; have `id` return one, or reject the record before"
        )
    return f"{shard.stream}#{message_id}"


def check_names(what: str, **names: object) -> None:
    """Raise ValueError for what can be no name of a table or an attribute."""
    for option, name in names.items():
        if not isinstance(name, str) or not name:
            raise ValueError(f"cannot make {what}: expected {option} to be a str that is not empty, found {name!r}")


def check_seconds(what: str, **durations: object) -> None:
    """Raise ValueError for what is no time in which something can count: DynamoDB's are whole seconds."""
    for option, seconds in durations.items():
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 1 <= seconds < float("inf"):
            raise ValueError(f"cannot make {what}: expected {option} to be a number from 1 on, found {seconds!r}")
