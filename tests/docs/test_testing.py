"""What the page of testing tells of kcl_py.testing is what is there."""

import ast
import inspect
from dataclasses import fields

from kcl_py.config import Config
from kcl_py.testing import Run, run_processor
from kcl_py.testing.recorder import Incident
from tests.docs.pages import DOCS, ROOT, read, rows

PAGE = DOCS / "testing.md"
CONFIG = Config(app="app", stream="s", processor="m:C")
INCIDENTS = [f"{incident.name.lower()}_at" for incident in Incident]


def test_arguments_are_those_of_run_processor() -> None:
    """In order, and each incident in a table of its own, too."""
    named = [name for row in rows(PAGE, "Argument") for name in row[0].split(", ")]
    parameters = list(inspect.signature(run_processor).parameters)
    assert named[: len(parameters)] == parameters
    assert named[len(parameters) :] == INCIDENTS


def test_defaults_of_the_arguments_are_those_of_the_options() -> None:
    """And that of the one which is no option."""
    shown = {row[0]: row[1] for row in rows(PAGE, "Argument")}
    delivery, timeout_s = CONFIG.delivery, inspect.signature(run_processor).parameters["timeout_s"].default
    assert shown["batch_size"] == str(delivery.batch.max_records)
    assert shown["retries"] == str(delivery.retries)
    assert shown["checkpoint"] == CONFIG.checkpoint.mode
    assert shown["timeout_s"] == f"{timeout_s:g}"


def test_attributes_are_those_of_a_run() -> None:
    """Its fields, properties and methods."""
    own = {name for name in vars(Run) if not name.startswith("_")} | {field.name for field in fields(Run)}
    assert {row[0].partition("(")[0] for row in rows(PAGE, "Attribute")} == own


def test_fixtures_are_those_of_the_plugin() -> None:
    """By their names."""
    plugin = ast.parse(read(ROOT / "kcl_py/pytest_plugin.py"))
    defined = {node.name for node in plugin.body if isinstance(node, ast.FunctionDef)}
    assert {row[0] for row in rows(PAGE, "Fixture")} == defined
