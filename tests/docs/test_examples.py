"""The programs on the pages run."""

import subprocess
import sys
from pathlib import Path

from tests.docs.pages import DOCS, blocks

CONFIG = "[pytest]\nfilterwarnings = error\n"


def test_the_test_that_users_are_shown_passes(tmp_path: Path) -> None:
    """Pasted into a file of its own, in a folder of its own."""
    [program] = blocks(DOCS / "testing.md", "python")
    (tmp_path / "test_shout.py").write_text(program, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text(CONFIG, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio", "test_shout.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 passed" in ran.stdout, ran.stdout + ran.stderr
