"""The drawings of the tree are the tree: its actors, messages, states and restart limits."""

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import anyio
import pytest

from actors import Node, SystemClock
from kcl_py import Checkpointer, Config, RecordBatch, RecordProcessor, Stream
from kcl_py.clients import Clients
from kcl_py.config import Leases
from kcl_py.leases.memory import MemoryLeaseStore
from kcl_py.local.client import KinesisClient
from kcl_py.local.model import Kinesis
from kcl_py.sources.kinesis.polling import KinesisSource
from kcl_py.tree.pipeline import Pipeline
from kcl_py.tree.shard import Shard
from kcl_py.tree.shard_supervisor import ShardSupervisor
from kcl_py.tree.steering import LookNow, Pause, Rested
from kcl_py.tree.stream_supervisor import StreamSupervisor
from tests.docs.pages import DOCS, ROOT, blocks, read, rows

if TYPE_CHECKING:
    from actors import Supervisor

PAGE = DOCS / "architecture.md"
TREE = ROOT / "kcl_py" / "tree"


class Waits(RecordProcessor):
    """Says that its shard is being read."""

    reads = anyio.Event()

    async def process_records(self, batch: RecordBatch, checkpointer: Checkpointer) -> None:
        self.reads.set()


def paths(node: Node, above: str = "") -> list[str]:
    """Return the paths of an actor and all below it, in order."""
    path = f"{above}/{node.name}"
    return [path, *(inner for child in node.children for inner in paths(child, path))]


def drawn() -> list[str]:
    """Return the paths of the drawing, in order: a level is four characters deep."""
    [drawing] = [block for block in blocks(PAGE, "text") if block.startswith("stream ")]
    above: list[str] = []
    found = []
    for line in drawing.splitlines():
        branch, name = re.fullmatch(r"([│├└─ ]*)(\S+).*", line, re.DOTALL).groups()  # type: ignore[union-attr]  # all do
        above = [*above[: len(branch) // 4], name]
        found.append("/" + "/".join(above))
    return found


@pytest.mark.asyncio
async def test_drawn_tree_is_that_of_a_run() -> None:
    """The same names under the same names, in the order of their start."""
    clock = SystemClock()
    kinesis = Kinesis(clock)
    kinesis.add_stream("drawn", 1)
    kinesis.call("PutRecord", {"StreamName": "drawn", "PartitionKey": "a", "Data": b""})
    clients = Clients(KinesisSource(KinesisClient(kinesis, clock), "drawn", clock=clock), MemoryLeaseStore())
    config = Config(app="docs", stream="drawn", processor="docs:Waits", leases=Leases(store="memory"))
    async with Stream(config, processor=Waits, clients=clients) as stream:
        with anyio.fail_after(10):
            await Waits.reads.wait()
        running = paths(stream.tree())
    assert drawn() == running


def test_restart_limits_are_those_of_the_supervisors() -> None:
    """Strategy, restarts and window."""
    supervisors: dict[str, type[Supervisor]] = {
        "stream": StreamSupervisor,
        "shards": ShardSupervisor,
        "shardId-…": Shard,
        "pipeline": Pipeline,
    }
    assert {row[0]: row[1:3] for row in rows(PAGE, "Supervisor")} == {
        name: [kind.strategy.value, f"{kind.intensity.restarts} in {kind.intensity.within_s:g} s"]
        for name, kind in supervisors.items()
    }


def test_messages_are_those_of_the_tree() -> None:
    """Each class of ``messages.py`` and ``asking.py`` is named in the table, and those of a pause; nothing else."""
    modules = [ast.parse(read(TREE / f"{name}.py")) for name in ("messages", "asking")]
    classes = {node.name for module in modules for node in module.body if isinstance(node, ast.ClassDef)}
    classes |= {message.__name__ for message in (LookNow, Pause, Rested)}
    table = [line for line in read(PAGE).splitlines() if re.match(r"\| \w.* → \w", line)]
    assert set(re.findall(r"`([A-Z]\w+)`", "\n".join(table))) == classes
    assert [row[1] for row in rows(PAGE, "From → to") if row[1] not in classes] == []


def states_set(module: str) -> set[str]:
    """Return what a module assigns to ``self.state``."""
    return {
        str(value.value)
        for node in ast.walk(ast.parse(read(TREE / module)))
        if isinstance(node, ast.Assign)
        for target, value in _pairs(node)
        if isinstance(target, ast.Attribute) and target.attr == "state" and isinstance(value, ast.Constant)
    }


def _pairs(assignment: ast.Assign) -> Iterator[tuple[ast.expr, ast.expr]]:
    for target in assignment.targets:
        if isinstance(target, ast.Tuple) and isinstance(assignment.value, ast.Tuple):
            yield from zip(target.elts, assignment.value.elts, strict=True)
        else:
            yield target, assignment.value


@pytest.mark.parametrize(("number", "module"), [(0, "lease.py"), (1, "pipeline.py"), (2, "producer.py")])
def test_drawn_states_are_those_that_an_actor_shows(number: int, module: str) -> None:
    """Every state has its place in the diagram, and none is made up."""
    diagrams = [block for block in blocks(PAGE, "mermaid") if block.startswith("stateDiagram")]
    ends = re.findall(r"^ +(\S+) --> ([\w\[\]*]+)", diagrams[number], re.MULTILINE)
    assert {state for pair in ends for state in pair} - {"[*]"} == states_set(module)


def test_rules_live_where_the_page_says() -> None:
    """Each module of the table is there."""
    named = re.findall(r"`([a-z_/]+\.py)`", read(PAGE))
    homes = (ROOT, ROOT / "kcl_py")
    assert [name for name in named if not any((home / name).is_file() for home in homes)] == []
