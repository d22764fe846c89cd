"""A Kinesis in memory that behaves as AWS documents it: one method for each operation.

It does no I/O, starts no task and takes the time only from its clock, so it serves a simulation as well as a socket.
It is not thread-safe. Answers have AWS's shape, with records as ``Record`` structs and times as Unix seconds.
A refusal is a ``ModelError`` with AWS's code. Write rates are limited only where asked for.

Source of every rule: the Kinesis API reference; where it is silent, what kinesalite found on the real service.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, TypeAlias, TypeVar

from actors.clock import Clock
from kcl_py.local import requests as ask
from kcl_py.local.account import Account
from kcl_py.local.errors import ModelError, in_use, invalid
from kcl_py.local.hashing import explicit_hash_key, hash_key
from kcl_py.local.iterators import start_position
from kcl_py.local.listing import filter_shards
from kcl_py.local.quota import WriteWindow
from kcl_py.local.sequence import parse
from kcl_py.local.shard import Shard
from kcl_py.local.stream import ACCOUNT, Mode, Reshard, Stream
from kcl_py.local.tokens import ShardIterator, ShardPage, StreamPage

Answer: TypeAlias = dict[str, Any]
PageT = TypeVar("PageT", ShardPage, StreamPage)

RECORD_BYTES = 1024 * 1024
"""Payload and key of one record. Source: Kinesis API reference, PutRecord."""
REQUEST_BYTES = 10 * 1024 * 1024
"""Payloads and keys of one PutRecords. Source: Kinesis API reference, PutRecords."""
RETENTION_S = 24 * 3600
_ON_DEMAND_SHARDS = 4
_LIST_SHARDS_PAGE, _DESCRIBE_PAGE, _LIST_STREAMS_PAGE = 1000, 100, 100


class EndShape(StrEnum):
    """How a closed shard tells that it was read to its end; both have been seen, a reader must take either."""

    WITH_LAST = "with_last"
    """The answer with the last records has no next iterator."""
    AFTER_LAST = "after_last"
    """One more answer comes, without records and without a next iterator."""


class Kinesis:
    """All streams of one account in one region.

    Args:
        clock: the service's clock; only ``time`` is used.
        region: the region in the ARNs.
        delay_s: how long creating, deleting, splitting and merging take.
        end_shape: how a closed shard's end is told.
        limit_writes: whether a shard refuses what is above its write rate.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        region: str = "us-east-1",
        delay_s: float = 0.05,
        end_shape: EndShape = EndShape.WITH_LAST,
        limit_writes: bool = False,
    ) -> None:
        self._clock, self._delay_s, self._end_shape = clock, delay_s, end_shape
        self._account = Account(clock, region=region)
        self._windows: dict[Shard, WriteWindow] | None = {} if limit_writes else None
        self._operations: dict[type[ask.Request], Callable[[Any], Answer]] = {
            ask.CreateStream: self.create_stream,
            ask.DeleteStream: self.delete_stream,
            ask.DescribeStream: self.describe_stream,
            ask.DescribeStreamSummary: self.describe_stream_summary,
            ask.ListStreams: self.list_streams,
            ask.ListShards: self.list_shards,
            ask.PutRecord: self.put_record,
            ask.PutRecords: self.put_records,
            ask.GetShardIterator: self.get_shard_iterator,
            ask.GetRecords: self.get_records,
            ask.SplitShard: self.split_shard,
            ask.MergeShards: self.merge_shards,
        }

    def call(self, operation: str, params: Mapping[str, Any]) -> Answer:
        """Answer ``operation`` (AWS's name) with ``params`` (AWS's names; Data bytes, times Unix seconds)."""
        return self.answer(ask.read(operation, params))

    def answer(self, request: ask.Request) -> Answer:
        """Answer a request that was read before; the one door that all operations go through."""
        return self._operations[type(request)](request)

    def add_stream(self, name: str, shard_count: int) -> None:
        """Create a stream that is ACTIVE at once."""
        self._account.create(name, shard_count, mode=Mode.PROVISIONED, delay_s=0.0)

    def create_stream(self, request: ask.CreateStream) -> Answer:
        details = request.stream_mode_details
        mode = Mode(details.stream_mode) if details else Mode.PROVISIONED
        if mode is Mode.PROVISIONED and request.shard_count is None:
            raise invalid("ShardCount is needed for a stream in PROVISIONED mode.")
        if mode is Mode.ON_DEMAND and request.shard_count is not None:
            raise invalid("ShardCount is not allowed for a stream in ON_DEMAND mode.")
        self._account.create(
            request.stream_name, request.shard_count or _ON_DEMAND_SHARDS, mode=mode, delay_s=self._delay_s
        )
        return {}

    def delete_stream(self, request: ask.DeleteStream) -> Answer:
        stream = self._account.stream(request)
        if stream.status == "CREATING":
            raise in_use(f"Attempt to change a resource which is still in use: Stream is being created: {stream.name}")
        if stream.gone_s is None:
            stream.gone_s = self._clock.time() + self._delay_s
        return {}

    def describe_stream(self, request: ask.DescribeStream) -> Answer:
        stream = self._account.stream(request)
        after = request.exclusive_start_shard_id or ""
        rest = [shard for shard in stream.shards if shard.shard_id > after]
        page = rest[: min(request.limit, _DESCRIBE_PAGE)]
        shards = [shard.describe() for shard in page]
        return {"StreamDescription": _summary(stream) | {"Shards": shards, "HasMoreShards": len(page) < len(rest)}}

    def describe_stream_summary(self, request: ask.DescribeStreamSummary) -> Answer:
        stream = self._account.stream(request)
        counts = {"OpenShardCount": len(stream.open_shards()), "ConsumerCount": 0}
        return {"StreamDescriptionSummary": _summary(stream) | counts}

    def list_streams(self, request: ask.ListStreams) -> Answer:
        after = request.exclusive_start_stream_name or ""
        if request.next_token is not None:
            after = self._alive(StreamPage.unseal(request.next_token)).after
        streams = [stream for stream in self._account.all() if stream.name > after]
        page = streams[: min(request.limit, _LIST_STREAMS_PAGE)]
        answer: Answer = {
            "StreamNames": [stream.name for stream in page],
            "StreamSummaries": [_identity(stream) for stream in page],
            "HasMoreStreams": len(page) < len(streams),
        }
        if answer["HasMoreStreams"]:
            answer["NextToken"] = StreamPage(self._clock.time(), page[-1].name).seal()
        return answer

    def list_shards(self, request: ask.ListShards) -> Answer:
        stream, after, wanted = self._first_page(request) if request.next_token is None else self._next_page(request)
        if not stream.is_usable:
            raise in_use(f"Stream {stream.name} under account {ACCOUNT} is in state {stream.status}")
        horizon_s = max(stream.shards[0].opened_s, self._clock.time() - RETENTION_S)
        shards = filter_shards(stream.shards, wanted, horizon_s=horizon_s)
        rest = [shard for shard in shards if shard.shard_id > after]
        page = rest[: min(request.max_results, _LIST_SHARDS_PAGE)]
        answer: Answer = {"Shards": [shard.describe() for shard in page]}
        if len(page) < len(rest):
            token = ShardPage(self._clock.time(), stream.name, stream.created_s, page[-1].shard_id, wanted)
            answer["NextToken"] = token.seal()
        return answer

    def put_record(self, request: ask.PutRecord) -> Answer:
        stream = self._account.usable(request)
        size_bytes = _size(request)
        if request.sequence_number_for_ordering is not None and parse(request.sequence_number_for_ordering) is None:
            raise invalid(f"SequenceNumberForOrdering used in PutRecord on stream {stream.name} is invalid.")
        return self._put(stream, request, size_bytes)

    def put_records(self, request: ask.PutRecords) -> Answer:
        stream = self._account.usable(request)
        sizes = [_size(entry) for entry in request.records]
        if sum(sizes) > REQUEST_BYTES:
            raise invalid(f"Records size exceeds {REQUEST_BYTES} bytes: found {sum(sizes)}")
        for entry in request.records:
            if entry.explicit_hash_key is not None:
                explicit_hash_key(entry.explicit_hash_key)
        failed, results = 0, []
        for entry, size_bytes in zip(request.records, sizes, strict=True):
            try:
                results.append(self._put(stream, entry, size_bytes))
            except ModelError as error:
                failed += 1
                results.append({"ErrorCode": error.code, "ErrorMessage": error.message})
        return {"FailedRecordCount": failed, "Records": results}

    def get_shard_iterator(self, request: ask.GetShardIterator) -> Answer:
        stream = self._account.usable(request)
        shard = stream.shard(request.shard_id)
        position = start_position(shard, request, stream=stream.name, now_s=self._clock.time())
        return {"ShardIterator": self._iterator(stream, shard, position)}

    def get_records(self, request: ask.GetRecords) -> Answer:
        stream, shard, start = self._resolve(request)
        end = shard.page_end(start, request.limit)
        records, at_tip = shard.records[start:end], end == len(shard.records)
        answer: Answer = {"Records": records, "MillisBehindLatest": 0}
        if not at_tip:
            # 0 would say "at the tip", so what arrived this very millisecond counts as 1.
            answer["MillisBehindLatest"] = max(1, int((self._clock.time() - records[-1].arrived_s) * 1000))
        told = at_tip and (self._end_shape is EndShape.WITH_LAST or not records)
        if told and shard.closed_s is not None:
            answer["ChildShards"] = [child.describe_as_child() for child in shard.children]
        else:
            answer["NextShardIterator"] = self._iterator(stream, shard, end)
        return answer

    def split_shard(self, request: ask.SplitShard) -> Answer:
        stream = self._provisioned(request)
        shard = stream.shard(request.shard_to_split)
        first, last = shard.hash_range
        cut = int(request.new_starting_hash_key)
        if not first + 1 < cut < last:
            raise invalid(
                f"NewStartingHashKey {cut} used in SplitShard() on shard {shard.shard_id} in stream {stream.name} "
                f"under account {ACCOUNT} is not both greater than one plus the shard's StartingHashKey {first} and "
                f"less than the shard's EndingHashKey {last}."
            )
        self._account.check_quota(1)
        stream.reshard(self._change((shard,), ((first, cut - 1), (cut, last))))
        return {}

    def merge_shards(self, request: ask.MergeShards) -> Answer:
        stream = self._provisioned(request)
        lower, upper = stream.shard(request.shard_to_merge), stream.shard(request.adjacent_shard_to_merge)
        if lower.hash_range[1] + 1 != upper.hash_range[0]:
            raise invalid(
                f"Shards {lower.shard_id} and {upper.shard_id} in stream {stream.name} under account {ACCOUNT} are not "
                "an adjacent pair of shards eligible for merging"
            )
        stream.reshard(self._change((lower, upper), ((lower.hash_range[0], upper.hash_range[1]),)))
        return {}

    def _change(self, parents: tuple[Shard, ...], ranges: tuple[tuple[int, int], ...]) -> Reshard:
        return Reshard(self._clock.time() + self._delay_s, parents, ranges)

    def _provisioned(self, request: ask.StreamRequest) -> Stream:
        stream = self._account.stream(request)
        if stream.mode is not Mode.PROVISIONED:
            raise ModelError("ValidationException", f"Stream {stream.name} is in mode {stream.mode}, not PROVISIONED.")
        return stream

    def _first_page(self, request: ask.ListShards) -> tuple[Stream, str, ask.ShardFilter | None]:
        return self._account.stream(request), request.exclusive_start_shard_id or "", request.shard_filter

    def _next_page(self, request: ask.ListShards) -> tuple[Stream, str, ask.ShardFilter | None]:
        """Return what the token stands for: the stream, the shard to go on after, the filter."""
        others = (
            request.stream_name,
            request.stream_creation_timestamp,
            request.exclusive_start_shard_id,
            request.shard_filter,
        )
        if any(other is not None for other in others):
            raise invalid("NextToken and StreamName, or another choice of shards, cannot be provided together.")
        page = self._alive(ShardPage.unseal(request.next_token or ""))
        return self._account.same(page.stream, page.created_s), page.after, page.shard_filter

    def _alive(self, page: PageT | None) -> PageT:
        if page is None:
            raise invalid("NextToken is invalid.")
        if page.has_expired(self._clock.time()):
            raise ModelError("ExpiredNextTokenException", "NextToken is older than 300 seconds.")
        return page

    def _put(self, stream: Stream, entry: ask.RecordEntry | ask.PutRecord, size_bytes: int) -> Answer:
        explicit, now_s = entry.explicit_hash_key, self._clock.time()
        shard = stream.route(hash_key(entry.partition_key) if explicit is None else explicit_hash_key(explicit))
        if self._windows is not None and not self._windows.setdefault(shard, WriteWindow()).admits(size_bytes, now_s):
            raise ModelError(
                "ProvisionedThroughputExceededException",
                f"Rate exceeded for shard {shard.shard_id} in stream {stream.name} under account {ACCOUNT}.",
            )
        number = shard.append(entry.data, entry.partition_key, size_bytes, now_s)
        return {"ShardId": shard.shard_id, "SequenceNumber": number}

    def _iterator(self, stream: Stream, shard: Shard, position: int) -> str:
        return ShardIterator(self._clock.time(), stream.name, stream.created_s, shard.index, position).seal()

    def _resolve(self, request: ask.GetRecords) -> tuple[Stream, Shard, int]:
        """Return where an iterator points."""
        iterator = ShardIterator.unseal(request.shard_iterator)
        if iterator is None:
            raise invalid("Invalid ShardIterator.")
        now_s = self._clock.time()
        if iterator.has_expired(now_s):
            raise ModelError(
                "ExpiredIteratorException",
                f"Iterator expired. The iterator was created at time {iterator.issued_s} while right now it is {now_s} "
                "which is further in the future than the tolerated delay of 300000 milliseconds.",
            )
        stream = self._account.same(iterator.stream, iterator.created_s)
        return stream, stream.shards[iterator.shard], iterator.position


def _size(entry: ask.RecordEntry | ask.PutRecord) -> int:
    """Return the bytes of payload and key. Raises InvalidArgumentException above the limit of one record."""
    size_bytes = len(entry.data) + len(entry.partition_key.encode())
    if size_bytes > RECORD_BYTES:
        raise invalid(f"Payload and partition key must not be above {RECORD_BYTES} bytes: found {size_bytes}.")
    return size_bytes


def _identity(stream: Stream) -> Answer:
    return {
        "StreamName": stream.name,
        "StreamARN": stream.arn,
        "StreamStatus": stream.status,
        "StreamModeDetails": {"StreamMode": stream.mode},
        "StreamCreationTimestamp": float(stream.created_s),
    }


def _summary(stream: Stream) -> Answer:
    return _identity(stream) | {
        "RetentionPeriodHours": RETENTION_S // 3600,
        "EnhancedMonitoring": [{"ShardLevelMetrics": []}],
        "EncryptionType": "NONE",
    }
