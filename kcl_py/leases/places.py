"""Where somebody wants a reading to go on: read from text, and looked at beside what the stream has."""

from datetime import datetime

from kcl_py.errors import ConfigError, KclError, MissingError, RejectedError
from kcl_py.option_types import parse_start
from kcl_py.printable import instant
from kcl_py.records import SequenceNumber, is_number
from kcl_py.sources.source import Position, PositionKind, Source

DATE_MS = 1000
"""So much later than AWS says it may be already: it tells whole seconds."""


def parse_place(to: str | datetime | SequenceNumber) -> Position | SequenceNumber:
    """Read what ``parse_position`` does, or the sequence number of the last record that counts as finished."""
    if isinstance(to, SequenceNumber):
        return to
    return SequenceNumber(int(to)) if isinstance(to, str) and is_number(to) else parse_position(to)


def parse_position(to: str | datetime) -> Position:
    """Read ``trim_horizon``, ``latest``, or a time with its zone; raises ``ConfigError``."""
    try:
        return parse_start(to)
    except ValueError:
        raise ConfigError(
            f"cannot begin at {str(to)!r}: expected trim_horizon, latest, an ISO-8601 time with its zone such as "
            "2026-01-31T09:00:00Z, or for one shard a sequence number"
        ) from None


async def service_ms(source: Source, place: Position | SequenceNumber) -> int:
    """Return the service's time; raises ``ConfigError`` if ``place`` is a time to come, where AWS begins no reading."""
    now_ms = int((await source.describe()).server_time_s * 1000)
    if isinstance(place, Position) and place.value >= now_ms + DATE_MS:
        raise ConfigError(
            f"cannot begin at a time to come: expected one before AWS's {instant(now_ms)}, found {instant(place.value)}"
        )
    return now_ms


async def find(source: Source, shard: str, place: Position | SequenceNumber) -> None:
    """Make sure that AWS can read on after ``place``, if it is a number: no worker could, else."""
    if not isinstance(place, SequenceNumber):
        return
    try:
        await source.open(shard, Position(PositionKind.AFTER, place.value))
    except (MissingError, RejectedError) as error:
        raise KclError(
            f"cannot move {shard!r} after {place}: expected a number of that shard, found {error.code}: {error.detail}"
        ) from error
