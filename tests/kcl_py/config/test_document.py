"""Files that are no configuration: whatever they are, one clear fault, and soon."""

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from kcl_py.config import Config
from kcl_py.document import MOST_BYTES, MOST_LEVELS, MOST_VALUES
from kcl_py.errors import ConfigError

REQUIRED = "app: demo\nstream: flights\nprocessor: flights:Flights\n"
TOO_DEEP = f"expected at most {MOST_LEVELS} levels of values in each other, found more"
TOO_MANY = f"expected at most {MOST_VALUES} values, found more, with those that aliases repeat"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file that is not there yet."""
    return tmp_path / "worker.yaml"


def faults(file: str | Path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        Config.load(file, env={})
    return [fault.removeprefix(f"{file}: ") for fault in caught.value.faults]


def faults_of(file: Path, text: str) -> list[str]:
    file.write_text(text, encoding="utf-8")
    return faults(file)


def laughs(times: int) -> str:
    """Return a document of ``9 ** times`` values that takes a line for each power."""
    names = [f"laugh{number}" for number in range(times + 1)]
    lines = [f"{names[0]}: &{names[0]} ha"]
    lines += [f"{name}: &{name} [{', '.join([f'*{inner}'] * 9)}]" for inner, name in pairwise(names)]
    return "\n".join(lines)


@pytest.mark.parametrize("text", ["", "# nothing\n", "null\n"])
def test_empty_file_is_a_fault(file: Path, text: str) -> None:
    """It cannot name a stream."""
    assert faults_of(file, text) == ["expected a mapping of options, found nothing"]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("- a\n- b\n", "expected a mapping of options, found a list"),
        ("hello\n", "expected a mapping of options, found 'hello'"),
        ("app: [1\n", "expected YAML, found a mistake: expected ',' or ']', but got '<stream end>' (line 2, column 1)"),
        ("app: a\n---\napp: b\n", "expected YAML, found a mistake: another document (line 2, column 1)"),
        ("app: *x\n", "expected YAML, found a mistake: found undefined alias 'x' (line 1, column 6)"),
        ("app: a\n\tb: c\n", "expected YAML, found a mistake: found character '\\t' that cannot start any token"),
        ("app: a\0b\n", "expected YAML, found a mistake: the character '\\x00'"),
        ("a: &a {b: *a}\n", "expected YAML, found a value that contains itself"),
        (laughs(12), TOO_MANY),
        ("".join(f"key{number}: x\n" for number in range(MOST_VALUES)), TOO_MANY),
        (f"app: {'[' * (MOST_LEVELS + 1)}{']' * (MOST_LEVELS + 1)}", TOO_DEEP),
        ("[" * 60_000, TOO_DEEP),
        ("- " * 30_000, TOO_DEEP),
        ("{a: " * 15_000, TOO_DEEP),
        ("#" * (MOST_BYTES + 1), f"expected a file of at most {MOST_BYTES} bytes, found more"),
    ],
)
def test_file_that_is_no_mapping_is_one_clear_fault(file: Path, text: str, fault: str) -> None:
    """With the place, where there is one."""
    (found,) = faults_of(file, text)
    assert found.startswith(fault)


def test_file_that_is_not_utf8_is_a_fault(file: Path) -> None:
    """It says which byte."""
    file.write_bytes(b"app: caf\xe9\n")
    assert faults(file) == ["expected UTF-8 text, found byte 0xe9"]


def test_file_with_a_byte_order_mark_is_read(file: Path) -> None:
    """Some editors put one there."""
    file.write_bytes(b"\xef\xbb\xbf" + REQUIRED.encode())
    assert Config.load(file, env={}).app == "demo"


def test_aliases_may_be_used(file: Path) -> None:
    """They are bounded, not forbidden."""
    file.write_text(REQUIRED + "aws: {kinesis: &here {region: eu-west-1}, dynamodb: *here}\n", encoding="utf-8")
    assert Config.load(file, env={}).aws.dynamodb.region == "eu-west-1"


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("missing", "expected a readable file, found: No such file or directory"),
        ("", "expected a readable file, found: Is a directory"),
        ("a\0b", "expected a readable file, found: embedded null byte"),
        ("/dev/zero", f"expected a file of at most {MOST_BYTES} bytes, found more"),
        ("/dev/null", "expected a mapping of options, found nothing"),
    ],
)
def test_what_is_no_readable_file_is_a_fault_that_names_it(tmp_path: Path, name: str, fault: str) -> None:
    """As it was given."""
    where = f"{tmp_path}/{name}" if not name.startswith("/") else name
    with pytest.raises(ConfigError) as caught:
        Config.load(where, env={})
    assert caught.value.faults == (f"{where}: {fault}",)


def test_pipe_is_read_to_its_end_and_not_waited_for_without_a_writer(tmp_path: Path) -> None:
    """As a shell makes one of ``<(envsubst …)``; a pipe that nobody writes to would be waited for in vain."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert faults(pipe) == ["expected a mapping of options, found nothing"]
    reader, writer = os.pipe()
    try:
        program = f"print({REQUIRED!r})"  # said only some time after the pipe is opened
        with subprocess.Popen([sys.executable, "-c", program], stdout=writer):
            os.close(writer)
            assert Config.load(f"/dev/fd/{reader}", env={}).app == "demo"
    finally:
        os.close(reader)


def test_key_that_is_there_twice_is_a_fault_beside_the_others(file: Path) -> None:
    """YAML would take the last one in silence."""
    assert faults_of(file, REQUIRED + "leases:\n  table: one\n  table: two\ngrace_s: x\n") == [
        "leases.table: expected the key once, found it again on line 6",
        "grace_s: expected a number of at least 0, found 'x'",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("? [a, b]\n: c\n", "expected keys that are text, found another on line 4"),
        ("leases:\n  ? {a: b}\n  : c\n", "leases: expected keys that are text, found another on line 5"),
        ("1: x\n", "1: expected a known key, found '1'"),
        (
            "delivery: {retries: " + "9" * 5000 + "}\n",
            "delivery.retries: expected a whole number of at least 0, found '9",
        ),
        ("grace_s: 1e400\n", "grace_s: expected a number of at least 0, found '1e400'"),
        ("grace_s: !!python/object/apply:os.getpid []\n", "grace_s: expected a number of at least 0, found a list"),
    ],
)
def test_odd_key_or_value_is_a_fault_of_its_own(file: Path, text: str, fault: str) -> None:
    """No tag is obeyed, and nothing overflows."""
    (found,) = faults_of(file, REQUIRED + text)
    assert found.startswith(fault)
