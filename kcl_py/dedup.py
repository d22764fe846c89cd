"""Messages that their sender may put twice, and whose effects are not in DynamoDB.

A claim is written before the work, and that it is done after it. See docs/effects.md.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from kcl_py.effects import ConditionCheck, Put
from kcl_py.errors import DuplicateInWorkError, EffectsRefusedError
from kcl_py.leases.transactions import FAILED
from kcl_py.once import UNLESS_MARKED, check_names, check_seconds, message_key, tables_of
from kcl_py.outcomes import LONGEST_S
from kcl_py.processor import OwnedShard
from kcl_py.records import Record

WORK_S = 60.0
CLAIMED, DONE = "claimed", "done"


class Dedup:
    """Tells the first record with a message id from those after it.

    Args:
        shard: what ``initialize`` was given.
        table: holds what is known of message ids; it is yours to create, in the account and region of the lease table.
        ttl_s: how long a message id is known after its work was done: longer than its sender may put it again.
        id: makes the message id of a record.
        work_s: how long the work on one may take. Where it was cut off, another record with its id waits so long.
        key: the partition key of the table, of type string.
        expires: the attribute with the Unix time, in seconds, after which an item does not count; let the table delete
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
        id: Callable[[Record], str],  # as users call it
        work_s: float = WORK_S,
        key: str = "id",
        expires: str = "expires",
    ) -> None:
        self._shard, self._tables = shard, tables_of(shard)
        check_names("Dedup", table=table, key=key, expires=expires)
        check_seconds("Dedup", ttl_s=ttl_s, work_s=work_s)
        self._table, self._ttl_s, self._id, self._work_s = table, ttl_s, id, work_s
        self._key, self._expires = key, expires

    @asynccontextmanager
    async def first(self, record: Record) -> AsyncIterator[bool]:
        """Yield whether the work of ``record`` is to be done; when the block ends without an error, it is done.

        Where the block raises, or its end cannot be stored, the record has to come again: it is then first again.

        Raises:
            DuplicateInWorkError: another record with the same id is in work; return ``Retry(error.after_s)``.
            ValueError: ``id`` gives no id, but None, say.
            RequestError: there was no good answer in time.
        """
        is_first = await self._claim(record)
        yield is_first
        if is_first:
            await self._tables.apply([self._put(record, DONE, self._ttl_s)])

    async def _claim(self, record: Record) -> bool:
        mine = "#state = :claimed AND #by = :by AND #epoch <= :epoch"
        claim = self._put(record, CLAIMED, self._work_s, f"{UNLESS_MARKED} OR ({mine})")
        if await self._holds(claim):
            return True
        key = {self._key: claim.item[self._key]}
        names = {"#state": "state", "#expires": self._expires}
        values = {":done": DONE, ":now": self._tables.now_s()}
        if await self._holds(ConditionCheck(self._table, key, "#state = :done AND #expires >= :now", names, values)):
            return False
        raise DuplicateInWorkError(
            f"cannot begin with {self._shard.identity(record)}: expected no other record with its message id in work, "
            f"found one; within {self._work_s:g} s it is done or given up",
            min(self._work_s, LONGEST_S),
        )

    async def _holds(self, effect: Put | ConditionCheck) -> bool:
        """Apply one effect; False if its condition does not hold."""
        try:
            await self._tables.apply([effect])
        except EffectsRefusedError as error:
            if error.reasons.get(0) == FAILED:
                return False
            raise
        return True

    def _put(self, record: Record, state: str, for_s: float, condition: str | None = None) -> Put:
        now_s, by, epoch = self._tables.now_s(), str(self._shard.identity(record)), self._shard.epoch
        item = {
            self._key: message_key(self._shard, record, self._id),
            self._expires: now_s + int(for_s),
            "state": state,
            "by": by,
            "epoch": epoch,
        }
        if condition is None:
            return Put(self._table, item)
        names = {"#key": self._key, "#expires": self._expires, "#state": "state", "#by": "by", "#epoch": "epoch"}
        values: Mapping[str, Any] = {":now": now_s, ":claimed": CLAIMED, ":by": by, ":epoch": epoch}
        return Put(self._table, item, condition, names, values)
