"""What values of options look like: types with their patterns, conversions and words for people."""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator

from kcl_py.sources.source import LATEST, TRIM_HORIZON, Position, PositionKind

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NAME = r"[a-zA-Z0-9_.-]"
TABLE = f"{NAME}{{3,255}}"
STREAM = rf"{NAME}{{1,128}}|arn:aws[a-z-]*:kinesis:[a-z0-9-]+:\d{{12}}:stream/{NAME}{{1,128}}"
_QUEUE = r"https?://[^\s/@?#]+/\d{12}/[a-zA-Z0-9_-]{1,80}(\.fifo)?"
_BUCKET = r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[a-zA-Z0-9!_.*'()/=-]{0,300})?"
"""Source: the rules for names of buckets, and the characters that are safe in keys, in the user guide of S3."""
_DEAD_LETTER = rf"kinesis:({STREAM})|sqs:{_QUEUE}|s3://{_BUCKET}|file:[^\x00]*[^\x00/]"
DOTTED = r"[^\W\d]\w*(\.[^\W\d]\w*)*"


def parse_start(value: object) -> Position:
    """Convert ``trim_horizon``, ``latest``, an ISO-8601 text with its zone or an aware datetime.

    Raises:
        ValueError: anything else, so also a bare date, a time without zone and an epoch number.
    """
    if isinstance(value, Position):
        return value
    if isinstance(value, str):
        named = {"trim_horizon": TRIM_HORIZON, "latest": LATEST}.get(value.lower())
        if named is not None:
            return named
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        try:
            value = value.astimezone(UTC)
        except OverflowError:
            raise ValueError(value) from None
    if not isinstance(value, datetime) or value.tzinfo is None or value < _EPOCH:
        raise ValueError(value)
    return Position(PositionKind.AT_TIMESTAMP, (value - _EPOCH) // timedelta(milliseconds=1))


def _parse_tags(value: object) -> object:
    if not isinstance(value, str):
        return value
    pairs = [part.partition("=") for part in value.split(",") if part]
    return {name.strip(): text.strip() for name, equals, text in pairs} if all(pair[1] for pair in pairs) else value


def lower(value: object) -> object:
    """Return a text in small letters, and anything else as it is."""
    return value.lower() if isinstance(value, str) else value


def matches(pattern: str) -> AfterValidator:
    """Return the check that the whole of a text matches a pattern."""

    def check(value: str) -> str:
        if re.fullmatch(pattern, value) is None:
            raise ValueError(pattern)
        return value

    return AfterValidator(check)


class Text:
    """What a text must look like, in words for people; carried beside the pattern in an option's type."""

    def __init__(self, words: str) -> None:
        self.words = words


TableName = Annotated[str, matches(TABLE), Text("a table name (3 to 255 of a-z A-Z 0-9 _ . -)")]
Start = Annotated[
    Position,
    PlainValidator(parse_start),
    Text("trim_horizon, latest or an ISO-8601 time with its zone, such as 2026-01-31T09:00:00Z"),
]
Endpoint = Annotated[str, matches(r"https?://[^\s/@]+/?"), Text("http(s)://host[:port] without user or path")]
Tags = Annotated[
    dict[Annotated[str, Field(min_length=1, max_length=128)], Annotated[str, Field(max_length=256)]],
    BeforeValidator(_parse_tags),
    Field(max_length=50),
    Text("a mapping of at most 50 names to values"),
]
"""Source of the limits: DynamoDB, tagging restrictions."""
DeadLetterAddress = Annotated[
    str,
    matches(_DEAD_LETTER),
    Text("kinesis:STREAM (its name or ARN), sqs:QUEUE-URL, s3://BUCKET/PREFIX or file:PATH"),
]
Positive = Annotated[int, Field(ge=1)]
Seconds = Annotated[float, Field(gt=0)]
