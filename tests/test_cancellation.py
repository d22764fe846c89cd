"""That no code of the three packages swallows a cancellation."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("actors", "kcl_py", "spark_bridge")
ENDS = {
    "actors/cell.py",  # an actor's own task, and its last hook, which no scope reaches: told to its supervisor
    "actors/root.py",  # raised again once the tree has stopped
    "actors/task.py",  # the end of the very task that was cancelled
    "actors/testing.py",  # raised again outside the task group
    "kcl_py/chain.py",  # around a plain function of the user's, in which nothing is awaited
    "kcl_py/executors/child.py",  # in the child process: the worker says what follows
    "spark_bridge/tree.py",  # the end of a thread: told to who reads from it
}
"""Where one ends, and why; or is kept to be raised further down."""


def handlers(path: Path) -> Iterator[ast.AST]:
    """Find what catches a cancellation and has no ``raise`` of its own."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.ExceptHandler():
                caught = "BaseException" if node.type is None else ast.unparse(node.type)
                if not any(isinstance(below, ast.Raise) for below in ast.walk(node)) and is_broad(caught):
                    yield node
            case ast.Call(func=ast.Name("suppress") | ast.Attribute(attr="suppress")):
                if any(is_broad(ast.unparse(argument)) for argument in node.args):
                    yield node


def is_broad(caught: str) -> bool:
    return any(name in caught for name in ("BaseException", "CancelledError", "get_cancelled_exc_class"))


def test_no_code_swallows_a_cancellation_but_where_it_has_to_end() -> None:
    """B088: a worker that is cancelled ends, whatever it is at."""
    sources = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    found = {path.relative_to(ROOT).as_posix() for path in sources if any(handlers(path))}
    assert found == ENDS
