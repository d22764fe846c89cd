"""Importing the processor: what is accepted, and the sentence for everything else."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kcl_py import ProcessorError, RecordProcessor
from kcl_py.acceptance import import_processor, load_processor, processor_faults

HEADER = "from kcl_py import RecordProcessor\n"
OFF_THE_LOOP = "; set delivery.executor to thread or process if it is to run off the event loop"
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
        (
            GOOD + "Bad = Good()\n",
            "expected a subclass of kcl_py.RecordProcessor, found an instance of one; give the class itself",
        ),
        (HEADER + "Bad = RecordProcessor\n", "expected process_records or process to be overridden, found neither"),
        (
            HEADER + "class Bad(RecordProcessor):\n    def process_records(self, batch, checkpointer): ...\n",
            "expected `async def process_records`, found `def`" + OFF_THE_LOOP,
        ),
        (
            GOOD + "class Bad(Good):\n    def lease_lost(self): ...\n",
            "expected `async def lease_lost`, found `def`" + OFF_THE_LOOP,
        ),
        (GOOD + "class Bad(Good):\n    initialize = None\n", "expected `async def initialize`, found no function"),
        (
            GOOD + "class Bad(Good):\n    def __init__(self, table, *more, size=1): ...\n",
            "expected a constructor without arguments, found it needs table",
        ),
        (
            HEADER + "class Bad(RecordProcessor):\n    async def process_records(self, batch): ...\n",
            "expected process_records to take (batch, checkpointer), found (batch)",
        ),
        (
            HEADER + "class Bad(RecordProcessor):\n    async def process_records(batch, checkpointer): ...\n",
            "expected process_records to take (batch, checkpointer), found (checkpointer)",
        ),
        (
            GOOD + "class Bad(Good):\n    async def lease_lost(self, checkpointer: int, *, why): ...\n",
            "expected lease_lost to take (), found (checkpointer, *, why)",
        ),
        (
            GOOD + "class Bad(Good):\n    @staticmethod\n    async def initialize(a, b): ...\n",
            "expected initialize to take (shard), found (a, b)",
        ),
        (
            HEADER + "class Bad(RecordProcessor):\n    async def process_records(self, batch, checkpointer): yield\n",
            "expected `async def process_records`, found an async generator; take out its yield",
        ),
        (
            GOOD + "class Bad(Good):\n    async def shard_endded(self, checkpointer): ...\n",
            "expected a hook of RecordProcessor, found 'shard_endded'; did you mean shard_ended?",
        ),
        (
            GOOD + "class Bad(Good):\n    def leaseLost(self): ...\n",
            "expected a hook of RecordProcessor, found 'leaseLost'; did you mean lease_lost?",
        ),
        (
            HEADER + "class Bad(RecordProcessor):\n    async def proces_records(self, batch): ...\n",
            "expected a hook of RecordProcessor, found 'proces_records'; did you mean process_records?",
        ),
        (
            GOOD + "class Bad(Good):\n    @property\n    def lease_lost(self): return self.nothing\n",
            "expected `async def lease_lost`, found no function",
        ),
        (
            GOOD + "import abc\nclass Bad(Good, abc.ABC):\n    @abc.abstractmethod\n    def table(self): ...\n",
            "expected a class that can be made, found it abstract: table",
        ),
    ],
)
def test_class_that_cannot_be_used_is_a_fault(tmp_path: Path, text: str, sentence: str) -> None:
    """Found before the first lease is taken, not at the first record."""
    assert fault("mine:Bad", write(tmp_path, text)) == f"cannot use processor 'mine:Bad': {sentence}"


def test_every_fault_of_a_class_is_told(tmp_path: Path) -> None:
    """One for each cause, so nobody has to try five times."""
    text = (
        HEADER + "class Bad(RecordProcessor):\n    async def proces_records(self): ...\n    def lease_lost(self): ...\n"
    )
    assert processor_faults(import_processor("mine:Bad", folders=(write(tmp_path, text),))) == [
        "expected a hook of RecordProcessor, found 'proces_records'; did you mean process_records?",
        "expected `async def lease_lost`, found `def`" + OFF_THE_LOOP,
    ]


@pytest.mark.parametrize(
    "method",
    [
        "async def process_record(self, batch, checkpointer): ...",  # a part of process_records, which is there
        "def initialized(self): ...",  # what initialize is given does not fit
        "def close(self): ...",
        "initialised = False",
        "initialiser = dict",
        "async def shard_ended(self, *anything): ...",
        "async def initialize(self, shard, again=False): ...",
        "@classmethod\n    async def lease_lost(cls): ...",
        "lease_lost = functools.partialmethod(Good.lease_lost)",
        "process_records = logged(Good.process_records)",  # it is the wrapper that is called
        "shutdown_requested = inject(Good.process_records)",
    ],
)
def test_class_that_can_be_used_is_accepted_whatever_else_it_has(tmp_path: Path, method: str) -> None:
    """A rule that refuses what works is worse than none."""
    decorators = (
        "import functools\n"
        "def logged(hook):\n"
        "    @functools.wraps(hook)\n"
        "    async def call(*args): return await hook(*args)\n"
        "    return call\n"
        "def inject(hook):\n"
        "    @functools.wraps(hook)\n"
        "    async def call(self, checkpointer): return await hook(self, None, checkpointer)\n"
        "    return call\n"
    )
    folder = write(tmp_path, GOOD + decorators + f"class Fine(Good):\n    {method}\n")
    assert load_processor("mine:Fine", folders=(folder,)).__name__ == "Fine"


def test_class_built_on_one_of_pythons_own_is_accepted(tmp_path: Path) -> None:
    """Of its constructor nothing can be said."""
    text = HEADER + "class Fine(RecordProcessor, dict):\n    async def process_records(self, b, c): ...\n"
    assert load_processor("mine:Fine", folders=(write(tmp_path, text),)).__name__ == "Fine"


@pytest.mark.asyncio
async def test_record_processor_does_nothing_but_demand_process_records() -> None:
    """All other hooks may be left out."""
    processor = RecordProcessor()
    await processor.lease_lost()
    with pytest.raises(NotImplementedError):
        await processor.process_records(None, None)  # type: ignore[arg-type]
