"""The names that users import."""

import ast
import inspect
import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import actors
import kcl_py
import kcl_py.dead_letters
import kcl_py.testing
import spark_bridge
from kcl_py import errors

PROGRAMS = Path(__file__).parent / "typing"
PACKAGES = (actors, kcl_py, kcl_py.dead_letters, kcl_py.testing, spark_bridge)
BESIDE = {"Config": "kcl_py.config", "Source": "kcl_py.sources.source", "LeaseStore": "kcl_py.leases.store"}
"""What the signatures of these mention is in their modules, which few need."""
PUBLIC = {
    "Middleware",
    "RecordProcessor",
    "Records",
    "processor",
    "OwnedShard",
    "SequenceNumber",
    "RecordBatch",
    "Record",
    "Redelivery",
    "Batcher",
    "Batched",
    "ToBatch",
    "Retry",
    "Reject",
    "Failure",
    "HaltedShard",
    "Identity",
    "PreparedCheckpoint",
    "Once",
    "Dedup",
    "EffectsRefusedError",
    "DuplicateInWorkError",
    "Checkpointer",
    "Config",
    "Stream",
    "Clients",
    "Clock",
    "Ids",
    "LeaseStore",
    "Node",
    "Outcome",
    "Source",
    "KclError",
    "ConfigError",
    "ProcessorError",
    "AwsSetupError",
    "StreamNotFoundError",
    "CredentialsError",
    "EndpointError",
    "LeaseTableError",
    "StreamIdentityError",
    "LeaseLostError",
    "PositionError",
    "CheckpointFailedError",
}


def test_public_names_are_the_published_ones() -> None:
    """Extended, never renamed."""
    assert set(kcl_py.__all__) == PUBLIC
    assert kcl_py.__all__ == sorted(kcl_py.__all__)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: str(package.__name__))
def test_package_says_in_order_what_is_public(package: ModuleType) -> None:
    """Each name is there, and what is a class or a function says what it is for."""
    assert package.__all__ == sorted(package.__all__)
    values = {name: getattr(package, name) for name in package.__all__}
    named = {name: value for name, value in values.items() if inspect.isclass(value) or inspect.isroutine(value)}
    assert [name for name, value in named.items() if not inspect.getdoc(value)] == []


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_public_name_can_be_imported(name: str) -> None:
    """The lazy ones too."""
    assert getattr(kcl_py, name).__name__ == name


def mentioned(face: type) -> Iterator[str]:
    """Yield the annotations of what is public in a class: its fields, and its methods' arguments and returns."""
    yield from map(str, inspect.get_annotations(face).values())
    for name, value in vars(face).items():
        method = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if inspect.isfunction(method) and (not name.startswith("_") or name == "__init__"):
            yield from (str(annotation) for annotation in inspect.get_annotations(method).values())


@pytest.mark.parametrize("name", sorted(PUBLIC - BESIDE.keys()))
def test_signatures_of_public_classes_mention_public_classes_only(name: str) -> None:
    """Who passes or receives something can name its type."""
    texts = " ".join(mentioned(getattr(kcl_py, name)))
    words = {tuple(word.rsplit(".", 1)) for word in re.findall(r"(?:kcl_py|actors)\.[\w.]*", texts)}
    public = PUBLIC | set(kcl_py.dead_letters.__all__) | {"Put", "Update", "Delete", "ConditionCheck"}  # of effects.py
    assert {word for module, word in words if module not in BESIDE.values()} - public == set()


def test_typed_program_uses_every_public_name() -> None:
    """So that ``make lint`` checks them all as a user's type checker would."""
    used = {
        (node.module, name.name)
        for program in PROGRAMS.glob("*.py")
        for node in ast.walk(ast.parse(program.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    public = {(package.__name__, name) for package in PACKAGES for name in package.__all__}
    from_elsewhere = {("actors", "Clock"), ("actors", "Node"), ("kcl_py.testing", "ManualClock")}
    assert sorted(public - used - from_elsewhere) == []


def test_unknown_name_is_an_attribute_error() -> None:
    """As for any module."""
    with pytest.raises(AttributeError, match="has no attribute 'Streem'"):
        _ = kcl_py.Streem


@pytest.mark.parametrize("name", sorted(name for name in PUBLIC if name.endswith("Error")))
def test_error_survives_pickling(name: str) -> None:
    """Errors cross process borders in Spark."""
    error = getattr(errors, name)("cannot a", "b")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.args) == (type(error), str(error), error.args)


def test_kcl_is_installed_as_a_command() -> None:
    """Beside the interpreter, by the entry point."""
    done = subprocess.run([Path(sys.executable).with_name("kcl"), "--help"], capture_output=True, text=True, check=True)
    assert {"run", "check", "status", "local"} <= set(done.stdout.split())
