"""The documentation of the options is the table of options."""

import ast
from pathlib import Path

from kcl_py.config import Config
from kcl_py.options import options

ROOT = Path(__file__).parents[3]
DOCUMENT = ROOT / "docs" / "configuration.md"


def test_documented_options_are_those_of_the_model() -> None:
    """Same options, defaults, values and meanings, in the same order."""
    documented = [line for line in DOCUMENT.read_text("utf-8").splitlines() if line.startswith("| `")]
    assert documented == [
        f"| `{option.path}` | {option.default} | {option.expected} | {option.meaning} |"
        for option in options().values()
        if not option.is_section
    ]


def test_every_option_is_read_by_the_code_that_it_is_for() -> None:
    """B-16: none is accepted, documented and then ignored."""
    model = {ROOT / "kcl_py" / name for name in ("config.py", "options.py", "settings.py")}
    trees = [ast.parse(path.read_text("utf-8")) for path in (ROOT / "kcl_py").rglob("*.py") if path not in model]
    read = {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    services = {"aws.kinesis", "aws.dynamodb", "aws.sqs", "aws.s3"}  # looked up by their names
    chosen = [path for path, option in options().items() if len(option.choices) != 1 and path not in services]
    assert [path for path in chosen if path.rpartition(".")[2] not in read] == []


def test_documented_example_is_a_configuration(tmp_path: Path) -> None:
    """What the reader copies works."""
    example = DOCUMENT.read_text("utf-8").partition("```yaml\n")[2].partition("```")[0]
    file = tmp_path / "example.yaml"
    file.write_text(example, encoding="utf-8")
    assert Config.load(file, env={}).processor == "projection:Orders"
