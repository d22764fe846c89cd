"""Records read by polling: iterators and pages."""

from kcl_py.local import requests as ask
from kcl_py.local.account import Account
from kcl_py.local.encryption import check_key
from kcl_py.local.errors import ModelError, invalid
from kcl_py.local.iterators import start_position
from kcl_py.local.operations import Answer, Operations
from kcl_py.local.quota import Quotas
from kcl_py.local.shard import EndShape, Shard
from kcl_py.local.stream import Stream
from kcl_py.local.tokens import ShardIterator


class Gets:
    """The operations that poll streams of ``account``; ``quotas`` where there are any."""

    def __init__(self, account: Account, quotas: Quotas | None, end_shape: EndShape) -> None:
        self._account, self._quotas, self._end_shape = account, quotas, end_shape

    def operations(self) -> Operations:
        return {ask.GetRecords: self.get_records, ask.GetShardIterator: self.get_shard_iterator}

    def get_shard_iterator(self, request: ask.GetShardIterator) -> Answer:
        stream, now_s = self._account.usable(request), self._account.now_s()
        shard = stream.shard(request.shard_id, now_s)
        if self._quotas is not None:
            self._quotas.iterator(shard, now_s)
        position = start_position(
            shard,
            request.shard_iterator_type,
            number=request.starting_sequence_number,
            time_s=request.timestamp,
            stream=stream.name,
            now_s=now_s,
        )
        return {"ShardIterator": self._iterator(stream, shard, position)}

    def get_records(self, request: ask.GetRecords) -> Answer:
        stream, shard, start = self._resolve(request)
        now_s = self._account.now_s()
        window = self._quotas.read(shard, now_s) if self._quotas is not None else None
        check_key(stream)
        start = max(start, shard.start)
        records = shard.page(start, request.limit)
        end = start + len(records)
        if window is not None:
            window.charge(shard.bytes_between(start, end))
        at_tip = end == shard.end
        answer: Answer = {"Records": records, "MillisBehindLatest": 0}
        if not at_tip:
            # 0 would say "at the tip", so what arrived this very millisecond counts as 1.
            answer["MillisBehindLatest"] = max(1, int((now_s - records[-1].arrived_s) * 1000))
        told = at_tip and (self._end_shape is EndShape.WITH_LAST or not records)
        if told and shard.closed_s is not None:
            answer["ChildShards"] = [child.describe_as_child() for child in shard.children]
        else:
            answer["NextShardIterator"] = self._iterator(stream, shard, end)
        return answer

    def _iterator(self, stream: Stream, shard: Shard, position: int) -> str:
        return ShardIterator(self._account.now_s(), stream.name, stream.created_s, shard.index, position).seal()

    def _resolve(self, request: ask.GetRecords) -> tuple[Stream, Shard, int]:
        """Return where an iterator points."""
        iterator = ShardIterator.unseal(request.shard_iterator)
        if iterator is None:
            raise invalid("Invalid ShardIterator.")
        now_s = self._account.now_s()
        if iterator.has_expired(now_s):
            raise ModelError(
                "ExpiredIteratorException",
                f"Iterator expired. The iterator was created at time {iterator.issued_s} while right now it is {now_s} "
                "which is further in the future than the tolerated delay of 300000 milliseconds.",
            )
        stream = self._account.same(iterator.stream, iterator.created_s)
        if request.stream_arn is not None and request.stream_arn.partition(":stream/")[2] != stream.name:
            raise invalid(f"StreamARN {request.stream_arn} is not that of the iterator's stream {stream.name}.")
        return stream, stream.shard_at(iterator.shard, now_s), iterator.position
