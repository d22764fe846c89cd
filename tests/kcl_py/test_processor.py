"""Importing the processor: what is accepted, and the sentence for everything else."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kcl_py import ProcessorError, RecordProcessor
from kcl_py.processor import load_processor

HEADER = "from kcl_py import RecordProcessor\n"
GOOD = HEADER + "class Good(RecordProcessor):\n    async def process_records(self, batch, checkpointer): ...\n"


@pytest.fixture(autouse=True)
def _same_imports_afterwards() -> Iterator[None]:
    """The module and paths of one test are not seen by the next."""
    path = list(sys.path)
    yield
    sys.path[:] = path
    sys.modules.pop("mine", None)


def write(folder: Path, text: str, name: str = "mine") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return folder


def fault(path: str, folder: Path) -> str:
    with pytest.raises(ProcessorError) as caught:
        load_processor(path, folders=(folder,))
    return str(caught.value)


def test_processor_is_imported_from_the_first_folder_that_has_it(tmp_path: Path) -> None:
    """The file's folder goes before the working directory, and both before what is installed."""
    first = write(tmp_path / "first", GOOD)
    second = write(tmp_path / "second", "raise RuntimeError('the wrong one')\n")
    processor = load_processor("mine:Good", folders=(first, second))
    assert issubclass(processor, RecordProcessor)
    assert sys.path[:2] == [str(first), str(second)]


def test_folder_stays_on_the_path_for_later_imports(tmp_path: Path) -> None:
    """A hook may import its neighbours when it runs; loading again does not add the folder again."""
    folder = write(tmp_path, GOOD)
    load_processor("mine:Good", folders=(folder, folder))
    load_processor("mine:Good", folders=(folder, folder))
    assert sys.path.count(str(folder)) == 1


def test_class_inside_a_class_can_be_named(tmp_path: Path) -> None:
    """The part behind the colon may have dots."""
    text = HEADER + "class Outer:\n  class Good(RecordProcessor):\n    async def process_records(self, b, c): ...\n"
    assert load_processor("mine:Outer.Good", folders=(write(tmp_path, text),)).__name__ == "Good"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import not_there_at_all\n", "ModuleNotFoundError: No module named 'not_there_at_all'"),
        ("def broken(:\n", "SyntaxError: invalid syntax (mine.py, line 1)"),
        ("raise ValueError('first\\nsecond')\n", "ValueError: first second"),
        ("import sys\nsys.exit(5)\n", "SystemExit: 5"),
    ],
)
def test_import_that_fails_tells_the_original_reason_on_one_line(tmp_path: Path, text: str, found: str) -> None:
    """The reason is in the user's module, so that is what must be said."""
    message = fault("mine:Good", write(tmp_path, text))
    assert message == f"cannot import processor 'mine:Good': expected module 'mine' to import, found {found}"


def test_missing_module_and_missing_class_are_told_apart(tmp_path: Path) -> None:
    """Two mistakes, two sentences."""
    write(tmp_path, GOOD)
    assert "found ModuleNotFoundError: No module named 'other'" in fault("other:Good", tmp_path)
    assert fault("mine:Bad", tmp_path) == (
        "cannot import processor 'mine:Bad': expected class 'Bad' in module 'mine', found none"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("class Bad: ...\n", "expected a subclass of kcl_py.RecordProcessor, found class 'Bad' that is none"),
        ("Bad = 5\n", "expected a subclass of kcl_py.RecordProcessor, found int that is none"),
        (HEADER + "Bad = RecordProcessor\n", "expected process_records to be overridden, found none"),
        (
            HEADER + "class Bad(RecordProcessor):\n    def process_records(self, batch, checkpointer): ...\n",
            "expected `async def process_records`, found `def`",
        ),
        (GOOD + "class Bad(Good):\n    def lease_lost(self): ...\n", "expected `async def lease_lost`, found `def`"),
        (GOOD + "class Bad(Good):\n    initialize = None\n", "expected `async def initialize`, found no function"),
        (
            GOOD + "class Bad(Good):\n    def __init__(self, table, *more, size=1): ...\n",
            "expected a constructor without arguments, found it needs table",
        ),
    ],
)
def test_class_that_cannot_be_used_is_a_fault(tmp_path: Path, text: str, sentence: str) -> None:
    """Found before the first lease is taken, not at the first record."""
    assert fault("mine:Bad", write(tmp_path, text)) == f"cannot use processor 'mine:Bad': {sentence}"


@pytest.mark.asyncio
async def test_record_processor_does_nothing_but_demand_process_records() -> None:
    """All other hooks may be left out."""
    processor = RecordProcessor()
    await processor.lease_lost()
    with pytest.raises(NotImplementedError):
        await processor.process_records(None, None)  # type: ignore[arg-type]
