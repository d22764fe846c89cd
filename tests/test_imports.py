"""What importing costs: each in a fresh interpreter."""

import subprocess
import sys

import pytest

HEAVY = ("aiobotocore", "aiohttp", "boto3", "botocore", "flask", "moto", "pyspark", "rich", "typer")


def modules_after(statement: str) -> set[str]:
    """Return the top-level modules that are loaded after ``statement``."""
    code = f"{statement}\nimport sys\nprint(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("package", ["actors", "kcl_py", "kcl_py.config", "kcl_py.cli.check"])
def test_import_of_package_loads_nothing_heavy(package: str) -> None:
    """A processor's module and a Spark driver import kcl_py; neither wants AWS's libraries for that."""
    allowed = {"rich"} if package == "kcl_py.cli.check" else set()  # structlog loads it
    assert modules_after(f"import {package}") & (set(HEAVY) - allowed) == set()


def test_import_of_kcl_py_does_not_even_load_the_options() -> None:
    """They cost more than all the rest."""
    assert modules_after("import kcl_py").isdisjoint({"pydantic", "structlog", "yaml", "anyio"})


def test_version_is_told_without_loading_the_worker() -> None:
    """``kcl --version`` answers at once."""
    statement = "import sys\nsys.argv = ['kcl', '--version']\nfrom kcl_py.cli.app import main\n"
    loaded = modules_after(f"{statement}try:\n    main()\nexcept SystemExit:\n    pass")
    assert loaded.isdisjoint({"aiobotocore", "anyio", "pydantic", "structlog"})
