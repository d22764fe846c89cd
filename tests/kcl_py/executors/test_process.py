"""Hooks in child processes: where they run, what comes back, and how children end."""

import asyncio
import os
from pathlib import Path

import anyio
import pytest

from kcl_py import OwnedShard, ProcessorError, Record, RecordBatch, RecordProcessor
from kcl_py.executors.process import Isolated, in_children
from kcl_py.testing import Run, run_processor
from tests.kcl_py.executors.checkpointers import Heard
from tests.kcl_py.executors.processors import Diary, Lanes

pytestmark = pytest.mark.asyncio
CHILDREN = {"delivery": {"executor": "process"}}


@pytest.fixture
def diary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file into which the children write."""
    path = tmp_path / "diary"
    monkeypatch.setenv("DIARY", str(path))
    return path


def lines(diary: Path) -> list[str]:
    """What they wrote, each process by a letter in the order of their first lines."""
    written = [line.split(" ", 1) for line in diary.read_text("utf-8").splitlines()]
    pids = list(dict.fromkeys(pid for pid, _ in written))
    return [f"{'ABCDEF'[pids.index(pid)]} {what}" for pid, what in written]


def child_of(diary: Path) -> int:
    """The process that has written first."""
    return int(diary.read_text("utf-8").split()[0])


def is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def errors(run: Run[Diary]) -> list[str]:
    return [f"{type(call.error).__name__}: {call.error}" for call in run.calls if call.error is not None]


async def test_one_child_serves_an_ownership_and_keeps_its_state(diary: Path) -> None:
    """Its instance counts the batches; the last hook ends it."""
    run = await run_processor(Diary, ["a", "b", "c"], batch_size=1, options=CHILDREN)
    assert lines(diary) == ["A initialize", "A 1 a 1", "A 2 b 1", "A 3 c 1", "A shutdown_requested"]
    assert run.outcome is not None
    assert run.outcome.is_clean


async def test_child_hears_of_the_end_of_its_shard(diary: Path) -> None:
    """And another shard has another child, here the two that follow."""
    await run_processor(Diary, ["a"], end_shards=True, options=CHILDREN)
    assert lines(diary)[:3] == ["A initialize", "A 1 a 1", "A shard_ended"]


async def test_child_hears_of_a_lost_lease(diary: Path) -> None:
    """As the last that it does."""
    await run_processor(Diary, ["a", "b"], batch_size=1, lose_lease_at="b", options=CHILDREN)
    assert lines(diary)[-1] == "A lease_lost"


async def test_exception_comes_back_with_class_and_text_and_the_state_is_kept(diary: Path) -> None:
    """A hook that raises is a failed attempt, as on the event loop, and not the end of the child."""
    run = await run_processor(Diary, ["raise"], options=CHILDREN)
    assert errors(run) == ["LookupError: nothing of that name"]
    assert lines(diary) == ["A initialize", "A 1 raise 1", "A 2 raise 2", "A shutdown_requested"]


@pytest.mark.parametrize(("how", "found"), [("os._exit", "ended with exit code 7"), ("kill", "killed by SIGKILL")])
async def test_child_that_dies_is_a_failed_attempt_and_the_next_has_a_new_one(
    diary: Path, how: str, found: str
) -> None:
    """With a reason that says how it ended, and a new instance that is initialised first."""
    run = await run_processor(Diary, [how], options=CHILDREN)
    [error] = errors(run)
    assert error.startswith("ChildEndedError: cannot finish process_records of 'shardId-000000000000': ")
    assert f"found it {found}; the next attempt has a new one" in error
    assert lines(diary) == ["A initialize", f"A 1 {how} 1", "B initialize", f"B 1 {how} 2", "B shutdown_requested"]


async def test_hook_cannot_exit_the_worker_from_its_child(diary: Path) -> None:
    """``sys.exit`` is a mistake like any other."""
    run = await run_processor(Diary, ["exit"], options=CHILDREN)
    assert run.outcome is not None
    assert lines(diary)[1:3] == ["A 1 exit 1", "A 2 exit 2"]


async def test_signals_to_the_group_do_not_end_a_batch(diary: Path) -> None:
    """Ctrl-C and some supervisors signal all processes at once: the worker is the one to stop them in order."""
    run = await run_processor(Diary, ["ignore signals"], options=CHILDREN)
    assert errors(run) == []


async def test_checkpointer_of_a_child_stores_before_it_returns(diary: Path) -> None:
    """By record and by batch."""
    run = await run_processor(Diary, ["checkpoint"], options=CHILDREN | {"checkpoint": {"mode": "manual"}})
    assert "A stored" in lines(diary)
    assert set(run.checkpoints.values()) == {run.records["shardId-000000000000"][0].sequence_number}


async def test_checkpointing_what_is_no_record_raises_in_the_child(diary: Path) -> None:
    """The same error as without a child, though the thing could not be sent to the worker."""
    run = await run_processor(Diary, ["checkpoint nonsense"], options=CHILDREN)
    assert errors(run)[0].startswith("PositionError: cannot checkpoint lock: expected a record or batch")


async def test_verdicts_of_single_records_come_back(diary: Path) -> None:
    """The good ones count; what is rejected is not tried again."""
    options = {"delivery": {"executor": "process", "on_failure": "skip"}}
    await run_processor(Diary, ["return a mapping", "two", "three", "four"], options=options)
    assert sorted(line for line in lines(diary) if line.endswith(" 2")) == [
        "A 2 return a mapping 2",
        "A 2 two 2",
    ]


async def test_outcome_that_does_not_pickle_is_one_clear_error(diary: Path) -> None:
    """It says which hook, and what pickle said."""
    run = await run_processor(Diary, ["return a lock"], options=CHILDREN)
    [error] = errors(run)
    assert error.startswith(
        "KclError: cannot hand what process_records returned to the worker: expected something that can be pickled, "
        "found TypeError: cannot pickle '_thread.lock' object"
    )


async def test_records_of_different_keys_are_in_work_at_the_same_time(diary: Path) -> None:
    """Each call of ``process`` has a thread of the child."""
    processor = in_children(Lanes)()
    await processor.initialize(OwnedShard("s", "shard-1", 1, None, ()))
    async with anyio.create_task_group() as tasks:
        for number in (1, 2):
            tasks.start_soon(processor.process, Record(str(number), b"%d" % number, f"key-{number}"))
    await processor.lease_lost()
    assert sorted(line[2:] for line in lines(diary)) == ["1", "2"]


async def test_cancelled_hook_takes_its_child_with_it(diary: Path) -> None:
    """It is gone when the cancellation is through, though its hook blocks, and hears of nothing any more."""
    processor, checkpointer = in_children(Diary)(), Heard()
    await processor.initialize(OwnedShard("s", "shard-1", 1, None, ()))
    batch = RecordBatch("s", "shard-1", [Record("1", b"block", "key")], 0)
    hook = asyncio.create_task(processor.process_records(batch, checkpointer))
    await checkpointer.called.wait()
    hook.cancel()
    await asyncio.wait([hook])
    assert hook.cancelled()
    assert not is_there(child_of(diary))
    await processor.lease_lost()
    assert lines(diary) == ["A initialize", "A 1 block 1"]


async def test_child_ends_with_what_stands_for_it(diary: Path) -> None:
    """Also where no hook says that the ownership is over, as when its Shard fails."""
    processor = in_children(Diary)()
    await processor.initialize(OwnedShard("s", "shard-1", 1, None, ()))
    assert isinstance(processor, Isolated)
    child = processor._child
    assert child is not None
    del processor
    await child._process.wait()
    assert not is_there(child_of(diary))


async def test_class_that_a_child_cannot_import_is_refused_at_the_start() -> None:
    """Before any lease is taken, with what to do."""

    class Local(RecordProcessor):
        def process_records(self, batch: object, checkpointer: object) -> None:  # type: ignore[override]
            raise AssertionError

    with pytest.raises(ProcessorError, match=r"expected a class that can be imported by its name.*at its top level"):
        await run_processor(Local, ["a"], options=CHILDREN)


async def test_async_hook_is_refused_with_process() -> None:
    """There is no event loop in a child."""

    class Asynchronous(RecordProcessor):
        async def process_records(self, batch: object, checkpointer: object) -> None:
            raise AssertionError

    with pytest.raises(ProcessorError, match=r"expected `def process_records` for delivery\.executor: process"):
        await run_processor(Asynchronous, ["a"], options=CHILDREN)
