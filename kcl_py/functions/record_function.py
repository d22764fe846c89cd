"""A function that is called for each record."""

from collections.abc import Awaitable, Callable
from typing import ClassVar

from kcl_py.functions.signature import Signature
from kcl_py.outcomes import RecordOutcome, Reject
from kcl_py.processor import OwnedShard, RecordProcessor
from kcl_py.records import Record


class RecordFunction(RecordProcessor):
    """Has its class's function process one record at a time."""

    function: ClassVar[Callable[..., Awaitable[RecordOutcome]]]
    signature: ClassVar[Signature]

    async def initialize(self, shard: OwnedShard) -> None:
        self._shard = shard

    async def process(self, record: Record) -> RecordOutcome:
        signature, payload = self.signature, None
        if signature.decode is not None:
            payload = signature.decode(record.data)
            if isinstance(payload, Reject):
                return payload
        return await self.function(**signature.arguments(payload=payload, record=record, shard=self._shard))
