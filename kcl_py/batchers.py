"""Batchers: where ``process`` can give records away to, and what ``handle_batch`` receives of them.

For writes that are cheaper together: an object of S3, a bulk insert, a call with up to 500 entries.
"""

from collections.abc import Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kcl_py.errors import ProcessorError
from kcl_py.outcomes import LONGEST_S, ToBatch
from kcl_py.records import Record

Trigger = Literal["size", "bytes", "age", "flush", "keys", "drain", "end"]
"""Why a batch was closed: it has ``max_records`` or ``max_bytes``, its oldest record has waited for ``max_age_s``, a
record said ``flush``, ``max_keys`` batches were open, the worker stops or hands the shard over, or the shard has
ended."""


@dataclass(frozen=True, slots=True)
class Batcher:
    """How the records of one batcher are put together: a batch is closed by whichever limit it comes to first.

    Raises:
        ValueError: a limit is not what it has to be.
    """

    max_records: int = 100
    """Most records of a batch; more than ``delivery.max_ahead.records`` is the same as that many."""
    max_bytes: int = 4_194_304
    """Most bytes of a batch, by what ``ToBatch`` says; a record that is larger is a batch of its own."""
    max_age_s: float = 1.0
    """How long its first record waits for others, in seconds. The checkpoint of the shard waits, too."""
    concurrency: int = 1
    """Most batches of the shard in ``handle_batch`` at a time; those of one key come one after the other all the same.
    """
    max_keys: int = 1000
    """Most keys with a batch that is not closed; one more closes the oldest."""

    def __post_init__(self) -> None:
        for name in ("max_records", "max_bytes", "concurrency", "max_keys"):
            number = getattr(self, name)
            if not isinstance(number, int) or isinstance(number, bool) or number < 1:
                raise ValueError(f"cannot use {name} of a Batcher: expected a whole number above 0, found {number!r}")
        age_s: object = self.max_age_s
        if not isinstance(age_s, int | float) or isinstance(age_s, bool) or not 0 < age_s <= LONGEST_S:
            raise ValueError(
                f"cannot use max_age_s of a Batcher: expected seconds above 0, at most {LONGEST_S:g}, since the "
                f"checkpoint of the shard waits as long, found {age_s!r}"
            )


@dataclass(frozen=True, slots=True)
class Batched:
    """Records of one batcher and one key, in the order in which ``process`` gave them away: at least one."""

    batcher: str
    key: Hashable
    items: list[tuple[Record, Any]]
    """Each with its ``ToBatch.value``. A list of the processor's own."""
    trigger: Trigger
    """Of what comes again: that of the first attempt."""

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[tuple[Record, Any]]:
        return iter(self.items)


def unknown_batcher(to: ToBatch, batchers: Collection[str]) -> ProcessorError | None:
    """Say what is wrong with the name that a record was given away to."""
    if to.batcher in batchers:
        return None
    return ProcessorError(
        f"cannot use what process returned: expected one of the processor's batchers ({', '.join(batchers) or 'none'})"
        f", found {to.batcher!r}"
    )


def batcher_faults(batchers: object, *, own_hooks: list[str]) -> list[str]:
    """Say what is wrong with ``batchers`` of a class that overrides these hooks: ``expected X, found Y`` for each."""
    if not isinstance(batchers, Mapping):
        return [f"expected batchers to be a mapping of names to Batcher, found {type(batchers).__name__}"]
    faults = [
        f"expected batchers to be a mapping of names to Batcher, found {name!r}: {type(batcher).__name__}"
        for name, batcher in batchers.items()
        if not (isinstance(name, str) and isinstance(batcher, Batcher))
    ]
    if batchers and "handle_batch" not in own_hooks:
        faults.append("expected handle_batch to be overridden beside batchers, found only those")
    if not batchers and "handle_batch" in own_hooks:
        faults.append('expected batchers beside handle_batch, found none; declare them: batchers = {"name": Batcher()}')
    if batchers and "process_records" in own_hooks:
        faults.append("expected process beside batchers, found process_records; only process can give records to them")
    return faults
