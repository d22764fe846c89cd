"""Tables of options, columns and operations say what the code says."""

import ast
from dataclasses import MISSING, fields

from actors import SystemClock
from kcl_py.leases.writer import PRIORITIES
from kcl_py.local.model import Kinesis
from kcl_py.options import options
from spark_bridge.options import Options
from spark_bridge.rows import COLUMNS
from tests.docs.pages import DOCS, README, ROOT, read, rows


def test_options_of_the_readme_are_options() -> None:
    """With their defaults and meanings."""
    table = options()
    for name, default, meaning in rows(README, "Option"):
        assert (default, meaning) == (table[name].default, table[name].meaning)


def test_options_of_the_spark_page_are_those_of_the_source() -> None:
    """All of them, with their defaults where these are numbers or flags."""
    known = {field.name.replace("_", ""): field for field in fields(Options)}
    table = {name.strip().lower(): row[1] for row in rows(DOCS / "spark.md", "Option") for name in row[0].split(",")}
    assert table.keys() == known.keys()
    for name, shown in table.items():
        default = known[name].default
        if default is MISSING:
            assert shown == "required"
        elif isinstance(default, int) and name != "maxpartitions":
            assert shown == str(default).lower()


def test_columns_of_the_spark_page_are_those_of_the_source() -> None:
    """Names, types and order."""
    assert [f"{row[0]} {row[1]}" for row in rows(DOCS / "spark.md", "Column")] == COLUMNS.split(", ")


def test_writes_of_the_leases_page_are_those_of_the_code() -> None:
    """Each that a Lease makes, and three besides: a child's row, and those of a worker that comes or goes."""
    documented = {row[0] for row in rows(DOCS / "leases.md", "Write")}
    assert documented == PRIORITIES.keys() | {"create child", "let go", "reset"}
    names = {
        node.value
        for node in ast.walk(ast.parse(read(ROOT / "kcl_py/leases/rules.py")))
        if isinstance(node, ast.Constant)
    }
    assert documented <= names


def test_operations_of_the_local_page_are_those_of_the_model() -> None:
    """What is not there yet is not promised."""
    documented = {name.strip() for row in rows(DOCS / "local.md", "Operation") for name in row[0].split(",")}
    assert documented == {request.__name__ for request in Kinesis(SystemClock())._operations}
