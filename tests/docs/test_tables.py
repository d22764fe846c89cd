"""Tables of options, columns and operations say what the code says."""

import ast
import re
from dataclasses import MISSING, asdict, fields
from itertools import pairwise
from pathlib import Path

from actors import SystemClock
from bench import cost
from kcl_py.config import Config
from kcl_py.document import MOST_BYTES, MOST_LEVELS, MOST_VALUES
from kcl_py.leases.items import WORKER_STATES
from kcl_py.leases.row import LeaseRow, Native, WorkerRow
from kcl_py.leases.writer import PRIORITIES
from kcl_py.local.dynamo.behaviour import Behaviour
from kcl_py.local.dynamo.model import DynamoDB
from kcl_py.local.faults.fault import Kind
from kcl_py.local.faults.script import FIELDS, read_script
from kcl_py.local.model import Kinesis
from kcl_py.options import options
from kcl_py.status import HEAD, SHARD_COLUMNS, WORKER_COLUMNS, report, state_of
from spark_bridge.options import Options
from spark_bridge.rows import COLUMNS
from tests.docs.pages import DOCS, README, ROOT, blocks, read, rows

CONFIG = Config(app="app", stream="s", processor="m:C")


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
    """Each that a Lease makes, and besides: a child's row, those of a worker that comes or goes, an operator's."""
    documented = {row[0] for row in rows(DOCS / "leases.md", "Write")}
    by_hand = {"request", "withdraw", "pause", "unpause", "reposition", "evict", "remove"}
    assert documented == PRIORITIES.keys() | {"create child", "delete completed", "let go", "reset"} | by_hand
    names = {
        node.value
        for module in ("rules", "commits", "pausing", "by_hand")
        for node in ast.walk(ast.parse(read(ROOT / f"kcl_py/leases/{module}.py")))
        if isinstance(node, ast.Constant)
    }
    assert documented <= names


def test_json_keys_of_the_leases_page_are_those_that_are_shown() -> None:
    """Of a row, and of what only kcl_py writes into it; each beside what the table of attributes calls it."""
    page = DOCS / "leases.md"
    shown, native = rows(page, "Key"), rows(page, "Key of `native`")
    assert [row[0] for row in shown] == list(asdict(LeaseRow("s")))
    assert [row[0] for row in native] == list(asdict(Native()))
    attributes = {name for row in rows(page, "Attribute") for name in row[0].split(", ")}
    named = {word for row in shown for word in row[1].split()} & attributes
    assert attributes - named == set()
    fields_of_native = {name.strip("* ") for row in rows(page, "Field of `native`") for name in row[0].split(",")}
    assert {row[1] for row in native} == fields_of_native


def test_costs_of_the_leases_page_are_those_of_the_formulas() -> None:
    """Which whole fleets hold to: ``tests/kcl_py/tree/test_scale.py``."""
    shown = {(row[0], row[1]): row[2:] for row in rows(DOCS / "leases.md", "Shards")}
    told = {(f"{s:,}", f"{w:,}"): cost.figures(cost.steady(s, w), s, w) for s, w in cost.SIZES}
    assert shown == told


def test_operations_of_the_local_page_are_those_of_the_model() -> None:
    """What is not there yet is not promised."""
    documented = {name.strip() for row in rows(DOCS / "local.md", "Operation") for name in row[0].split(",")}
    assert documented == set(Kinesis(SystemClock()).operations())
    documented = {name.strip() for row in rows(DOCS / "local.md", "DynamoDB operation") for name in row[0].split(",")}
    assert documented == DynamoDB(Behaviour(SystemClock())).operations


def test_fields_of_a_behaviour_are_on_the_local_page_with_their_defaults() -> None:
    """All that a test can make worse."""
    defaults = {f.name: f.default for f in fields(Behaviour) if f.name not in ("clock", "random", "region")}
    shown = {name: "false" if default is False else f"{default:g}" for name, default in defaults.items()}
    assert {row[0]: row[1] for row in rows(DOCS / "local.md", "Field")} == shown


def test_kinds_and_fields_of_faults_are_on_the_local_page(tmp_path: Path) -> None:
    """All that a rule can say, and the example of a file is one."""
    page = DOCS / "local.md"
    assert sorted(row[0] for row in rows(page, "Kind")) == sorted(Kind)
    assert [row[0] for row in rows(page, "Rule field")] == list(FIELDS)
    [example] = blocks(page, "yaml")
    file = tmp_path / "faults.yaml"
    file.write_text(example, encoding="utf-8")
    assert len(read_script(str(file)).faults) == 4


def test_columns_of_the_status_page_are_those_of_the_status() -> None:
    """Names and order, in its tables and in its example."""
    page, totals = DOCS / "status.md", tuple(report(CONFIG, [], [], 0.0)["totals"])
    for first, columns in (("Worker column", WORKER_COLUMNS), ("Shard column", SHARD_COLUMNS), ("Total", totals)):
        assert tuple(row[0] for row in rows(page, first)) == columns
    example, *_ = blocks(page, "text")
    _, head, *rest = example.splitlines()
    workers, shards, total, *_ = (line.split() for before, line in pairwise(rest) if not before)
    assert tuple(head.split()[::2]) == HEAD
    assert (tuple(workers), tuple(shards), tuple(total[1::2])) == (WORKER_COLUMNS, SHARD_COLUMNS, totals)


def test_states_of_the_status_page_are_those_that_are_shown() -> None:
    """Of workers and of shards."""
    workers, shards = (rows(DOCS / "status.md", first)[1][2] for first in ("Worker column", "Shard column"))
    silent = report(CONFIG, [], [WorkerRow("a")], 1e9)["workers"][0]["state"]
    kinds = (
        LeaseRow("s"),
        LeaseRow("s", owner="a"),
        LeaseRow("s", checkpoint_owner="a"),
        LeaseRow("s", checkpoint="SHARD_END"),
    )
    assert [state for state in (*WORKER_STATES, silent) if not re.search(rf"\b{state}\b", workers)] == []
    assert [kind for kind in kinds if not re.search(rf"\b{state_of(kind)}\b", shards)] == []


def test_bounds_of_a_file_are_those_that_are_told() -> None:
    """Who meets one finds it on the page."""
    told = f"at most {MOST_BYTES // 1024} KB and, with what its aliases repeat, {MOST_VALUES:,} values in {MOST_LEVELS}"
    assert told in read(DOCS / "configuration.md")
