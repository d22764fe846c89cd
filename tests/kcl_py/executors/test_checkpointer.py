"""What a hook that is ``def`` can ask of its checkpointer, in a thread and in a child process."""

from collections.abc import Callable

import anyio
import pytest

from kcl_py import Checkpointer, OwnedShard, Record, RecordBatch, RecordProcessor, processor
from kcl_py.effects import Put
from kcl_py.executors.frames import ChildError
from kcl_py.executors.process import in_children
from kcl_py.executors.thread import in_threads
from kcl_py.testing import run_processor
from tests.kcl_py.executors.checkpointers import Heard
from tests.kcl_py.executors.processors import Careful, Empties, Hears

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("made", [lambda: in_threads(Careful, 1)(), lambda: in_children(Careful)()])
async def test_all_that_a_checkpointer_can_do_is_done_by_the_one_in_the_worker(
    made: Callable[[], RecordProcessor],
) -> None:
    """In order, with what was given; results and errors come back."""
    processor, heard = made(), Heard()
    first, last = Record("1", b"", "key"), Record("2", b"", "key")
    await processor.initialize(OwnedShard("s", "shard-1", 1, None, ()))
    await processor.process_records(RecordBatch("s", "shard-1", [first, last], 0), heard)
    await processor.lease_lost()
    assert heard.calls == [
        ("checkpoint", None),
        ("prepare", first, None),
        ("prepare", first, b"half"),
        ("commit", b"half"),
        ("once", [Put("totals", {"id": "a", "n": 1})], last),
        ("once", [], last),
    ]


class AsyncEmpties(RecordProcessor):
    """As ``Empties``."""

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        batch.records.clear()
        await checkpointer.checkpoint(batch)


@processor
async def empties(payloads: list[int], batch: RecordBatch, checkpointer: Checkpointer) -> None:
    """Do as ``Empties``, with what can be decoded."""
    batch.records.clear()
    await checkpointer.checkpoint(batch)


@pytest.mark.parametrize(
    ("kind", "executor"), [(AsyncEmpties, None), (empties, None), (Empties, "thread"), (Empties, "process")]
)
@pytest.mark.parametrize("records", [["1", "2", "3"], ["1", "2", "bad"]])
async def test_batch_counts_to_its_end_though_its_list_was_emptied(
    kind: type[RecordProcessor], executor: str | None, records: list[str]
) -> None:
    """The list is the processor's own; where the batch ends is not."""
    options = {"delivery": {"executor": executor, "on_failure": "skip"}, "checkpoint": {"mode": "manual"}}
    run = await run_processor(kind, records, options=options)
    assert [call.error for call in run.calls if call.error is not None] == []
    wanted = records[:2] if kind is empties and "bad" in records else records
    assert run.acknowledged == [data.encode() for data in wanted]


class LocalError(Exception):
    """Has pickle make one without its text, which it cannot be made without."""

    def __init__(self, text: str, *, why: str) -> None:
        super().__init__(text)
        self.why = why


class Refusing(Heard):
    """Can store nothing."""

    async def checkpoint(self, at: Record | RecordBatch | None = None) -> None:
        await super().checkpoint(at)
        raise LocalError("no room", why="full")


async def test_error_that_cannot_be_sent_to_a_child_is_raised_there_by_its_words() -> None:
    """The hook must not wait for it for ever."""
    processor, batch = in_children(Hears)(), RecordBatch("s", "shard-1", [Record("1", b"", "key")], 0)
    await processor.initialize(OwnedShard("s", "shard-1", 1, None, ()))
    for _ in range(2):
        with anyio.fail_after(30), pytest.raises(ChildError, match=r"^LocalError: no room") as raised:
            await processor.process_records(batch, Refusing())
        assert type(raised.value).__name__ == "KclError"
    await processor.lease_lost()
