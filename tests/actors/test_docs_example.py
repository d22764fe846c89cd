"""The page about actors shows a program and what it prints; both are true."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_example_of_the_page_prints_what_the_page_says() -> None:
    """A reader can paste it."""
    page = (ROOT / "docs" / "actors.md").read_text(encoding="utf-8")
    program, printed = (re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL)[0] for kind in ("python", "text"))
    command = [sys.executable, "-X", "utf8", "-c", program]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == printed
