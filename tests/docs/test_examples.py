"""The programs on the pages run."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, PAGES, blocks

CONFIG = "[pytest]\nfilterwarnings = error\n"


def test_the_tests_that_users_are_shown_pass(tmp_path: Path, plugin: list[str]) -> None:
    """Pasted into a file of its own, in a folder of its own, one after the other as they are on the page."""
    programs = blocks(DOCS / "testing.md", "python")
    (tmp_path / "test_shout.py").write_text("\n\n".join(programs), encoding="utf-8")
    (tmp_path / "pytest.ini").write_text(CONFIG, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio", *plugin]
    ran = subprocess.run([*command, "test_shout.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "6 passed" in ran.stdout, ran.stdout + ran.stderr


def test_the_first_test_that_users_are_shown_has_ten_lines() -> None:
    """A person who has written a processor sees at a glance what it takes."""
    lines = [line for line in blocks(DOCS / "testing.md", "python")[0].splitlines() if line]
    assert len(lines) <= 10


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.name))
def test_programs_import_what_is_there(page: Path) -> None:
    """Also the one for Spark, which is too slow to be run here."""
    for program in blocks(page, "python"):
        for node in ast.walk(ast.parse(program)):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                module = import_module(node.module)
                assert [name.name for name in node.names if not hasattr(module, name.name)] == []
