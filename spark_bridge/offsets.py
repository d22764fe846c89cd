"""Spark's offset for a stream: how far each shard has been read, as JSON that Spark's checkpoint keeps.

``{"v": 1, "s": {"<shard>": "<mark>"}}``, keys sorted, because Spark compares offsets as text. A mark is the last
sequence number read (``"<digits>"``, with ``":<sub>"`` inside an aggregated record), ``"END"`` once a closed shard is
read to its end, or ``"@<ms>"`` while nothing was read: the Unix millisecond at which reading begins, resolved once.
A shard that an offset does not name begins at its beginning. Pure: no I/O, no clock, no Spark.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Self

from kcl_py.errors import KclError
from kcl_py.records import SequenceNumber

VERSION = 1
_MARK = re.compile(r"@(?P<ms>\d{1,15})|(?P<value>\d{1,128})(?::(?P<sub>\d{1,10}))?")
_END = "END"


class OffsetError(KclError):
    """An offset of Spark's checkpoint cannot be used."""


class Reach(IntEnum):
    """The three things a mark can say, in the order in which a shard passes through them."""

    SINCE = 0
    AFTER = 1
    END = 2


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """How far a shard has been read; ordered as reading proceeds."""

    reach: Reach
    value: int = 0
    """Unix milliseconds for SINCE, the sequence number for AFTER."""
    sub: int = 0

    @classmethod
    def after(cls, position: SequenceNumber) -> Self:
        """Return the mark that a shard has once the record at ``position`` is read."""
        return cls(Reach.AFTER, position.value, position.sub)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a mark; raises ``ValueError`` if it is none."""
        if text == _END:
            return cls(Reach.END)
        match = _MARK.fullmatch(text)
        if match is None:
            raise ValueError(text)
        if match["ms"] is not None:
            return cls(Reach.SINCE, int(match["ms"]))
        return cls(Reach.AFTER, int(match["value"]), int(match["sub"] or 0))

    def __str__(self) -> str:
        match self.reach:
            case Reach.SINCE:
                return f"@{self.value}"
            case Reach.AFTER:
                return f"{self.value}:{self.sub}" if self.sub else str(self.value)
            case Reach.END:
                return _END

    @property
    def has_ended(self) -> bool:
        return self.reach is Reach.END


BEGINNING = Mark(Reach.SINCE, 0)
END = Mark(Reach.END)


@dataclass(frozen=True, slots=True)
class Offset:
    """The marks of all shards that reading has come to."""

    marks: Mapping[str, Mark] = field(default_factory=dict)
    """By shard id, in sorted order."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "marks", dict(sorted(self.marks.items())))

    def __getitem__(self, shard_id: str) -> Mark:
        """Return the shard's mark; ``BEGINNING`` if it has none."""
        return self.marks.get(shard_id, BEGINNING)

    def __contains__(self, shard_id: str) -> bool:
        return shard_id in self.marks

    def __iter__(self) -> Iterator[str]:
        return iter(self.marks)

    @classmethod
    def parse(cls, raw: object) -> Self:
        """Read what ``to_json`` returned, after a round trip through JSON text.

        Raises:
            OffsetError: another version, or not an offset of this source.
        """
        if not isinstance(raw, Mapping) or raw.get("v") != VERSION or not isinstance(raw.get("s"), Mapping):
            found = repr(raw.get("v")) if isinstance(raw, Mapping) else type(raw).__name__
            raise OffsetError(
                f"cannot read the offset of Spark's checkpoint: expected version {VERSION} of the format 'kcl', "
                f"found {found}; use a checkpoint folder that this source wrote, or a new one"
            )
        return cls({shard_id: _parse(shard_id, text) for shard_id, text in raw["s"].items()})

    def to_json(self) -> dict[str, Any]:
        """Return a dict that ``json.dumps`` writes the same way each time."""
        return {"v": VERSION, "s": {shard_id: str(mark) for shard_id, mark in self.marks.items()}}


def check_forward(start: Offset, end: Offset) -> None:
    """Make sure that no shard goes back from ``start`` to ``end``; Spark itself would accept that silently.

    A shard may leave the offset only once it is at END.

    Raises:
        OffsetError: naming the first shard that goes back.
    """
    for shard_id in sorted({*start, *end}):
        here = start[shard_id]
        there = end.marks.get(shard_id)
        if not here.has_ended if there is None else there < here:
            raise goes_back(shard_id, here, there)


def goes_back(shard_id: str, here: Mark, there: Mark | None) -> OffsetError:
    """Return the error for a shard whose mark is to move from ``here`` back to ``there``."""
    return OffsetError(
        f"cannot move the offset of shard {shard_id!r}: expected {here} or later, found {there or 'nothing'}; "
        "the checkpoint folder may hold batches of another query"
    )


def _parse(shard_id: str, text: object) -> Mark:
    try:
        return Mark.parse(str(text))
    except ValueError:
        raise OffsetError(
            f"cannot read the offset of shard {shard_id!r}: expected a sequence number, '@<milliseconds>' or 'END', "
            f"found {text!r}; use a checkpoint folder that this source wrote, or a new one"
        ) from None
