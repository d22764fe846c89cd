"""Sequence numbers: 56 digits that say which shard made them, when, and in which order. Pure.

The layout is the one that AWS uses today (its version 2), in hexadecimal digits from the top: ``2``, 9 of the shard's
opening second, 1 of the shard's index, 16 of the record's ordinal, 2 unused, 9 of the record's second, 8 of the shard's
index, ``2``. So numbers of a shard grow and jump, and a shard opened in a later second has greater ones.

Source: the shape that kinesalite found, and the Java client's SequenceNumberValidator.
"""

from typing import NamedTuple

_VERSION = 2
_SHARD_BIT, _TIME_BIT, _ORDINAL_BIT, _NIBBLE_BIT, _EPOCH_BIT, _TOP_BIT = 4, 36, 80, 144, 148, 184
_SHARD_MASK, _TIME_MASK, _ORDINAL_MASK = (1 << 32) - 1, (1 << 36) - 1, (1 << 64) - 1

LAST_ORDINAL = (1 << 63) - 1
"""Ordinal of the number that ends a closed shard; no record has it."""


class Parts(NamedTuple):
    """What a sequence number says."""

    epoch_s: int
    """The second in which its shard was opened."""
    shard: int
    """The number in its shard's id."""
    ordinal: int
    """1 for the shard's first record; 0 is the number that the shard starts with."""
    time_s: int
    """The second of the record."""


def compose(parts: Parts) -> int:
    """Return the number that says ``parts``."""
    return (
        (_VERSION << _TOP_BIT)
        + (parts.epoch_s << _EPOCH_BIT)
        + ((parts.shard & 0xF) << _NIBBLE_BIT)
        + (parts.ordinal << _ORDINAL_BIT)
        + (parts.time_s << _TIME_BIT)
        + (parts.shard << _SHARD_BIT)
        + _VERSION
    )


def step(ordinal: int, time_s: int) -> int:
    """Return what to add to a shard's first number (composed for second 0) for a record: the quick way in a loop."""
    return (ordinal << _ORDINAL_BIT) + (time_s << _TIME_BIT)


def parse(text: str) -> Parts | None:
    """Return what the digits ``text`` say, or None if no shard ever made such a number."""
    number = int(text)
    parts = Parts(
        epoch_s=(number >> _EPOCH_BIT) & _TIME_MASK,
        shard=(number >> _SHARD_BIT) & _SHARD_MASK,
        ordinal=(number >> _ORDINAL_BIT) & _ORDINAL_MASK,
        time_s=(number >> _TIME_BIT) & _TIME_MASK,
    )
    return parts if compose(parts) == number else None
