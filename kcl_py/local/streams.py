"""Streams as a whole: made, deleted, described, listed."""

from kcl_py.local import requests as ask
from kcl_py.local.account import ON_DEMAND_QUOTA, SHARD_QUOTA, Account
from kcl_py.local.errors import in_use, invalid
from kcl_py.local.operations import Answer, Operations
from kcl_py.local.stream import HOUR_S, Mode, Stream
from kcl_py.local.tokens import StreamPage, open_page

_ON_DEMAND_SHARDS = 4
_DESCRIBE_PAGE, _LIST_PAGE = 100, 100


class Streams:
    """The operations on streams of ``account``."""

    def __init__(self, account: Account) -> None:
        self._account = account

    def operations(self) -> Operations:
        return {
            ask.CreateStream: self.create_stream,
            ask.DeleteStream: self.delete_stream,
            ask.DescribeLimits: self.describe_limits,
            ask.DescribeStream: self.describe_stream,
            ask.DescribeStreamSummary: self.describe_stream_summary,
            ask.ListStreams: self.list_streams,
        }

    def create_stream(self, request: ask.CreateStream) -> Answer:
        details = request.stream_mode_details
        mode = Mode(details.stream_mode) if details else Mode.PROVISIONED
        if mode is Mode.PROVISIONED and request.shard_count is None:
            raise invalid("ShardCount is needed for a stream in PROVISIONED mode.")
        if mode is Mode.ON_DEMAND and request.shard_count is not None:
            raise invalid("ShardCount is not allowed for a stream in ON_DEMAND mode.")
        delay_s = self._account.due_s() - self._account.now_s()
        shard_count = request.shard_count or _ON_DEMAND_SHARDS
        stream = self._account.create(request.stream_name, shard_count, mode=mode, delay_s=delay_s)
        stream.tags |= request.tags or {}
        if request.max_record_size is not None:
            stream.record_bytes = request.max_record_size * 1024
        return {}

    def delete_stream(self, request: ask.DeleteStream) -> Answer:
        stream = self._account.stream(request)
        if stream.status == "CREATING":
            raise in_use(f"Attempt to change a resource which is still in use: Stream is being created: {stream.name}")
        if self._account.consumers(stream) and not request.enforce_consumer_deletion:
            raise in_use(f"Stream {stream.name} has consumers: give EnforceConsumerDeletion to delete them with it.")
        if stream.gone_s is None:
            stream.gone_s = self._account.due_s()
        return {}

    def describe_limits(self, request: ask.DescribeLimits) -> Answer:
        return {
            "ShardLimit": SHARD_QUOTA,
            "OpenShardCount": self._account.shard_count(),
            "OnDemandStreamCount": self._account.on_demand_count(),
            "OnDemandStreamCountLimit": ON_DEMAND_QUOTA,
        }

    def describe_stream(self, request: ask.DescribeStream) -> Answer:
        stream = self._account.stream(request)
        after = request.exclusive_start_shard_id or ""
        rest = [shard for shard in stream.shards(self._account.now_s()) if shard.shard_id > after]
        page = rest[: min(request.limit, _DESCRIBE_PAGE)]
        shards = [shard.describe() for shard in page]
        return {"StreamDescription": _summary(stream) | {"Shards": shards, "HasMoreShards": len(page) < len(rest)}}

    def describe_stream_summary(self, request: ask.DescribeStreamSummary) -> Answer:
        stream = self._account.stream(request)
        more = {
            "OpenShardCount": len(stream.open_shards()),
            "ConsumerCount": len(self._account.consumers(stream)),
            "MaxRecordSizeInKiB": stream.record_bytes // 1024,
        }
        return {"StreamDescriptionSummary": _summary(stream) | more}

    def list_streams(self, request: ask.ListStreams) -> Answer:
        now_s, after = self._account.now_s(), request.exclusive_start_stream_name or ""
        if request.next_token is not None:
            after = open_page(StreamPage, request.next_token, now_s).after
        streams = [stream for stream in self._account.all() if stream.name > after]
        page = streams[: min(request.limit, _LIST_PAGE)]
        answer: Answer = {
            "StreamNames": [stream.name for stream in page],
            "StreamSummaries": [_identity(stream) for stream in page],
            "HasMoreStreams": len(page) < len(streams),
        }
        if answer["HasMoreStreams"]:
            answer["NextToken"] = StreamPage(now_s, page[-1].name).seal()
        return answer


def _identity(stream: Stream) -> Answer:
    return {
        "StreamName": stream.name,
        "StreamARN": stream.arn,
        "StreamStatus": stream.status,
        "StreamModeDetails": {"StreamMode": stream.mode},
        "StreamCreationTimestamp": float(stream.created_s),
    }


def _summary(stream: Stream) -> Answer:
    key = {} if stream.key_id is None else {"KeyId": stream.key_id}
    return _identity(stream) | {
        "RetentionPeriodHours": stream.retention_s // HOUR_S,
        "EnhancedMonitoring": [{"ShardLevelMetrics": []}],
        "EncryptionType": stream.encryption,
        **key,
    }
