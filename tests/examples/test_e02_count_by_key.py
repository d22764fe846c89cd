"""The second example counts by key, and counts exactly."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from examples.e02_count_by_key import CountByKey
from kcl_py.testing import record, run_processor
from tests.examples.conftest import Run, put


def test_count_by_key_counts_a_record_once_though_it_comes_again(run: Run, kinesis: Any, tmp_path: Path) -> None:
    """A worker that knows of no checkpoint reads all from the beginning; the counts know what they hold."""
    put(kinesis, "apple", "ant", "bean")
    first = run("e02_count_by_key.yaml", COUNTS_OUT=str(tmp_path))
    first.out.until(lambda: first.out.lines[:1], "counts")
    first.kill()
    put(kinesis, "axe")
    second = run("e02_count_by_key.yaml", COUNTS_OUT=str(tmp_path), KCL_APP="without-checkpoints")
    second.out.until_said(" 4 records")
    second.send(signal.SIGTERM)
    assert second.wait() == 0
    state = json.loads((tmp_path / "shardId-000000000000.json").read_bytes())
    assert state["counts"] == {"a": 3, "b": 1}


def test_count_by_key_has_a_stopped_workers_successor_go_on_where_it_was(
    run: Run, kinesis: Any, tmp_path: Path
) -> None:
    """Its checkpoint is where its counts are, so nothing comes again."""
    put(kinesis, "apple", "bean")
    first = run("e02_count_by_key.yaml", COUNTS_OUT=str(tmp_path))
    first.out.until(lambda: first.out.lines[:1], "counts")
    first.send(signal.SIGTERM)
    assert first.wait() == 0
    put(kinesis, "cherry")
    second = run("e02_count_by_key.yaml", COUNTS_OUT=str(tmp_path))
    second.out.until(lambda: second.out.lines[:1], "counts")
    second.send(signal.SIGTERM)
    assert second.wait() == 0
    assert second.out.lines == ["shardId-000000000000: 3 records, 3 keys"]


@pytest.mark.parametrize("at", ["apple", "ant", "bean", "axe"])
@pytest.mark.parametrize("incident", ["crash_at", "fail_at", "lose_lease_at", "stop_at"])
def test_count_by_key_counts_exactly_whatever_happens_at_a_record(
    incident: str, at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In memory, and with whoever takes the shard next."""
    monkeypatch.setenv("COUNTS_OUT", str(tmp_path))
    records = [record(each, key=each[0]) for each in ("apple", "ant", "bean", "axe")]
    happens: dict[str, Any] = {incident: at}
    first = asyncio.run(run_processor(CountByKey, records, batch_size=1, checkpoint="manual", **happens))
    asyncio.run(run_processor(CountByKey, stream=first.stream, batch_size=1, checkpoint="manual"))
    state = json.loads((tmp_path / "shardId-000000000000.json").read_bytes())
    assert state["counts"] == {"a": 3, "b": 1}
