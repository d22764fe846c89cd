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

Name = Annotated[str, Meta(min_length=1, max_length=128, pattern="^[a-zA-Z0-9_.-]+$")]
Arn = Annotated[str, Meta(min_length=1, max_length=2048)]
HashKey = Annotated[str, Meta(pattern="^(0|[1-9][0-9]{0,38})$")]
SequenceText = Annotated[str, Meta(pattern="^(0|[1-9][0-9]{0,128})$")]
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


class DeleteStream(StreamRequest, frozen=True, kw_only=True):
    """Takes effect after the model's delay."""


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


_KINDS: tuple[type[Request], ...] = (
    CreateStream,
    DeleteStream,
    DescribeStream,
    DescribeStreamSummary,
    ListStreams,
    ListShards,
    PutRecord,
    PutRecords,
    GetShardIterator,
    GetRecords,
    SplitShard,
    MergeShards,
)
_WRONG_TYPE = re.compile(r"Expected `[^`]+`, got `(?!null` - at)|Invalid base64|Number out of range")
"""How msgspec words that a value is of another type; a null in an object counts as missing."""
_KIND_OF = {kind.__name__: kind for kind in _KINDS}
_DECODER_OF = {kind.__name__: msgspec.json.Decoder(kind) for kind in _KINDS}


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
