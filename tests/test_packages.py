"""What the three packages look like as files."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("actors", "kcl_py", "spark_bridge")
LONGEST = 400
"""Lines of a module: one that is longer holds two things."""


def test_packages_say_that_they_are_typed() -> None:
    """Without the marker type checkers ignore our types."""
    for package in PACKAGES:
        assert (ROOT / package / "py.typed").is_file()


def test_every_folder_of_modules_is_a_package() -> None:
    """A folder without __init__.py would be left out of the wheel."""
    folders = {path.parent for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    assert [folder for folder in sorted(folders) if not (folder / "__init__.py").is_file()] == []


def test_no_module_is_longer_than_400_lines() -> None:
    """Tests too."""
    sources = [path for package in (*PACKAGES, "tests") for path in (ROOT / package).rglob("*.py")]
    assert [str(path) for path in sources if len(path.read_text("utf-8").splitlines()) > LONGEST] == []
