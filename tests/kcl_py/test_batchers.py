"""What a processor says of its batchers: what is accepted, and the sentence for everything else."""

from typing import Any, ClassVar

import pytest

from kcl_py import Batched, Batcher, Record, RecordProcessor, ToBatch
from kcl_py.acceptance import processor_faults
from kcl_py.outcomes import RecordOutcome


class Good(RecordProcessor):
    """Has nothing wrong with it."""

    batchers: ClassVar = {"s3": Batcher(max_records=500, max_bytes=1_000_000, max_age_s=2, concurrency=4, max_keys=10)}

    async def process(self, record: Record) -> RecordOutcome:
        return ToBatch("s3", value=record.data, key=("a", 1))

    async def handle_batch(self, batch: Batched) -> None: ...


class NoHook(RecordProcessor):
    """Lacks where batches go."""

    batchers: ClassVar = {"s3": Batcher()}

    async def process(self, record: Record) -> RecordOutcome:
        return ToBatch("s3")


class NoBatchers(RecordProcessor):
    """Lacks where they come from."""

    async def process(self, record: Record) -> RecordOutcome: ...

    async def handle_batch(self, batch: Batched) -> None: ...


class InBatches(RecordProcessor):
    """Has nobody who could give anything to a batcher."""

    batchers: ClassVar = {"s3": Batcher()}

    async def process_records(self, batch: Any, checkpointer: Any) -> None: ...

    async def handle_batch(self, batch: Batched) -> None: ...


class Listed(Good):
    """Names none."""

    batchers: ClassVar[Any] = [Batcher()]


class Sized(Good):
    """Says less than it should."""

    batchers: ClassVar[Any] = {"s3": 500}


class Misspelt(RecordProcessor):
    """Has the hook under another name."""

    batchers: ClassVar = {"s3": Batcher()}

    async def process(self, record: Record) -> RecordOutcome: ...

    async def handle_batches(self, batch: Batched) -> None: ...


class Synchronous(Good):
    """Blocks."""

    def handle_batch(self, batch: Batched) -> None:  # type: ignore[override]
        ...


def test_processor_with_batchers_is_accepted() -> None:
    """And one without them may call its own methods what it likes."""

    class Other(RecordProcessor):
        async def process(self, record: Record) -> None: ...

        async def handle_batches(self, batch: list[Record]) -> None: ...

    assert processor_faults(Good) == processor_faults(Other) == []


@pytest.mark.parametrize(
    ("processor", "fault"),
    [
        (NoHook, "expected handle_batch to be overridden beside batchers, found only those"),
        (NoBatchers, 'expected batchers beside handle_batch, found none; declare them: batchers = {"name": Batcher()}'),
        (
            InBatches,
            "expected process beside batchers, found process_records; only process can give records to them",
        ),
        (Listed, "expected batchers to be a mapping of names to Batcher, found list"),
        (Sized, "expected batchers to be a mapping of names to Batcher, found 's3': int"),
        (Misspelt, "expected a hook of RecordProcessor, found 'handle_batches'; did you mean handle_batch?"),
        (
            Synchronous,
            "expected `async def handle_batch`, found `def`; "
            "set delivery.executor to thread or process if it is to run off the event loop",
        ),
    ],
)
def test_batchers_that_cannot_be_used_are_named(processor: type[RecordProcessor], fault: str) -> None:
    """Each by one sentence, which ``kcl check`` prints."""
    assert processor_faults(processor) == [fault]


@pytest.mark.parametrize(
    ("limits", "fault"),
    [
        ({"max_records": 0}, "max_records of a Batcher: expected a whole number above 0, found 0"),
        ({"max_bytes": 1.5}, "max_bytes of a Batcher: expected a whole number above 0, found 1.5"),
        ({"concurrency": True}, "concurrency of a Batcher: expected a whole number above 0, found True"),
        ({"max_keys": None}, "max_keys of a Batcher: expected a whole number above 0, found None"),
        (
            {"max_age_s": 901},
            "max_age_s of a Batcher: expected seconds above 0, at most 900, since the checkpoint of the shard waits as "
            "long, found 901",
        ),
    ],
)
def test_limit_that_cannot_be_is_refused_where_it_is_written(limits: dict[str, Any], fault: str) -> None:
    """So the processor's module does not import, and ``kcl check`` says why."""
    with pytest.raises(ValueError, match="cannot use") as caught:
        Batcher(**limits)
    assert str(caught.value) == f"cannot use {fault}"


def test_key_that_cannot_be_looked_up_is_refused() -> None:
    """In ``process``, so it is the record's failure."""
    with pytest.raises(ValueError, match=r"cannot give a record to batcher 's3' under this key: .* found list"):
        ToBatch("s3", key=["a"])  # type: ignore[arg-type]
