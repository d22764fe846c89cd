"""What the local Kinesis can be asked: one struct per operation, with the limits that AWS checks before anything else.

The same structs are read from a dict (in memory) and from a JSON body (over HTTP), where ``Data`` is base64.
Source of names and limits: the API's own model (botocore, kinesis/2013-12-02).
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from kcl_py.local.errors import ModelError

Name = Annotated[str, Meta(min_length=1, max_length=128, pattern="^[a-zA-Z0-9_.-]+\\Z")]
Arn = Annotated[str, Meta(min_length=1, max_length=2048, pattern="^arn:aws.*:kinesis:.*:[0-9]{12}:stream/.+")]
ConsumerArn = Annotated[
    str,
    Meta(
        max_length=2048,
        pattern="^arn:aws.*:kinesis:.*:[0-9]{12}:.*stream/[a-zA-Z0-9_.-]+/consumer/[a-zA-Z0-9_.-]+:[0-9]+",
    ),
]
KeyId = Annotated[str, Meta(min_length=1, max_length=2048)]
RecordKiB = Annotated[int, Meta(ge=1024, le=10_240)]
TagKey = Annotated[str, Meta(min_length=1, max_length=128)]
TagValue = Annotated[str, Meta(max_length=256)]
Tags = Annotated[dict[TagKey, TagValue], Meta(min_length=1, max_length=200)]
TagKeys = Annotated[list[TagKey], Meta(min_length=1, max_length=50)]
HashKey = Annotated[str, Meta(pattern="^(0|[1-9][0-9]{0,38})\\Z")]
SequenceText = Annotated[str, Meta(pattern="^(0|[1-9][0-9]{0,128})\\Z")]
PageToken = Annotated[str, Meta(min_length=1, max_length=1_048_576)]
PageSize = Annotated[int, Meta(ge=1, le=10_000)]
PartitionKey = Annotated[str, Meta(min_length=1, max_length=256)]
Blob = Annotated[bytes, Meta(max_length=10_485_760)]
FilterType = Literal[
    "AFTER_SHARD_ID", "AT_TRIM_HORIZON", "FROM_TRIM_HORIZON", "AT_LATEST", "AT_TIMESTAMP", "FROM_TIMESTAMP"
]
IteratorType = Literal["AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER", "TRIM_HORIZON", "LATEST", "AT_TIMESTAMP"]


class Request(msgspec.Struct, frozen=True, kw_only=True, rename="pascal"):
    """What every operation may carry; fields bear AWS's names on the wire."""


class StreamRequest(Request, frozen=True, kw_only=True):
    """An operation on one stream, named either way."""

    stream_name: Name | None = None
    stream_arn: Arn | None = msgspec.field(name="StreamARN", default=None)


class StreamModeDetails(Request, frozen=True, kw_only=True):
    """How a stream's capacity is set."""

    stream_mode: Literal["PROVISIONED", "ON_DEMAND"]


class ShardFilter(Request, frozen=True, kw_only=True):
    """Which shards to list; ``timestamp`` is Unix seconds."""

    type: FilterType
    shard_id: Name | None = None
    timestamp: float | None = None


class CreateStream(Request, frozen=True, kw_only=True):
    """``shard_count`` belongs to PROVISIONED mode, and only to it."""

    stream_name: Name
    shard_count: Annotated[int, Meta(ge=1)] | None = None
    stream_mode_details: StreamModeDetails | None = None
    max_record_size: RecordKiB | None = msgspec.field(name="MaxRecordSizeInKiB", default=None)
    tags: Tags | None = None


class DeleteStream(StreamRequest, frozen=True, kw_only=True):
    """Takes effect after the model's delay; a stream with consumers goes only with ``enforce_consumer_deletion``."""

    enforce_consumer_deletion: bool = False


class DescribeLimits(Request, frozen=True, kw_only=True):
    """How much the account may have and has."""


class DescribeStream(StreamRequest, frozen=True, kw_only=True):
    """Pages go on by ``exclusive_start_shard_id``."""

    limit: PageSize = 100
    exclusive_start_shard_id: Name | None = None


class DescribeStreamSummary(StreamRequest, frozen=True, kw_only=True):
    """The stream without its shards."""


class ListStreams(Request, frozen=True, kw_only=True):
    """Pages go on by ``next_token`` or ``exclusive_start_stream_name``."""

    limit: PageSize = 100
    exclusive_start_stream_name: Name | None = None
    next_token: PageToken | None = None


