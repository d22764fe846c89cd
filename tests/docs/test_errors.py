"""The errors that the pages name are those of the code."""

import ast
import builtins
import re

import kcl_py
from kcl_py.cli import failure
from tests.docs.pages import DOCS, PAGES, README, modules, read, rows

_NAME = re.compile(r"`(?:\w+\.)*(\w+Error)`")


def defined() -> set[str]:
    """Return the error classes of the three packages."""
    return {
        node.name
        for _, module in modules()
        for node in ast.walk(module)
        if isinstance(node, ast.ClassDef) and node.name.endswith("Error") and not node.name.startswith("_")
    }


def test_every_error_is_documented() -> None:
    """In a table of errors, on one page or another."""
    documented = {row[0] for page in PAGES for row in rows(page, "Error")}
    assert sorted(defined() - documented) == []


def test_every_error_that_is_named_exists() -> None:
    """A renamed one is renamed here too."""
    named = {name for page in PAGES for name in _NAME.findall(read(page))}
    assert sorted(name for name in named - defined() if not hasattr(builtins, name)) == []


def test_errors_to_catch_are_the_public_ones() -> None:
    """The first table of the page is what ``kcl_py`` exports."""
    page = read(DOCS / "errors.md")
    public = page[page.index("## What you may catch") : page.index("## Exit codes")]
    assert sorted(set(re.findall(r"^\| `(\w+)`", public, re.MULTILINE))) == sorted(
        name for name in kcl_py.__all__ if name.endswith("Error")
    )


def test_exit_codes_are_those_of_the_command() -> None:
    """The table has them all, and so has the sentence of the README."""
    codes = {str(code) for code in (0, failure.WORKER_FAILED, failure.USAGE, failure.AWS_SETUP, failure.UNFINISHED)}
    assert {row[0] for row in rows(DOCS / "errors.md", "Code")} == codes | {"130, 143"}
    [sentence] = re.findall(r"^Exit codes: (.*)\[exactly\]", read(README), re.MULTILINE)
    assert set(re.findall(r"\d+", sentence)) == codes | {"130", "143"}
