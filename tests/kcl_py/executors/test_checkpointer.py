"""What a hook that is ``def`` can ask of its checkpointer, in a thread and in a child process."""

from collections.abc import Callable

import pytest

from kcl_py import OwnedShard, Record, RecordBatch, RecordProcessor
from kcl_py.effects import Put
from kcl_py.executors.process import in_children
from kcl_py.executors.thread import in_threads
from tests.kcl_py.executors.checkpointers import Heard
from tests.kcl_py.executors.processors import Careful

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