class ListShards(StreamRequest, frozen=True, kw_only=True):
    """Further pages are asked for by ``next_token`` alone."""

    next_token: PageToken | None = None
    exclusive_start_shard_id: Name | None = None
    max_results: PageSize = 1000
    stream_creation_timestamp: float | None = None
    shard_filter: ShardFilter | None = None


class RecordEntry(Request, frozen=True, kw_only=True, gc=False):
    """One record of a PutRecords."""

    data: Blob
    partition_key: PartitionKey
    explicit_hash_key: HashKey | None = None


class PutRecord(StreamRequest, frozen=True, kw_only=True):
    """``sequence_number_for_ordering`` is checked; the order here is strict anyway."""

    data: Blob
    partition_key: PartitionKey
    explicit_hash_key: HashKey | None = None
    sequence_number_for_ordering: SequenceText | None = None


class PutRecords(StreamRequest, frozen=True, kw_only=True):
    """Records may fail one by one."""

    records: Annotated[list[RecordEntry], Meta(min_length=1, max_length=500)]


class GetShardIterator(StreamRequest, frozen=True, kw_only=True):
    """``timestamp`` is Unix seconds."""

    shard_id: Name
    shard_iterator_type: IteratorType
    starting_sequence_number: SequenceText | None = None
    timestamp: float | None = None


class GetRecords(StreamRequest, frozen=True, kw_only=True):
    """One page of a shard."""

    shard_iterator: Annotated[str, Meta(min_length=1, max_length=512)]
    limit: PageSize = 10_000


class SplitShard(StreamRequest, frozen=True, kw_only=True):
    """Everything from ``new_starting_hash_key`` on goes to the second child."""

    shard_to_split: Name
    new_starting_hash_key: HashKey


class MergeShards(StreamRequest, frozen=True, kw_only=True):
    """The shard to merge lies below its neighbour on the ring."""

    shard_to_merge: Name
    adjacent_shard_to_merge: Name


class UpdateShardCount(StreamRequest, frozen=True, kw_only=True):
    """Shards of equal size, by as many splits and merges as it takes."""

    target_shard_count: Annotated[int, Meta(ge=1)]
    scaling_type: Literal["UNIFORM_SCALING"]


class UpdateStreamMode(StreamRequest, frozen=True, kw_only=True):
    """The stream is named by its ARN alone."""

    stream_arn: Arn = msgspec.field(name="StreamARN")
    stream_mode_details: StreamModeDetails


class UpdateMaxRecordSize(StreamRequest, frozen=True, kw_only=True):
    """Payload and key of one record."""

    max_record_size: RecordKiB = msgspec.field(name="MaxRecordSizeInKiB")


class IncreaseStreamRetentionPeriod(StreamRequest, frozen=True, kw_only=True):
    """Records that are still kept are kept longer."""

    retention_period_hours: int


class DecreaseStreamRetentionPeriod(StreamRequest, frozen=True, kw_only=True):
    """What is older is gone at once."""

    retention_period_hours: int


class StartStreamEncryption(StreamRequest, frozen=True, kw_only=True):
    """A key named after a KMS error makes it happen."""

    encryption_type: Literal["NONE", "KMS"]
    key_id: KeyId


class StopStreamEncryption(StreamRequest, frozen=True, kw_only=True):
    """Records stored before stay marked as encrypted."""

    encryption_type: Literal["NONE", "KMS"]
    key_id: KeyId


class AddTagsToStream(StreamRequest, frozen=True, kw_only=True):
    """Tags are kept and shown; nothing depends on them."""

    tags: Tags


class RemoveTagsFromStream(StreamRequest, frozen=True, kw_only=True):
    """Keys that are not there are passed over."""

    tag_keys: TagKeys


class ListTagsForStream(StreamRequest, frozen=True, kw_only=True):
    """Pages go on by ``exclusive_start_tag_key``."""

    exclusive_start_tag_key: TagKey | None = None
    limit: Annotated[int, Meta(ge=1, le=50)] = 50


class ResourceRequest(Request, frozen=True, kw_only=True):
    """An operation on a stream or a consumer."""

    resource_arn: Annotated[str, Meta(max_length=2048, pattern="^arn:aws.*:kinesis:.*:[0-9]{12}:.*stream/.+")] = (
        msgspec.field(name="ResourceARN")
    )


class TagResource(ResourceRequest, frozen=True, kw_only=True):
    """The newer AddTagsToStream."""

    tags: Tags


class UntagResource(ResourceRequest, frozen=True, kw_only=True):
    """The newer RemoveTagsFromStream."""

    tag_keys: TagKeys


