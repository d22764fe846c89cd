"""Batchers, failed records and middlewares of processors whose hooks are ``def``."""

import os
from pathlib import Path

import pytest

from kcl_py.testing import record, run_processor
from tests.kcl_py.executors.processors import Together

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("executor", ["thread", "process"])
async def test_batches_failed_records_and_middlewares_are_as_on_the_event_loop(
    executor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches of two keys are in work side by side; middlewares hear in the worker what the hook has said elsewhere."""
    diary = tmp_path / "diary"
    monkeypatch.setenv("DIARY", str(diary))
    records = [record(data, key=key) for data, key in (("1", "a"), ("2", "b"), ("3", "a"), ("4", "b"), ("bad", "c"))]
    run = await run_processor(Together, records, options={"delivery": {"executor": executor}})
    assert len(run.acknowledged) == 5
    lines = [line.split(" ", 1) for line in diary.read_text("utf-8").splitlines()]
    assert sorted(text for _, text in lines) == [
        "a: 1, 3",
        "after 1: ToBatch",
        "after 2: ToBatch",
        "after 3: ToBatch",
        "after 4: ToBatch",
        "after bad: Reject",
        "b: 2, 4",
        "bad: it is bad",
        "before 1",
        "before 2",
        "before 3",
        "before 4",
        "before bad",
    ]
    in_worker = [text for pid, text in lines if int(pid) == os.getpid()]
    assert len(in_worker) == (13 if executor == "thread" else 10)
