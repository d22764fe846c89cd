"""The fixtures, in a project of a user's own."""

import subprocess
import sys

import pytest

from kcl_py import KclError
from kcl_py.testing.local import local_aws

pytest_plugins = "pytester"

PROCESSOR = """
import pytest
from kcl_py import RecordProcessor
from kcl_py.testing import Fault, FaultKind, run_processor

class Shout(RecordProcessor):
    async def process_records(self, batch, checkpointer):
        self.heard = [each.data.upper() for each in batch]
"""
USES_ALL = """
@pytest.mark.{mark}
async def test_shout(kcl_stream, kcl_clock):
    kcl_stream.faults.add(Fault(kind=FaultKind.THROTTLE, operation="GetRecords", times=2))
    run = await run_processor(Shout, ["a"], stream=kcl_stream)
    assert run.processors[0].heard == [b"A"]
    assert kcl_clock.monotonic() > 1000

@pytest.mark.{mark}
async def test_each_test_has_a_stream_of_its_own(kcl_stream):
    assert kcl_stream.records(kcl_stream.shards[0]) == []
    async with kcl_stream.worker(Shout):
        await kcl_stream.clock.advance(5)
"""
USES_LOCAL = """
import json
from urllib.request import urlopen

def test_one(kcl_local, pytestconfig):
    with urlopen(kcl_local + "/health") as reply:
        assert json.load(reply) == {"status": "ok"}
    pytestconfig.first = kcl_local

def test_other(kcl_local, pytestconfig):
    assert kcl_local == pytestconfig.first
"""
STRICT = "[pytest]\nfilterwarnings = error\n"


@pytest.mark.parametrize("mark", ["asyncio", "anyio"])
def test_fixtures_serve_tests_of_either_plugin(mark: str, pytester: pytest.Pytester, plugin: list[str]) -> None:
    """pytest-asyncio's and anyio's, with warnings as errors."""
    pytester.makeini(STRICT + "asyncio_mode = strict\nasyncio_default_fixture_loop_scope = function\n")
    backend = "@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n"
    pytester.makepyfile(PROCESSOR + USES_ALL.format(mark=mark) + backend)
    pytester.runpytest_subprocess(*plugin, "-p", "no:cacheprovider").assert_outcomes(passed=2)


def test_local_aws_runs_once_for_all_tests_and_ends_with_them(pytester: pytest.Pytester, plugin: list[str]) -> None:
    """On a port that was free."""
    pytester.makeini(STRICT)
    pytester.makepyfile(USES_LOCAL)
    pytester.runpytest_subprocess(*plugin, "-p", "no:asyncio").assert_outcomes(passed=2)


def test_fixtures_are_listed_with_what_they_are(pytester: pytest.Pytester, plugin: list[str]) -> None:
    """``pytest --fixtures`` is how people find them."""
    listed = pytester.runpytest_subprocess(*plugin, "--fixtures").stdout.str()
    assert "A fake stream of one shard" in listed
    assert "A clock that only the test moves" in listed
    assert "kcl_local [session scope]" in listed


def test_plugin_loads_nothing_until_a_fixture_is_used() -> None:
    """A test run that has no use for it pays for two small modules."""
    code = (
        "import sys\nbefore = set(sys.modules)\nimport kcl_py.pytest_plugin\nprint(*sorted(set(sys.modules) - before))"
    )
    command = [sys.executable, "-W", "error", "-c", f"import pytest\n{code}"]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert "kcl_py.pytest_plugin" in loaded
    own = ("kcl_py.config", "kcl_py.local", "kcl_py.testing", "kcl_py.tree", "actors")
    assert {*own, "anyio", "botocore", "pydantic", "structlog"}.isdisjoint(loaded)


def test_local_aws_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """In its own words; here the interpreter is one that knows nothing of it."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with (
        pytest.raises(KclError, match="cannot start kcl local: expected it to say that it is ready, found exit code 1"),
        local_aws(),
    ):
        pass
