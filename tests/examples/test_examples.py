"""What holds for every numbered example."""

from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("e[0-9][0-9]_*.py"))
LONGEST = 60
"""Lines that are read in a minute."""


def test_there_are_four_examples_in_order() -> None:
    """Numbers are the order in which to read them."""
    assert [path.name[:4] for path in EXAMPLES] == ["e01_", "e02_", "e03_", "e04_"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_is_short_and_has_its_options_and_its_test(path: Path) -> None:
    """An example that nobody runs is wrong before long."""
    assert len(path.read_text("utf-8").splitlines()) <= LONGEST
    assert path.with_suffix(".yaml").is_file()
    assert Path(__file__).with_name(f"test_{path.name}").is_file()
