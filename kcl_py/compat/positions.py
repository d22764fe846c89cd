"""Which checkpoint amazon_kclpy's ``checkpoint`` asks for, by Java's rules. Pure.

Source: the daemon's answers in tests/kcl_py/compat/samples, and Java's rule that a checkpoint is between the last one
and the last record that was handed over.
"""

from bisect import bisect_right
from collections.abc import Sequence

from kcl_py.errors import CheckpointFailedError, KclError, LeaseLostError, PositionError
from kcl_py.records import Record, SequenceNumber, is_number

ILLEGAL = "IllegalArgumentException"
"""What the daemon calls a position that cannot be checkpointed."""


def asked_for(
    sequence_number: object, sub_sequence_number: object, last: SequenceNumber | None, newest: SequenceNumber | None
) -> SequenceNumber | None:
    """Return the position that is asked for; None if it is none that can be.

    Args:
        sequence_number: as the processor gives it: digits, or an int.
        sub_sequence_number: of a record in an aggregate; None: 0.
        last: the last checkpoint.
        newest: the last record that was handed over.
    """
    text, sub = str(sequence_number), 0 if sub_sequence_number is None else sub_sequence_number
    if not is_number(text) or not isinstance(sub, int) or sub < 0:
        return None
    position = SequenceNumber(int(text), sub)
    is_new = newest is not None and position <= newest
    return position if is_new and (last is None or position >= last) else None


def record_at(position: SequenceNumber, in_hand: Sequence[Record], finished: SequenceNumber | None) -> Record | None:
    """Return the last record up to ``position``, which need not be one's own: of those in hand, or finished before.

    Of what was finished before only the place is known, so that is all that the returned record has.
    """
    if place := bisect_right(in_hand, position, key=lambda record: record.position):
        return in_hand[place - 1]
    if finished is None:
        return None
    at = min(position, finished)
    return Record(str(at), b"", "", sub_sequence_number=at.sub)


def java_name(error: KclError) -> str:
    """Return the class of Java's exception that means the same."""
    match error:
        case LeaseLostError():
            return "ShutdownException"
        case CheckpointFailedError():
            return "KinesisClientLibDependencyException"
        case PositionError():
            return ILLEGAL
        case _:
            return "InvalidStateException"
