"""Where a new shard iterator points. Pure; positions are indices into a shard's records."""

from kcl_py.local import requests as ask
from kcl_py.local.errors import ModelError, invalid
from kcl_py.local.sequence import LAST_ORDINAL, parse
from kcl_py.local.shard import Shard
from kcl_py.local.stream import ACCOUNT

_BY_NUMBER = ("AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER")


def start_position(shard: Shard, request: ask.GetShardIterator, *, stream: str, now_s: float) -> int:
    """Return the position that ``request`` asks for in ``shard`` of ``stream``.

    Raises:
        ModelError: InvalidArgumentException for an argument that the type does not take or lacks, for a timestamp
            after ``now_s``, and for a sequence number that this shard never gave.
    """
    kind = request.shard_iterator_type
    _check_arguments(request)
    if kind == "TRIM_HORIZON":
        return 0
    if kind == "LATEST":
        return len(shard.records)
    if request.timestamp is not None:
        if request.timestamp > now_s:
            raise invalid("The timestampInMillis parameter cannot be greater than the currentTimestampInMillis")
        return shard.position_at(request.timestamp)
    ordinal = _ordinal_of(shard, request.starting_sequence_number or "", stream=stream)
    return min(ordinal if kind == "AFTER_SEQUENCE_NUMBER" else max(ordinal - 1, 0), len(shard.records))


def _check_arguments(request: ask.GetShardIterator) -> None:
    kind = request.shard_iterator_type
    if (kind in _BY_NUMBER) != (request.starting_sequence_number is not None):
        raise invalid(
            "Must either specify (1) AT_SEQUENCE_NUMBER or AFTER_SEQUENCE_NUMBER and StartingSequenceNumber or (2) "
            f"another type and no StartingSequenceNumber. Request specified {kind}."
        )
    if (kind == "AT_TIMESTAMP") != (request.timestamp is not None):
        raise invalid(f"Timestamp belongs to AT_TIMESTAMP, and only to it. Request specified {kind}.")


def _ordinal_of(shard: Shard, text: str, *, stream: str) -> int:
    parts = parse(text)
    if parts is not None and parts.shard != shard.index:
        raise invalid(
            f"Invalid StartingSequenceNumber. It encodes shardId-{parts.shard:012d}, while it was used in a call to a "
            f"shard with {shard.shard_id}"
        )
    if parts is None or parts.epoch_s != shard.epoch_s or not _was_given(shard, parts.ordinal):
        raise _foreign(shard, text, stream=stream)
    return parts.ordinal


def _was_given(shard: Shard, ordinal: int) -> bool:
    return ordinal <= len(shard.records) or (ordinal == LAST_ORDINAL and shard.closed_s is not None)


def _foreign(shard: Shard, text: str, *, stream: str) -> ModelError:
    return invalid(
        f"StartingSequenceNumber {text} used in GetShardIterator on shard {shard.shard_id} in stream {stream} under "
        f"account {ACCOUNT} is invalid because it did not come from this stream."
    )
