"""The first example prints."""

import signal
from typing import Any

from tests.examples.conftest import Run, put


def test_print_records_prints_each_record_once_and_stops_when_told(run: Run, kinesis: Any) -> None:
    """Those that were there before it, and those that come while it runs."""
    put(kinesis, "apple", "bean")
    worker = run("e01_print_records.yaml")
    worker.out.until(lambda: worker.out.lines[1:], "records")
    put(kinesis, "cherry")
    worker.out.until(lambda: worker.out.lines[2:], "third record")
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    shard = "shardId-000000000000"
    assert worker.out.lines == [f"{shard} a apple", f"{shard} b bean", f"{shard} c cherry"]
