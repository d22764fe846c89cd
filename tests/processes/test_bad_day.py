"""A worker on a bad day: ``kcl local --faults`` lets every kind of thing go wrong, and still all is delivered."""

import re
import signal
from pathlib import Path

from tests.processes.conftest import a_fleet, running_local
from tests.processes.deliveries import check_in_order

RECORDS = 3_000
BAD_DAY = """
seed: 7
faults:
  - {service: kinesis, operation: GetShardIterator, kind: reset, calls: [1, 3]}
  - {service: kinesis, operation: GetRecords, kind: throttle, calls: [2, 5, 11]}
  - {service: kinesis, operation: GetRecords, kind: truncated, calls: [1, 6, 12]}
  - {service: kinesis, operation: GetRecords, kind: error, calls: [3, 7, 13]}
  - {service: dynamodb, operation: UpdateItem, kind: hang, calls: [6]}
  - {service: dynamodb, operation: UpdateItem, kind: lost_reply, calls: [1, 4, 8, 15]}
  - {service: dynamodb, operation: UpdateItem, kind: throttle, calls: [2, 5, 9, 12]}
  - {kind: delay, delay_s: 0.2, probability: 0.1}
  - {kind: stale}
"""


def test_worker_delivers_everything_on_a_bad_day(tmp_path: Path) -> None:
    """Each shard from its beginning to its end, in order, across a split; every rule has happened."""
    (tmp_path / "faults.yaml").write_text(BAD_DAY, encoding="utf-8")
    with (
        running_local(tmp_path, "--faults", "faults.yaml") as (local, url),
        a_fleet(url, tmp_path) as fleet,
    ):
        fleet.create(3)
        fleet.put(RECORDS // 2)
        worker = fleet.start(delivery__batch__max_records=50)
        fleet.until_delivered(RECORDS // 2)
        fleet.split(next(iter(fleet.shards())))
        fleet.put(RECORDS // 2)
        fleet.until_delivered(RECORDS)
        worker.send(signal.SIGTERM)
        assert worker.wait() == 0
        check_in_order(fleet.deliveries(), fleet.put_to)
        local.send(signal.SIGTERM)
        assert local.wait() == 0
    told = [line for line in local.out.lines if line.startswith("  rule ")]
    assert len(told) == BAD_DAY.count("kind:")
    assert [line for line in told if not re.search(r": [1-9][0-9]* of [0-9]+ calls( \(.+\))?$", line)] == []
