"""The package as users install it: built from the sources through an sdist, offline, and put in a folder of its own."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.test_packages import PACKAGES, ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LEFT_BEHIND = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist")
IMPORT_ALL = f"""
import importlib.metadata
for name in {PACKAGES!r}:
    module = __import__(name)
    assert all(hasattr(module, public) for public in module.__all__)
    print(module.__file__)
print(importlib.metadata.version("kcl-py"))
"""
USES_FIXTURE = """
def test_fixture_is_there(kcl_stream):
    assert kcl_stream.shards == ["shardId-000000000000"]
"""


def run(*command: str | Path, cwd: Path, **env: str) -> str:
    """Run a command that must succeed and return what it says."""
    done = subprocess.run(command, cwd=cwd, env=os.environ | env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(kind: str, source: Path, folder: Path) -> Path:
    """Build an ``sdist`` or a ``wheel`` with the backend that pyproject.toml names."""
    folder.mkdir()
    run(sys.executable, "-c", f"from setuptools import build_meta as b; b.build_{kind}({str(folder)!r})", cwd=source)
    [built] = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the wheel is installed in."""
    folder = tmp_path_factory.mktemp("wheel")
    shutil.copytree(ROOT, folder / "sources", ignore=LEFT_BEHIND)
    sdist = build("sdist", folder / "sources", folder / "sdist")
    run(sys.executable, "-m", "tarfile", "-e", sdist, folder / "unpacked", cwd=folder)
    [source] = (folder / "unpacked").iterdir()
    wheel = build("wheel", source, folder / "dist")
    assert wheel.name == f"kcl_py-{PROJECT['version']}-py3-none-any.whl"
    pip = (sys.executable, "-m", "pip", "install", "--isolated", "--quiet", "--no-deps", "--no-index")
    run(*pip, "--target", folder / "installed", wheel, cwd=folder)
    return folder / "installed"


def test_wheel_holds_the_three_packages_whole_and_nothing_else(installed: Path) -> None:
    """Every module and the marker of types; no tests, examples or benches."""
    expected = {
        path.relative_to(ROOT)
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.suffix == ".py" or path.name == "py.typed"
    }
    found = {path.relative_to(installed) for path in installed.rglob("*") if path.is_file()}
    beside = {"bin", f"kcl_py-{PROJECT['version']}.dist-info"}
    assert {path for path in found if path.parts[0] not in beside and "__pycache__" not in path.parts} == expected
    assert {Path(package, "py.typed") for package in PACKAGES} <= expected
    assert Path(f"kcl_py-{PROJECT['version']}.dist-info", "licenses", "LICENSE") in found


def test_installed_packages_offer_their_public_names(installed: Path) -> None:
    """All of them, from the wheel alone, under its version."""
    said = run(sys.executable, "-c", IMPORT_ALL, cwd=installed.parent, PYTHONPATH=str(installed)).split()
    assert said == [*(str(installed / package / "__init__.py") for package in PACKAGES), PROJECT["version"]]


def test_installed_command_runs(installed: Path) -> None:
    """The entry point is there and says the version."""
    said = run(installed / "bin" / "kcl", "--version", cwd=installed.parent, PYTHONPATH=str(installed))
    assert said == f"kcl-py {PROJECT['version']}\n"


def test_installed_fixtures_are_found_by_pytest(installed: Path) -> None:
    """By the entry point, in a project that does nothing for it; ``-p no:kcl_py`` leaves them out."""
    project = installed.parent / "project"
    project.mkdir()
    (project / "test_it.py").write_text(USES_FIXTURE, encoding="utf-8")
    pytest_run = (sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:asyncio", "-p", "no:cacheprovider")
    said = run(*pytest_run, "test_it.py", cwd=project, PYTHONPATH=str(installed))
    assert "1 passed" in said
    listed = run(*pytest_run, "-p", "no:kcl_py", "--fixtures", cwd=project, PYTHONPATH=str(installed))
    assert "kcl_stream" not in listed