class ListTagsForResource(ResourceRequest, frozen=True, kw_only=True):
    """The newer ListTagsForStream, without pages."""


class RegisterStreamConsumer(StreamRequest, frozen=True, kw_only=True):
    """A consumer of its own 2 MB a second from each shard."""

    stream_arn: Arn = msgspec.field(name="StreamARN")
    consumer_name: Name
    tags: Tags | None = None


class ConsumerRequest(Request, frozen=True, kw_only=True):
    """An operation on one consumer, named either way."""

    stream_arn: Arn | None = msgspec.field(name="StreamARN", default=None)
    consumer_name: Name | None = None
    consumer_arn: ConsumerArn | None = msgspec.field(name="ConsumerARN", default=None)


class DescribeStreamConsumer(ConsumerRequest, frozen=True, kw_only=True):
    """Says when it is ACTIVE."""


class DeregisterStreamConsumer(ConsumerRequest, frozen=True, kw_only=True):
    """Its subscriptions end."""


class ListStreamConsumers(StreamRequest, frozen=True, kw_only=True):
    """Pages go on by ``next_token``."""

    stream_arn: Arn = msgspec.field(name="StreamARN")
    next_token: PageToken | None = None
    max_results: PageSize = 100
    stream_creation_timestamp: float | None = None


class StartingPosition(Request, frozen=True, kw_only=True):
    """Where a subscription begins; ``timestamp`` is Unix seconds."""

    type: IteratorType
    sequence_number: SequenceText | None = None
    timestamp: float | None = None


class SubscribeToShard(Request, frozen=True, kw_only=True):
    """Events for up to five minutes."""

    consumer_arn: ConsumerArn = msgspec.field(name="ConsumerARN")
    shard_id: Name
    starting_position: StartingPosition


KINDS: tuple[type[Request], ...] = (
    AddTagsToStream,
    CreateStream,
    DecreaseStreamRetentionPeriod,
    DeleteStream,
    DeregisterStreamConsumer,
    DescribeLimits,
    DescribeStream,
    DescribeStreamConsumer,
    DescribeStreamSummary,
    GetRecords,
    GetShardIterator,
    IncreaseStreamRetentionPeriod,
    ListShards,
    ListStreamConsumers,
    ListStreams,
    ListTagsForResource,
    ListTagsForStream,
    MergeShards,
    PutRecord,
    PutRecords,
    RegisterStreamConsumer,
    RemoveTagsFromStream,
    SplitShard,
    StartStreamEncryption,
    StopStreamEncryption,
    SubscribeToShard,
    TagResource,
    UntagResource,
    UpdateMaxRecordSize,
    UpdateShardCount,
    UpdateStreamMode,
)
_WRONG_TYPE = re.compile(r"Expected `[^`]+`, got `(?!null` - at)|Invalid base64|Number out of range")
"""How msgspec words that a value is of another type; a null in an object counts as missing."""
_KIND_OF = {kind.__name__: kind for kind in KINDS}
_DECODER_OF = {kind.__name__: msgspec.json.Decoder(kind) for kind in KINDS}


def read(operation: str, params: Mapping[str, Any]) -> Request:
    """Return the request that ``params`` make; ``Data`` is bytes. Raises ModelError as ``decode`` does."""
    try:
        return msgspec.convert(params, _KIND_OF[operation])
    except KeyError:
        raise _unknown(operation) from None
    except msgspec.ValidationError as error:
        raise _refused(error) from None


def decode(operation: str, body: bytes) -> Request:
    """Return the request in a JSON body.

    Raises:
        ModelError: UnknownOperationException, SerializationException (not JSON, or a type of the API's model is not
            kept) or ValidationException (something needed is missing, or a limit of the model is not kept).
    """
    try:
        return _DECODER_OF[operation].decode(body)
    except KeyError:
        raise _unknown(operation) from None
    except msgspec.ValidationError as error:
        raise _refused(error) from None
    except UNREADABLE as error:
        raise unreadable(error) from None


UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a body that is no JSON ends in, or one that is nested too deep."""


def unreadable(error: Exception) -> ModelError:
    """Return what AWS answers to such a body."""
    return ModelError("SerializationException", str(error))


def _unknown(operation: str) -> ModelError:
    return ModelError("UnknownOperationException", f"the local Kinesis has no operation {operation!r}")


def _refused(error: msgspec.ValidationError) -> ModelError:
    if _WRONG_TYPE.match(str(error)):
        return unreadable(error)
    return ModelError("ValidationException", f"1 validation error detected: {error}")
