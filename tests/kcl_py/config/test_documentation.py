"""The documentation of the options is the table of options."""

from pathlib import Path

from kcl_py.config import Config
from kcl_py.options import options

DOCUMENT = Path(__file__).parents[3] / "docs" / "configuration.md"


def test_documented_options_are_those_of_the_model() -> None:
    """Same options, defaults, values and meanings, in the same order."""
    documented = [line for line in DOCUMENT.read_text("utf-8").splitlines() if line.startswith("| `")]
    assert documented == [
        f"| `{option.path}` | {option.default} | {option.expected} | {option.meaning} |"
        for option in options().values()
        if not option.is_section
    ]


def test_documented_example_is_a_configuration(tmp_path: Path) -> None:
    """What the reader copies works."""
    example = DOCUMENT.read_text("utf-8").partition("```yaml\n")[2].partition("```")[0]
    file = tmp_path / "example.yaml"
    file.write_text(example, encoding="utf-8")
    assert Config.load(file, env={}).processor == "projection:Orders"
