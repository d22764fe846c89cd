"""Classes written for amazon_kclpy: which are recognised, how they are called, and what their checkpoints mean."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from kcl_py import (
    CheckpointFailedError,
    ConfigError,
    KclError,
    LeaseLostError,
    PositionError,
    ProcessorError,
    SequenceNumber,
)
from kcl_py.acceptance import load_processor
from kcl_py.compat import kclpy
from kcl_py.compat.positions import asked_for, java_name
from kcl_py.compat.stand_in.checkpoint_error import CheckpointError
from kcl_py.compat.versions import version_of
from kcl_py.testing import FakeStream, run_processor

SHARD = "shardId-000000000000"


class First:
    """Version 1, without a base."""

    shards: ClassVar[dict[str, list[Any]]] = {}
    """What was called, by shard."""

    def initialize(self, shard_id: str) -> None:
        self.calls = self.shards[shard_id] = []

    def process_records(self, records: Any, checkpointer: Any) -> str:
        self.calls.append([record.get("data") for record in records])
        checkpointer.checkpoint()
        return "no outcome, whatever it is"

    def shutdown(self, checkpointer: Any, reason: str) -> None:
        self.calls.append(reason)
        checkpointer.checkpoint()


class Second(First):
    """Version 2, without a base."""

    def initialize(self, given: Any) -> None:
        super().initialize(given.shard_id)

    def process_records(self, given: Any) -> None:  # type: ignore[override]
        super().process_records(given.records, given.checkpointer)

    def shutdown(self, given: Any) -> None:  # type: ignore[override]
        super().shutdown(given.checkpointer, given.reason)


class Third:
    """Version 3, without a base."""

    def initialize(self, given: Any) -> None: ...
    def process_records(self, given: Any) -> None: ...
    def lease_lost(self, given: Any) -> None: ...
    def shard_ended(self, given: Any) -> None: ...


class Asynchronous(Third):
    """Nothing that amazon_kclpy could call."""

    async def process_records(self, given: Any) -> None: ...  # type: ignore[override]


class Unbased:
    """A processor of ours whose base was forgotten."""

    def process_records(self, batch: Any, checkpointer: Any) -> None: ...


@pytest.mark.asyncio
@pytest.mark.parametrize("name", ["interval_s", "records"])
async def test_dates_of_checkpoints_are_refused_where_the_class_stores_them_itself(name: str) -> None:
    """They would count for nothing, and nobody would be told."""
    with pytest.raises(ConfigError, match=rf"^checkpoint\.{name}: expected checkpoint\.mode beside it.* found 7;"):
        await run_processor(kclpy.adapt(First), [b"1"], options={"checkpoint": {name: 7}})
    options = {"checkpoint": {name: 7, "mode": "auto"}}
    assert (await run_processor(kclpy.adapt(First), [b"1"], options=options)).acknowledged == [b"1"]


@pytest.mark.parametrize(
    ("found", "version"),
    [(First, 1), (Second, 2), (Third, 3), (Asynchronous, None), (Unbased, None), (First(), None), (5, None)],
)
def test_version_is_told_by_the_hooks(found: object, version: int | None) -> None:
    """And nothing else is taken for one."""
    assert version_of(found) == version


@pytest.mark.asyncio
@pytest.mark.parametrize("written", [First, Second])
async def test_older_versions_are_called_as_they_expect(written: type[First]) -> None:
    """One hook for both ends; what process_records returns means nothing there."""
    run = await run_processor(kclpy.adapt(written), ["a"], end_shards=True)
    assert written.shards[SHARD] == [["YQ=="], "TERMINATE"]
    assert run.checkpoints[SHARD] == "SHARD_END"


class Buffering(Third):
    """Keeps records until it has three, and checkpoints at the last but one."""

    kept: ClassVar[list[Any]]

    def initialize(self, given: Any) -> None:
        type(self).kept = []

    def process_records(self, given: Any) -> None:
        self.kept.extend(given.records)
        if len(self.kept) == 3:
            given.checkpointer.checkpoint(self.kept[1].sequence_number)


@pytest.mark.asyncio
async def test_no_more_is_stored_than_was_asked_for_though_later_batches_have_returned() -> None:
    """It keeps the rest in memory: storing the end of what has returned would lose it."""
    stream = FakeStream()
    run = await run_processor(kclpy.adapt(Buffering), ["a", "b", "c"], stream=stream, batch_size=1)
    assert run.checkpoints[SHARD] == run.records[SHARD][1].sequence_number


class Keeping(Third):
    """Keeps a checkpointer, and uses it when the lease is said to be lost."""

    values: ClassVar[list[str]] = []

    def process_records(self, given: Any) -> None:
        self.checkpointer = given.checkpointer

    def lease_lost(self, given: Any) -> None:
        try:
            self.checkpointer.checkpoint()
        except CheckpointError as error:
            self.values.append(error.value)


@pytest.mark.asyncio
async def test_kept_checkpointer_refuses_once_the_lease_is_said_to_be_lost() -> None:
    """Also at a stop, where that is said while the worker still holds it."""
    run = await run_processor(kclpy.adapt(Keeping), ["a"])
    assert (run.checkpoints, Keeping.values) == ({SHARD: "TRIM_HORIZON"}, ["ShutdownException"])


class Silent(Third):
    """Never checkpoints."""


@pytest.mark.asyncio
async def test_nothing_is_stored_without_being_asked_for_but_the_end_of_a_shard() -> None:
    """Unless checkpoint.mode: auto is set by name."""
    run = await run_processor(kclpy.adapt(Silent), ["a"])
    assert run.checkpoints == {SHARD: "TRIM_HORIZON"}
    run = await run_processor(kclpy.adapt(Silent), ["a"], checkpoint="auto")
    assert run.checkpoints == {SHARD: run.records[SHARD][0].sequence_number}
    run = await run_processor(kclpy.adapt(Silent), ["a"], end_shards=True)
    assert run.checkpoints[SHARD] == "SHARD_END"


class Failing(Third):
    """Raises, which amazon_kclpy would have counted as done."""

    def process_records(self, given: Any) -> None:
        raise ValueError("not this one")


@pytest.mark.asyncio
async def test_batch_that_raises_is_tried_again_and_then_halts_its_shard() -> None:
    """Our policy, not that of amazon_kclpy, which goes on."""
    run = await run_processor(kclpy.adapt(Failing), ["a"], retries=1)
    assert run.hooks.count("process_records") == 2
    assert list(run.halted) == [SHARD]


LAST, NEWEST = SequenceNumber(10), SequenceNumber(20, 3)


@pytest.mark.parametrize(
    ("number", "sub", "position"),
    [
        ("10", None, SequenceNumber(10)),
        ("15", 7, SequenceNumber(15, 7)),
        (20, 3, SequenceNumber(20, 3)),
        ("20", 4, None),
        ("21", None, None),
        ("9", None, None),
        ("12", -1, None),
        ("12", "1", None),
        ("TRIM_HORIZON", None, None),
        ("", None, None),
        ("1" * 130, None, None),
    ],
)
def test_checkpoint_is_between_the_last_one_and_the_last_record(number: Any, sub: Any, position: object) -> None:
    """Java's rule, as its daemon answered."""
    assert asked_for(number, sub, LAST, NEWEST) == position


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (LeaseLostError, "ShutdownException"),
        (CheckpointFailedError, "KinesisClientLibDependencyException"),
        (PositionError, "IllegalArgumentException"),
        (KclError, "InvalidStateException"),
    ],
)
def test_errors_have_the_names_of_java(error: type[KclError], name: str) -> None:
    """Processors decide by them what to do."""
    assert java_name(error("why")) == name


