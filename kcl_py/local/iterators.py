"""Where a new shard iterator or subscription begins. Pure; positions are those of a shard's records.

What was trimmed is passed over: a number from before the horizon begins at the horizon.
"""

from kcl_py.local.errors import ModelError, invalid
from kcl_py.local.sequence import LAST_ORDINAL, parse
from kcl_py.local.shard import Shard
from kcl_py.local.stream import ACCOUNT

_BY_NUMBER = ("AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER")


def start_position(
    shard: Shard, kind: str, *, number: str | None, time_s: float | None, stream: str, now_s: float
) -> int:
    """Return the position in ``shard`` of ``stream`` that an iterator or subscription of type ``kind`` begins at.

    Raises:
        ModelError: InvalidArgumentException for an argument that the type does not take or lacks, for a timestamp
            after ``now_s``, and for a sequence number that this shard never gave.
    """
    _check_arguments(kind, number, time_s)
    if kind == "TRIM_HORIZON":
        return shard.start
    if kind == "LATEST":
        return shard.end
    if time_s is not None:
        if time_s > now_s:
            raise invalid("The timestampInMillis parameter cannot be greater than the currentTimestampInMillis")
        return shard.position_at(time_s)
    ordinal = _ordinal_of(shard, number or "", stream=stream)
    if kind == "AT_SEQUENCE_NUMBER":
        return shard.position_of(ordinal, number or "")
    return min(max(ordinal, shard.start), shard.end)


def _check_arguments(kind: str, number: str | None, time_s: float | None) -> None:
    if (kind in _BY_NUMBER) != (number is not None):
        raise invalid(
            "Must either specify (1) AT_SEQUENCE_NUMBER or AFTER_SEQUENCE_NUMBER and StartingSequenceNumber or (2) "
            f"another type and no StartingSequenceNumber. Request specified {kind}."
        )
    if (kind == "AT_TIMESTAMP") != (time_s is not None):
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
    return ordinal <= shard.end or (ordinal == LAST_ORDINAL and shard.closed_s is not None)


def _foreign(shard: Shard, text: str, *, stream: str) -> ModelError:
    return invalid(
        f"StartingSequenceNumber {text} used in GetShardIterator on shard {shard.shard_id} in stream {stream} under "
        f"account {ACCOUNT} is invalid because it did not come from this stream."
    )