HEADER = "from amazon_kclpy import kcl, messages\nfrom amazon_kclpy.v3 import processor\n"
CLASS = """class P(processor.RecordProcessorBase):
    def initialize(self, given: messages.InitializeInput): ...
    def process_records(self, given): ...
    def lease_lost(self, given): ...
    def shard_ended(self, given): ...
    def shutdown_requested(self, given): ...
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where a test writes its module."""
    path = list(sys.path)
    yield tmp_path
    sys.path[:] = path
    sys.modules.pop("mine", None)


def test_module_imports_stand_ins_only_while_it_is_loaded(folder: Path) -> None:
    """Whoever asks later whether amazon_kclpy is installed gets the truth."""
    (folder / "mine.py").write_text(HEADER + CLASS, encoding="utf-8")
    assert issubclass(load_processor("mine:P", folders=(folder,)), kclpy.Adapted)
    assert not any(name.startswith("amazon_kclpy") for name in sys.modules)


def test_installed_package_goes_before_the_stand_in(folder: Path) -> None:
    """The processor then catches the errors of that one."""
    package = folder / "amazon_kclpy"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "kcl.py").write_text("class CheckpointError(Exception):\n    value = 'the real one'\n", encoding="utf-8")
    (folder / "mine.py").write_text(
        "from amazon_kclpy import kcl\n"
        + CLASS.replace("(processor.RecordProcessorBase)", "").replace(": messages.InitializeInput", ""),
        encoding="utf-8",
    )
    try:
        load_processor("mine:P", folders=(folder,))
        assert sys.modules["mine"].kcl.CheckpointError is type(kclpy.checkpoint_error("ShutdownException"))
    finally:
        for name in ("amazon_kclpy", "amazon_kclpy.kcl"):
            sys.modules.pop(name, None)


def test_module_that_runs_its_processor_when_imported_is_told_how_to_start_it(folder: Path) -> None:
    """Its last lines are for the daemon, and belong under a guard."""
    (folder / "mine.py").write_text(HEADER + CLASS + "kcl.KCLProcess(P()).run()\n", encoding="utf-8")
    with pytest.raises(ProcessorError, match=r"if __name__ == '__main__':.*kcl run"):
        load_processor("mine:P", folders=(folder,))


def test_constructor_with_arguments_is_a_fault_of_the_users_class(folder: Path) -> None:
    """As with every processor."""
    (folder / "mine.py").write_text(HEADER + CLASS + "    def __init__(self, table): ...\n", encoding="utf-8")
    with pytest.raises(ProcessorError, match="expected a constructor without arguments, found it needs table"):
        load_processor("mine:P", folders=(folder,))


@pytest.mark.asyncio
async def test_class_that_is_given_as_it_is_is_told_of_adapt() -> None:
    """Only what is named in a file is adapted by itself."""
    wrong: Any = Third
    with pytest.raises(ProcessorError, match=r"written for amazon_kclpy: give kcl_py\.compat\.kclpy\.adapt of it"):
        await run_processor(wrong, ["a"])


def test_what_has_no_such_hooks_is_not_adapted() -> None:
    """With what is missing."""
    with pytest.raises(ProcessorError, match="expected a class with the hooks of amazon_kclpy"):
        kclpy.adapt(Unbased)
